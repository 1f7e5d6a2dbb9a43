//! `/catalog-api-keys`: keys of programs that read the catalogue.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use caipe_skills::{ApiKeys, ApiKeysError};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use tokio::task::spawn_blocking;

use super::SkillsApi;
use super::access::Caller;
use super::body::{BytesOf, PathOf, json};
use super::error::ApiError;
use super::model::{ErrorText, InvalidRequest, KeyCreated, KeyList, KeyRequest, KeyRevoked};

/// Most days until a key expires.
const MOST_DAYS: f64 = 3650.0;

/// Makes a key. It is shown once.
#[utoipa::path(post, path = "/catalog-api-keys", tag = "keys", request_body = Option<KeyRequest>, responses(
    (status = 200, description = "The key", body = KeyCreated),
    (status = 409, description = "The caller has too many keys", body = ErrorText),
    (status = 413, description = "The request is too large", body = ErrorText),
    (status = 422, description = "The lifetime is wrong", body = InvalidRequest),
    (status = 503, description = "The server has no directory for keys, or cannot verify tokens now"),
))]
pub(super) async fn create(
    State(api): State<SkillsApi>,
    caller: Caller,
    BytesOf(body): BytesOf,
) -> Result<Response, ApiError> {
    let request: Option<KeyRequest> = if body.is_empty() { None } else { json(&body)? };
    let lifetime = request.unwrap_or_default().expires_in_days.map(lifetime).transpose()?;
    let new =
        with_keys(&api, move |keys| keys.create(caller.owner.as_deref(), Timestamp::now(), lifetime)).await?;
    let (key, key_id) = (new.key.expose_secret().to_owned(), new.key_id);
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((no_store, Json(KeyCreated { key, key_id, expires_at: new.expires_at })).into_response())
}

/// The time of so many days.
fn lifetime(days: f64) -> Result<Duration, ApiError> {
    let wrong = || {
        ApiError::invalid(
            &["body", "expires_in_days"],
            format!("must be a whole number from 1 to {MOST_DAYS}"),
        )
    };
    if days.fract() == 0.0 && (1.0..=MOST_DAYS).contains(&days) {
        Ok(Duration::from_hours(24).mul_f64(days))
    } else {
        Err(wrong())
    }
}

/// Lists the caller's keys, without the keys themselves.
#[utoipa::path(get, path = "/catalog-api-keys", tag = "keys", responses(
    (status = 200, description = "The keys", body = KeyList),
    (status = 503, description = "The server has no directory for keys, or cannot verify tokens now"),
))]
pub(super) async fn list(State(api): State<SkillsApi>, caller: Caller) -> Result<Json<KeyList>, ApiError> {
    let keys = api.keys.as_ref().ok_or(ApiError::NoKeys)?.of(caller.owner.as_deref());
    Ok(Json(KeyList { keys: keys.into_iter().map(Into::into).collect() }))
}

/// Revokes a key of the caller.
#[utoipa::path(delete, path = "/catalog-api-keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "The id of the key")), responses(
    (status = 200, description = "It is revoked", body = KeyRevoked),
    (status = 403, description = "The key belongs to another principal", body = ErrorText),
    (status = 404, description = "There is no such key", body = ErrorText),
    (status = 422, description = "The id is no UTF-8 text", body = InvalidRequest),
    (status = 503, description = "The server has no directory for keys, or cannot verify tokens now"),
))]
pub(super) async fn revoke(
    State(api): State<SkillsApi>,
    caller: Caller,
    PathOf(key_id): PathOf,
) -> Result<Json<KeyRevoked>, ApiError> {
    let revoke = move |keys: &ApiKeys| keys.revoke(&key_id, caller.owner.as_deref(), Timestamp::now());
    Ok(Json(KeyRevoked { revoked: with_keys(&api, revoke).await? }))
}

/// Does work that writes the file of keys.
async fn with_keys<T: Send + 'static>(
    api: &SkillsApi,
    work: impl FnOnce(&ApiKeys) -> Result<T, ApiKeysError> + Send + 'static,
) -> Result<T, ApiError> {
    let keys: Arc<ApiKeys> = api.keys.clone().ok_or(ApiError::NoKeys)?;
    let done = spawn_blocking(move || work(&keys)).await.map_err(|_| ApiError::Stopped)?;
    Ok(done?)
}

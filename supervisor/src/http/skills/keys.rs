//! `/catalog-api-keys`: keys of programs that read the catalogue.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use caipe_skills::{ApiKeys, ApiKeysError};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use tokio::task::spawn_blocking;

use super::SkillsApi;
use super::access::Caller;
use super::error::ApiError;
use super::model::{ErrorText, InvalidRequest, KeyCreated, KeyList, KeyRequest, KeyRevoked};

const DAY: Duration = Duration::from_hours(24);
/// Most days until a key expires.
const MOST_DAYS: u32 = 3650;

/// Makes a key. It is shown once.
#[utoipa::path(post, path = "/catalog-api-keys", tag = "keys", request_body = Option<KeyRequest>, responses(
    (status = 200, description = "The key", body = KeyCreated),
    (status = 401, description = "The credential is missing or wrong"),
    (status = 403, description = "A key of the catalogue makes no keys", body = ErrorText),
    (status = 409, description = "The caller has too many keys", body = ErrorText),
    (status = 422, description = "The lifetime is wrong", body = InvalidRequest),
    (status = 503, description = "The server has no directory for keys"),
))]
pub(super) async fn create(
    State(api): State<SkillsApi>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, ApiError> {
    let invalid = |message: String| ApiError::invalid(&["body", "expires_in_days"], message);
    let request: Option<KeyRequest> = if body.is_empty() {
        None
    } else {
        serde_json::from_slice(&body).map_err(|error| ApiError::invalid(&["body"], error.to_string()))?
    };
    let days = request.unwrap_or_default().expires_in_days;
    if days.is_some_and(|days| days == 0 || days > MOST_DAYS) {
        return Err(invalid(format!("must be 1 to {MOST_DAYS}")));
    }
    let lifetime = days.map(|days| DAY * days);
    let new =
        with_keys(&api, move |keys| keys.create(caller.owner.as_deref(), Timestamp::now(), lifetime)).await?;
    let (key, key_id) = (new.key.expose_secret().to_owned(), new.key_id);
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((no_store, Json(KeyCreated { key, key_id, expires_at: new.expires_at })).into_response())
}

/// Lists the caller's keys, without the keys themselves.
#[utoipa::path(get, path = "/catalog-api-keys", tag = "keys", responses(
    (status = 200, description = "The keys", body = KeyList),
    (status = 401, description = "The credential is missing or wrong"),
    (status = 403, description = "A key of the catalogue lists no keys", body = ErrorText),
    (status = 503, description = "The server has no directory for keys"),
))]
pub(super) async fn list(State(api): State<SkillsApi>, caller: Caller) -> Result<Json<KeyList>, ApiError> {
    let keys = api.keys.as_ref().ok_or(ApiError::NoKeys)?.of(caller.owner.as_deref());
    Ok(Json(KeyList { keys: keys.into_iter().map(Into::into).collect() }))
}

/// Revokes a key of the caller.
#[utoipa::path(delete, path = "/catalog-api-keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "The id of the key")), responses(
    (status = 200, description = "It is revoked", body = KeyRevoked),
    (status = 401, description = "The credential is missing or wrong"),
    (status = 403, description = "The key belongs to another principal", body = ErrorText),
    (status = 404, description = "There is no such key", body = ErrorText),
    (status = 503, description = "The server has no directory for keys"),
))]
pub(super) async fn revoke(
    State(api): State<SkillsApi>,
    caller: Caller,
    Path(key_id): Path<String>,
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

//! Reads the parts of a request. A wrong part is answered with its place.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use serde::de::DeserializeOwned;

use super::REQUEST_BYTES;
use super::error::ApiError;

/// The time in which a body must arrive.
const DEADLINE: Duration = Duration::from_secs(30);

/// The bytes of a request.
pub(super) struct BytesOf(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for BytesOf {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let late = |_| {
            let reason = format!("it did not arrive within {} seconds", DEADLINE.as_secs());
            Err(ApiError::invalid(&["body"], reason))
        };
        tokio::time::timeout(DEADLINE, collect(request.into_body())).await.unwrap_or_else(late).map(Self)
    }
}

/// Reads a body. The rest of one that is too large is dropped, up to a few times the limit, because most clients read the response only after they have sent
/// everything.
async fn collect(body: Body) -> Result<Bytes, ApiError> {
    let (mut stream, mut bytes, mut total) = (body.into_data_stream(), BytesMut::new(), 0);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| ApiError::invalid(&["body"], error.to_string()))?;
        total += chunk.len();
        if total > 4 * REQUEST_BYTES {
            break;
        }
        if total <= REQUEST_BYTES {
            bytes.extend_from_slice(&chunk);
        }
    }
    if total > REQUEST_BYTES { Err(ApiError::TooLarge) } else { Ok(bytes.freeze()) }
}

/// The JSON of a request.
pub(super) struct JsonOf<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonOf<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let BytesOf(bytes) = BytesOf::from_request(request, state).await?;
        json(&bytes).map(Self)
    }
}

/// Reads the JSON of a request.
pub(super) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid(&["body"], error.to_string()))
}

/// The only parameter in the path of a request.
pub(super) struct PathOf(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathOf {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|refused| ApiError::invalid(&["path"], refused.body_text()))
    }
}

/// The parameters of a request.
pub(super) struct QueryOf<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|Query(query)| Self(query))
            .map_err(|refused| ApiError::invalid(&["query"], refused.body_text()))
    }
}

//! Reads the parts of a request. A wrong part is answered with its place.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The bytes of a request.
pub(super) struct BytesOf(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for BytesOf {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        bytes.map(Self).map_err(|refused| match refused.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge,
            _ => ApiError::invalid(&["body"], refused.body_text()),
        })
    }
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

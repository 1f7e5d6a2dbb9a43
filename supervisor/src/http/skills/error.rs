//! The errors of the API, in upstream's shapes.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use caipe_skills::{AddError, ApiKeysError};
use serde_json::{Value, json};

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("Invalid or expired API key")]
    BadKey,
    #[error("A catalog API key reads skills only")]
    KeyForbidden,
    /// The place of a wrong value, as the names on the way to it, and what is wrong with it.
    #[error("{1}")]
    Invalid(Vec<String>, String),
    #[error("the request has more than {} MiB", super::REQUEST_BYTES >> 20)]
    TooLarge,
    #[error("there is no such skill")]
    UnknownSkill,
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("catalog API keys need the store SQLite, whose data directory keeps them")]
    NoKeys,
    #[error(transparent)]
    Keys(#[from] ApiKeysError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error("{1}")]
    Hub(HubError, String),
    /// The task that does the work stopped.
    #[error("the request was not carried out")]
    Stopped,
}

/// Why a repository is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HubError {
    UnsupportedType,
    InvalidLocation,
    InvalidCredentialsRef,
    CrawlFailed,
    Busy,
}

impl HubError {
    const fn code(self) -> (StatusCode, &'static str) {
        match self {
            Self::UnsupportedType => (StatusCode::BAD_REQUEST, "unsupported_type"),
            Self::InvalidLocation => (StatusCode::BAD_REQUEST, "invalid_location"),
            Self::InvalidCredentialsRef => (StatusCode::BAD_REQUEST, "invalid_credentials_ref"),
            Self::CrawlFailed => (StatusCode::BAD_GATEWAY, "crawl_failed"),
            Self::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        }
    }
}

impl ApiError {
    /// A wrong value at a place.
    pub(super) fn invalid(place: &[&str], message: impl Into<String>) -> Self {
        Self::Invalid(place.iter().map(|&part| part.to_owned()).collect(), message.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::BadKey => StatusCode::UNAUTHORIZED,
            Self::KeyForbidden | Self::Forbidden(_) | Self::Keys(ApiKeysError::Foreign) => {
                StatusCode::FORBIDDEN
            }
            Self::Invalid(..) | Self::Add(AddError::Faulty(_) | AddError::Refused(_)) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnknownSkill | Self::Keys(ApiKeysError::Unknown(_)) => StatusCode::NOT_FOUND,
            Self::Add(AddError::Exists(_) | AddError::Full) | Self::Keys(ApiKeysError::Full) => {
                StatusCode::CONFLICT
            }
            Self::Hub(error, _) => error.code().0,
            Self::NoKeys | Self::Add(AddError::NoDirectory) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Add(AddError::Write { .. } | AddError::Stopped)
            | Self::Keys(ApiKeysError::Storage { .. } | ApiKeysError::Random)
            | Self::Stopped => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn detail(&self) -> Value {
        let invalid =
            |place: &[String], message: &str| json!([{"loc": place, "msg": message, "type": "value_error"}]);
        match self {
            Self::Invalid(place, message) => invalid(place, message),
            Self::Add(AddError::Faulty(faults)) => {
                let entry = |fault: &caipe_skills::Fault| json!({"loc": ["body", "content"], "msg": fault.to_string(), "type": "value_error"});
                faults.iter().map(entry).collect::<Vec<_>>().into()
            }
            Self::Add(error @ AddError::Refused(_)) => {
                invalid(&["body".into(), "content".into()], &error.to_string())
            }
            Self::Hub(error, message) => json!({"error": error.code().1, "message": message}),
            Self::NoKeys | Self::Add(AddError::NoDirectory) => {
                json!({"error": "skills_unavailable", "message": self.to_string()})
            }
            // The paths and reasons of the machine are for the log.
            _ if self.status() == StatusCode::INTERNAL_SERVER_ERROR => "the server failed to store it".into(),
            _ => self.to_string().into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %self, "a request of the skills API failed");
        }
        (status, Json(json!({"detail": self.detail()}))).into_response()
    }
}

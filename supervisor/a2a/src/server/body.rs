//! Reads a request's body within limits of size and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;

/// An error while the body is read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("failed to read the request: the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("failed to read the request: the body did not arrive within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("failed to read the request: the connection was lost")]
    Lost,
}

impl BodyError {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Lost => StatusCode::BAD_REQUEST,
        }
    }
}

/// The body, at most `limit` bytes, within `deadline`.
///
/// A body that is too large is read up to a few times the limit and dropped, because most clients read the response only
/// after they have sent everything.
pub(super) async fn read(body: Body, limit: usize, deadline: Duration) -> Result<Bytes, BodyError> {
    let mut stream = body.into_data_stream();
    let collect = async {
        let mut collected = BytesMut::new();
        let mut total = 0_usize;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| BodyError::Lost)?;
            total = total.saturating_add(chunk.len());
            if total > limit.saturating_mul(4) {
                break;
            }
            if total <= limit {
                collected.extend_from_slice(&chunk);
            }
        }
        if total > limit { Err(BodyError::TooLarge(limit)) } else { Ok(collected.freeze()) }
    };
    tokio::time::timeout(deadline, collect).await.unwrap_or(Err(BodyError::TooSlow(deadline)))
}

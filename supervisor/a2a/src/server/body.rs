//! Reads a request's body within limits of size, time and memory.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of each body that the budget does not count: a chat message always fits, however many long bodies others send.
const FREE_BYTES: usize = 16 * 1024;

/// An error while the body is read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("failed to read the request: the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("failed to read the request: the body did not arrive within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("failed to read the request: the connection was lost")]
    Lost,
    #[error(
        "failed to read the request: the long requests under way already hold {0} bytes; send it again in a second"
    )]
    Busy(usize),
}

impl BodyError {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Lost => StatusCode::BAD_REQUEST,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Adds the header with which a 503 says when to try again.
pub(super) fn with_retry_after(mut response: Response) -> Response {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// A body, which counts against the budget until it is dropped.
#[derive(Debug, Default)]
pub(super) struct ReadBody {
    bytes: Bytes,
    _counted: Option<OwnedSemaphorePermit>,
}

impl Deref for ReadBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The limits of bodies, shared by all requests of a server.
#[derive(Debug)]
pub(super) struct BodyReader {
    limit: usize,
    deadline: Duration,
    budget: usize,
    left: Arc<Semaphore>,
}

impl BodyReader {
    /// `limit` and `budget` are in bytes, for one body and for all together.
    pub(super) fn new(limit: usize, deadline: Duration, budget: usize) -> Self {
        let budget = budget.min(Semaphore::MAX_PERMITS);
        Self { limit, deadline, budget, left: Arc::new(Semaphore::new(budget)) }
    }

    /// The body, which must arrive in time, and within the limit and the budget.
    ///
    /// A body that is refused is read up to a few times the limit and dropped, because most clients read the response only
    /// after they have sent everything.
    pub(super) async fn read(&self, body: Body) -> Result<ReadBody, BodyError> {
        let read = tokio::time::timeout(self.deadline, self.collect(body)).await;
        read.unwrap_or(Err(BodyError::TooSlow(self.deadline)))
    }

    async fn collect(&self, body: Body) -> Result<ReadBody, BodyError> {
        let mut stream = body.into_data_stream();
        let mut collecting = Ok(Collected::default());
        let mut total = 0_usize;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| BodyError::Lost)?;
            total = total.saturating_add(chunk.len());
            if total > self.limit.saturating_mul(4) {
                break;
            }
            collecting = collecting.and_then(|collected| self.append(collected, &chunk));
        }
        collecting.map(|collected| ReadBody { bytes: collected.bytes.freeze(), _counted: collected.counted })
    }

    fn append(&self, mut collected: Collected, chunk: &[u8]) -> Result<Collected, BodyError> {
        let before = collected.bytes.len();
        let after = before.saturating_add(chunk.len());
        if after > self.limit {
            return Err(BodyError::TooLarge(self.limit));
        }
        let counted = after.saturating_sub(FREE_BYTES) - before.saturating_sub(FREE_BYTES);
        let busy = || BodyError::Busy(self.budget);
        let permits = u32::try_from(counted).map_err(|_| busy())?;
        let permit = Arc::clone(&self.left).try_acquire_many_owned(permits).map_err(|_| busy())?;
        match &mut collected.counted {
            Some(counted) => counted.merge(permit),
            None => collected.counted = Some(permit),
        }
        collected.bytes.extend_from_slice(chunk);
        Ok(collected)
    }
}

#[derive(Debug, Default)]
struct Collected {
    bytes: BytesMut,
    counted: Option<OwnedSemaphorePermit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(limit: usize, budget: usize) -> BodyReader {
        BodyReader::new(limit, Duration::from_secs(30), budget)
    }

    fn body(bytes: usize) -> Body {
        let chunk = move |start: usize| Ok::<_, std::io::Error>(vec![b'x'; 1000.min(bytes - start)]);
        Body::from_stream(futures::stream::iter((0..bytes).step_by(1000).map(chunk)))
    }

    #[tokio::test]
    async fn long_requests_share_a_budget_that_short_ones_do_not_need() {
        let reader = reader(100_000, 100_000);
        let first = reader.read(body(FREE_BYTES + 60_000)).await.unwrap();
        assert_eq!(first.len(), FREE_BYTES + 60_000);
        let error = reader.read(body(FREE_BYTES + 60_000)).await.unwrap_err();
        assert!(matches!(error, BodyError::Busy(100_000)), "{error}");
        let second = reader.read(body(FREE_BYTES + 40_000)).await.unwrap();
        let short = reader.read(body(FREE_BYTES)).await.unwrap();
        assert_eq!(reader.left.available_permits(), 0, "the refused body gave its part back");
        drop((first, second, short));
        assert_eq!(reader.left.available_permits(), 100_000);
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_too_large_and_holds_nothing() {
        let reader = reader(50_000, 100_000);
        for bytes in [50_001, 1_000_000] {
            let error = reader.read(body(bytes)).await.unwrap_err();
            assert!(matches!(error, BodyError::TooLarge(50_000)), "{error}");
        }
        assert_eq!(reader.read(body(50_000)).await.unwrap().len(), 50_000);
        assert_eq!(reader.left.available_permits(), 100_000);
    }
}

//! A stream of server-sent events to a client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tokio::time::timeout;

use super::child::Asked;
use super::message::Message;

/// The media type of such a stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// How often a silent stream shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// The answer that streams what is asked.
pub(super) fn response(asked: Asked) -> Response {
    let frames = stream::unfold(asked, |mut asked| async move {
        let frame = match timeout(ALIVE, asked.inlet.recv()).await {
            Ok(message) => frame(&message?),
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok::<_, Infallible>(frame), asked))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn frame(message: &Message) -> Bytes {
    // A map of JSON values is always JSON; and JSON has no bare line ends in it.
    let text = serde_json::to_string(message).unwrap_or_default();
    Bytes::from(format!("event: message\ndata: {text}\n\n"))
}

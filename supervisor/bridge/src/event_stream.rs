//! A stream of server-sent events to a client.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use tokio::time::timeout;

use super::child::MessageStream;
use super::message::Message;

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";
/// The interval of comments on a silent stream, which show that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) fn response(stream: MessageStream) -> Response {
    let frames = stream::unfold(stream, |mut stream| async move {
        let frame = match timeout(KEEP_ALIVE, stream.messages.recv()).await {
            Ok(message) => frame(&message?),
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok::<_, Infallible>(frame), stream))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn frame(message: &Message) -> Bytes {
    // A map of JSON values is always JSON, and JSON contains no bare line ends.
    let text = serde_json::to_string(message).unwrap_or_default();
    Bytes::from(format!("event: message\ndata: {text}\n\n"))
}

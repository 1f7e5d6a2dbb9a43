//! Errors of the connection to a server as bounded text without secrets.

use std::error::Error;

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use caipe_bridge::redact::Redactor;

/// The characters of a server's error that go into a message.
const REASON_CHARS: usize = 400;

/// The reason of a failed handshake.
pub(super) fn explain(error: &ClientInitializeError, redactor: &Redactor) -> String {
    let text = match error {
        ClientInitializeError::TransportError { error, .. } => transport(error),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it answered with error {}: {}", error.code.0, error.message)
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return explain(fallback, redactor),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            format!("it speaks only {}", versions.join(", "))
        }
        // The others contain whole messages.
        _ => "it returned an unexpected message".to_owned(),
    };
    bounded(text, redactor)
}

/// The reason of a broken connection.
pub(super) fn explain_transport(error: &DynamicTransportError, redactor: &Redactor) -> String {
    bounded(transport(error), redactor)
}

/// Whether the connection closed, as opposed to an unusable answer.
pub(super) fn is_lost(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::TransportError { .. } | ClientInitializeError::ConnectionClosed(_) => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_lost(fallback),
        _ => false,
    }
}

/// Whether an answer over HTTP was larger than the client library accepts.
pub(super) fn is_too_large(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(error, Some(StreamableHttpError::ResponseBodyTooLarge { .. }))
}

/// The same, neither bounded nor without secrets.
pub(super) fn transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // The client library hides the reason of the HTTP client, such as a refused connection.
        Some(StreamableHttpError::Client(error)) => chain(error),
        Some(StreamableHttpError::AuthRequired(_)) => "HTTP 401: it rejects the credentials".to_owned(),
        Some(error) => chain(error),
        None => chain(error.error.as_ref()),
    }
}

/// An error and its causes, without repetitions.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn bounded(text: String, redactor: &Redactor) -> String {
    redactor.redact(text).chars().take(REASON_CHARS).collect()
}

//! The protocol's headers in requests and responses.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header, request::Parts};
use axum::response::Response;

use super::call::{CallContext, Principal};
use crate::event_id;
use crate::model::AgentCard;
use crate::version::ProtocolVersion;

/// Most extensions that are read: each is compared with the card's.
const MAX_EXTENSIONS: usize = 64;

/// The protocol's data in the head of a request.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The requested version.
    pub(super) version: Option<String>,
    /// Whether the client accepts server-sent events.
    pub(super) accepts_stream: bool,
    /// The number of the last event that the client has.
    pub(super) last_event_id: Option<u64>,
}

impl Hints {
    pub(super) fn of(parts: &Parts) -> Self {
        let accept = text(&parts.headers, &header::ACCEPT).unwrap_or_default();
        let last = text(&parts.headers, &HeaderName::from_static("last-event-id"));
        Self {
            version: version(&parts.headers, &parts.uri),
            accepts_stream: accept.contains("text/event-stream"),
            last_event_id: last.and_then(|id| event_id::parse(id.trim())),
        }
    }
}

/// The requested version, from a header or the query (1.0, section 3.6.1).
pub(super) fn version(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let header = text(headers, &HeaderName::from_static(ProtocolVersion::HEADER)).map(str::to_owned);
    let query = || {
        let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        let mut versions = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(ProtocolVersion::HEADER));
        versions.next().map(|(_, value)| value.to_owned())
    };
    header.or_else(query)
}

/// The context of a call; its version is known only once the operation is.
pub(super) fn context(mut parts: Parts) -> CallContext {
    for (name, value) in &mut parts.headers {
        // Debug output omits sensitive values.
        value.set_sensitive(matches!(
            *name,
            header::AUTHORIZATION | header::PROXY_AUTHORIZATION | header::COOKIE
        ));
    }
    let lists =
        ["a2a-extensions", "x-a2a-extensions"].into_iter().flat_map(|name| parts.headers.get_all(name));
    let lists = lists.filter_map(|list| list.to_str().ok());
    let uris = lists.flat_map(|list| list.split(',')).map(str::trim).filter(|uri| !uri.is_empty());
    let mut declared: Vec<String> = Vec::new();
    for uri in uris {
        if declared.len() < MAX_EXTENSIONS && !declared.iter().any(|known| known == uri) {
            declared.push(uri.to_owned());
        }
    }
    CallContext {
        version: ProtocolVersion::V0_3,
        declared_extensions: declared,
        principal: parts.extensions.get::<Principal>().cloned(),
        headers: parts.headers,
        extensions: parts.extensions,
    }
}

/// Adds a header with the active extensions (0.3 and 1.0, "extension activation").
pub(super) fn activated(mut response: Response, call: &CallContext, card: &AgentCard) -> Response {
    let known = |uri: &&String| card.capabilities.extensions.iter().any(|known| known.uri == **uri);
    let active: Vec<&str> = call.declared_extensions.iter().filter(known).map(String::as_str).collect();
    let name = match call.version {
        ProtocolVersion::V0_3 => HeaderName::from_static("x-a2a-extensions"),
        ProtocolVersion::V1_0 => HeaderName::from_static("a2a-extensions"),
    };
    if let (false, Ok(value)) = (active.is_empty(), HeaderValue::try_from(active.join(", "))) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Requires a JSON content type, because a web page can send a body without one to any address without a preflight
/// request.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), String> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Err("none".to_owned()) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" | "application/a2a+json" => Ok(()),
        _ => Err(essence.chars().take(80).collect()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_prints_no_credentials() {
        let request = axum::http::Request::builder()
            .header("authorization", "Bearer s3cret")
            .header("authorization", "Basic s3cret")
            .header("cookie", "session=s3cret")
            .header("traceparent", "00-shown");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let call = context(parts);
        let printed = format!("{call:?}");
        assert!(!printed.contains("s3cret") && printed.contains("00-shown"), "{printed}");
        assert_eq!(call.headers[header::AUTHORIZATION], "Bearer s3cret", "it is there nevertheless");
    }
}

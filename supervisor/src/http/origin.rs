//! Rejects requests from foreign web pages. A browser sends simple requests to any address that a page names, including
//! loopback, without a CORS preflight; CORS only hides the response.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caipe_crds::validate::is_web_origin;
use serde_json::json;

/// The allowed web origins. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Origins(Arc<ArcSwap<Vec<HeaderValue>>>);

/// A text that is not a web origin.
#[derive(Debug, thiserror::Error)]
#[error("invalid web origin {0:?}: write scheme://host or scheme://host:port, e.g. http://localhost:3000")]
pub struct OriginError(String);

impl Origins {
    /// Allows these origins and no others. An error changes nothing.
    ///
    /// # Errors
    /// If one of them is not a web origin.
    pub fn set<'a>(&self, origins: impl IntoIterator<Item = &'a String>) -> Result<(), OriginError> {
        let origins: Vec<_> = origins.into_iter().map(|text| canonical(text)).collect::<Result<_, _>>()?;
        self.0.store(origins.into());
        Ok(())
    }

    /// Whether the origin is allowed.
    pub(super) fn contains(&self, origin: &HeaderValue) -> bool {
        self.0.load().contains(origin)
    }
}

/// An origin as browsers write it: in lower case, and without the default port of the scheme.
fn canonical(text: &str) -> Result<HeaderValue, OriginError> {
    let error = || OriginError(text.to_owned());
    if !is_web_origin(text) {
        return Err(error());
    }
    let origin = url::Url::parse(text).map_err(|_| error())?.origin();
    // Only the schemes of the web have a form of their own; `chrome-extension://ID` stays as it is.
    let written = if origin.is_tuple() { origin.ascii_serialization() } else { text.to_owned() };
    HeaderValue::try_from(written).map_err(|_| error())
}

/// The allowed pages, and the allowed host names.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    origins: Origins,
    /// Whether only loopback protects this server: then foreign names that point to it (DNS rebinding) are rejected.
    only_loopback: bool,
}

impl Pages {
    pub(crate) fn new(origins: Origins, only_loopback: bool) -> Self {
        Self { origins, only_loopback }
    }

    /// Why a request is rejected, if it is.
    fn refusal(&self, headers: &HeaderMap) -> Option<&'static str> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.only_loopback && !host.is_empty() && !is_own_name(host) {
            return Some(
                "call this server by its address or as localhost: no key is asked for under other names",
            );
        }
        let origin = headers.get(header::ORIGIN)?;
        let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let same = own.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
        (!same && !self.origins.contains(origin))
            .then_some("pages of this origin may not call; --cors-origin or spec.server.corsOrigins names those that may")
    }
}

/// Whether no name server resolves the name.
fn is_own_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The middleware that rejects foreign pages.
pub(crate) async fn check(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    match pages.refusal(request.headers()) {
        None => next.run(request).await,
        Some(reason) => {
            let body = axum::Json(json!({"error": "forbidden", "reason": reason}));
            (StatusCode::FORBIDDEN, body).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origins_are_taken_and_written_as_browsers_do() {
        for (text, written) in [
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("https://Portal.Example.com:443", Some("https://portal.example.com")),
            ("http://[::1]:3000", Some("http://[::1]:3000")),
            ("chrome-extension://abcdef", Some("chrome-extension://abcdef")),
            ("*", None),
            ("https://*.example.com", None),
            ("https://portal.example.com/", None),
            ("https://portal.example.com/ui", None),
            ("https://me@portal.example.com", None),
            ("https://portal.example.com:65536", None),
            ("portal.example.com", None),
            ("https://", None),
            ("null", None),
            ("", None),
        ] {
            let taken = canonical(text).ok();
            assert_eq!(taken.as_ref().and_then(|origin| origin.to_str().ok()), written, "{text:?}");
        }
        let origins = Origins::default();
        origins.set(&["http://localhost:3000".to_owned()]).unwrap();
        assert!(origins.set(&["http://localhost:4000".to_owned(), "*".to_owned()]).is_err());
        assert!(origins.contains(&HeaderValue::from_static("http://localhost:3000")), "as before");
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let allowed = Origins::default();
        allowed.set(&["https://Portal.example.com:443".to_owned()]).unwrap();
        let cases = [
            (true, "127.0.0.1:8000", None, true),
            (true, "localhost:8000", None, true),
            (true, "[::1]:8000", None, true),
            (true, "", None, true),
            (true, "rebound.example.com:8000", None, false),
            (true, "127.0.0.1.example.com", None, false),
            (true, "not a host", None, false),
            (false, "caipe.platform.svc:8000", None, true),
            (true, "127.0.0.1:8000", Some("http://127.0.0.1:8000"), true),
            (true, "localhost:8000", Some("http://LOCALHOST:8000"), true),
            (true, "127.0.0.1:8000", Some("http://127.0.0.1:9000"), false),
            (true, "127.0.0.1:8000", Some("https://evil.example.com"), false),
            (true, "127.0.0.1:8000", Some("null"), false),
            (true, "rebound.example.com:8000", Some("http://rebound.example.com:8000"), false),
            (true, "127.0.0.1:8000", Some("https://portal.example.com"), true),
            (false, "caipe.example.com", Some("https://portal.example.com"), true),
            (false, "caipe.example.com", Some("https://caipe.example.com"), true),
            (false, "caipe.example.com", Some("https://evil.example.com"), false),
        ];
        for (only_loopback, host, origin, accepted) in cases {
            let mut headers = HeaderMap::new();
            if !host.is_empty() {
                headers.insert(header::HOST, host.parse().unwrap());
            }
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let refusal = Pages::new(allowed.clone(), only_loopback).refusal(&headers);
            assert_eq!(refusal.is_none(), accepted, "{only_loopback} {host} {origin:?}");
        }
    }
}

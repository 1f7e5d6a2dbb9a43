//! Which web pages may call. A browser sends requests to any address that a page names, loopback included, and
//! needs nobody's leave for simple ones; so a page of somebody else is refused here, whatever CORS would hide from it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The pages that may call, and under which names.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    origins: Arc<[HeaderValue]>,
    /// Whether nothing but loopback protects this server: then a name that was made to point there (DNS rebinding)
    /// must not pass for this server's own.
    only_loopback: bool,
}

impl Pages {
    pub(crate) fn new(origins: &[HeaderValue], only_loopback: bool) -> Self {
        Self { origins: origins.into(), only_loopback }
    }

    /// Why a request is refused, if it is.
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
            .then_some("pages of this origin may not call; --cors-origin names those that may")
    }
}

/// Names that no name server has a say in.
fn is_own_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// The middleware.
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
    fn a_page_of_somebody_else_is_refused() {
        let allowed = [HeaderValue::from_static("https://portal.example.com")];
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
        for (only_loopback, host, origin, passes) in cases {
            let mut headers = HeaderMap::new();
            if !host.is_empty() {
                headers.insert(header::HOST, host.parse().unwrap());
            }
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            let refusal = Pages::new(&allowed, only_loopback).refusal(&headers);
            assert_eq!(refusal.is_none(), passes, "{only_loopback} {host} {origin:?}");
        }
    }
}

//! Who may come in. Nothing beyond loopback is open unless somebody said so.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caipe_a2a::server::Principal;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

/// Paths that anybody may read: the cards, which say how to authenticate, and the probes.
const OPEN: [&str; 4] = ["/.well-known/agent-card.json", "/.well-known/agent.json", "/health", "/ready"];

/// The name of whoever brings the shared key.
pub(super) const KEY_HOLDER: &str = "shared-key";

/// The check at the door (upstream contract 9: `A2A_AUTH_SHARED_KEY`).
#[derive(Debug, Clone)]
pub struct Guard {
    key: Option<Arc<SecretString>>,
    /// Whether loopback is all that keeps strangers out.
    loopback_only: bool,
}

/// Why the door is not opened at all.
#[derive(Debug, thiserror::Error)]
#[error(
    "refusing to listen on {0} without authentication: set A2A_AUTH_SHARED_KEY, listen on 127.0.0.1, or pass \
     --allow-unauthenticated"
)]
pub struct GuardError(SocketAddr);

impl Guard {
    /// The check for a listener at `address`.
    ///
    /// # Errors
    /// When others than this machine could reach the listener and no key is asked of them.
    pub fn new(address: SocketAddr, key: Option<SecretString>, allow_open: bool) -> Result<Self, GuardError> {
        if key.is_none() && !address.ip().is_loopback() && !allow_open {
            return Err(GuardError(address));
        }
        let loopback_only = key.is_none() && address.ip().is_loopback();
        Ok(Self { key: key.map(Arc::new), loopback_only })
    }

    /// Whether callers must bring a key.
    pub fn is_closed(&self) -> bool {
        self.key.is_some()
    }

    /// Whether loopback is all that keeps strangers out.
    pub(super) fn is_loopback_only(&self) -> bool {
        self.loopback_only
    }

    fn admits(&self, method: &Method, path: &str, headers: &HeaderMap) -> bool {
        self.key.is_none()
            || method == Method::OPTIONS
            || OPEN.contains(&path)
            || self.principal(headers).is_some()
    }

    /// Who brought the key; all who have it are one.
    fn principal(&self, headers: &HeaderMap) -> Option<Principal> {
        let (key, given) = (self.key.as_ref()?, bearer(headers)?);
        same(given.as_bytes(), key.expose_secret().as_bytes()).then(|| Principal::new(KEY_HOLDER))
    }
}

/// The middleware.
pub(super) async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    if guard.admits(request.method(), request.uri().path(), request.headers()) {
        if let Some(principal) = guard.principal(request.headers()) {
            request.extensions_mut().insert(principal);
        }
        return next.run(request).await;
    }
    let reason = if request.headers().contains_key(header::AUTHORIZATION) {
        "the bearer token is not the right one"
    } else {
        "send the shared key as \"Authorization: Bearer KEY\""
    };
    let body = axum::Json(json!({"error": "unauthorized", "reason": reason}));
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], body).into_response()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in a time that depends on the length alone.
fn same(given: &[u8], key: &[u8]) -> bool {
    given.len() == key.len() && given.iter().zip(key).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("0.0.0.0:1".parse().unwrap(), Some("s3cret".to_owned().into()), false).unwrap()
    }

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn only_loopback_is_open_without_a_key() {
        assert!(Guard::new("127.0.0.1:8000".parse().unwrap(), None, false).is_ok());
        assert!(Guard::new("[::1]:8000".parse().unwrap(), None, false).is_ok());
        let refused = Guard::new("0.0.0.0:8000".parse().unwrap(), None, false).unwrap_err();
        assert!(refused.to_string().contains("A2A_AUTH_SHARED_KEY"), "{refused}");
        assert!(Guard::new("0.0.0.0:8000".parse().unwrap(), None, true).is_ok());
    }

    #[test]
    fn the_key_opens_and_nothing_else_does() {
        let cases = [
            ("Bearer s3cret", true),
            ("bearer s3cret", true),
            ("Bearer s3creT", false),
            ("Basic s3cret", false),
            ("s3cret", false),
        ];
        for (value, admitted) in cases {
            assert_eq!(guard().admits(&Method::POST, "/", &headers(value)), admitted, "{value}");
        }
        assert!(!guard().admits(&Method::GET, "/tools", &HeaderMap::new()));
    }

    #[test]
    fn cards_and_probes_stay_open() {
        for path in OPEN {
            assert!(guard().admits(&Method::GET, path, &HeaderMap::new()), "{path}");
        }
    }
}

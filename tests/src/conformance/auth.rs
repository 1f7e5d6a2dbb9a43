//! Authentication with bearer tokens.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Json, http};
use caipe_a2a::card;
use caipe_a2a::server::Principal;
use serde_json::json;

/// The accepted bearer tokens.
#[derive(Debug, Clone, Default)]
pub struct Users {
    pub tokens: HashMap<String, String>,
    /// Tokens of users without permissions.
    pub forbidden: Vec<String>,
    /// Whether requests without a token are rejected.
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    User(Principal),
    Anonymous,
    Unauthenticated,
    Forbidden,
}

impl Users {
    fn access(&self, path: &str, headers: &HeaderMap) -> Access {
        let given = headers.get(header::AUTHORIZATION);
        match given.map(|value| value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "))) {
            // The card describes how to authenticate.
            _ if path == card::PATH || path == card::OLD_PATH => Access::Anonymous,
            None if self.required => Access::Unauthenticated,
            None => Access::Anonymous,
            Some(Some(token)) if self.forbidden.iter().any(|forbidden| forbidden == token) => {
                Access::Forbidden
            }
            Some(token) => match token.and_then(|token| self.tokens.get(token)) {
                Some(name) => Access::User(Principal::new(name.as_str())),
                None => Access::Unauthenticated,
            },
        }
    }
}

/// Sets the caller's principal, or rejects the request.
pub(super) async fn authenticate(
    State(users): State<Arc<Users>>,
    mut request: Request,
    next: Next,
) -> Response {
    match users.access(request.uri().path(), request.headers()) {
        Access::User(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Access::Anonymous => next.run(request).await,
        Access::Unauthenticated => {
            let rejection =
                rejection(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "send a known bearer token");
            ([(header::WWW_AUTHENTICATE, "Bearer")], rejection).into_response()
        }
        Access::Forbidden => {
            rejection(StatusCode::FORBIDDEN, "PERMISSION_DENIED", "this user has no permissions")
                .into_response()
        }
    }
}

fn rejection(code: StatusCode, status: &str, message: &str) -> (http::StatusCode, Json<serde_json::Value>) {
    (code, Json(json!({"error": {"code": code.as_u16(), "status": status, "message": message}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_checked_except_for_the_card() {
        let users = |required| Users {
            tokens: HashMap::from([("t1".to_owned(), "ann".to_owned())]),
            forbidden: vec!["w1".to_owned()],
            required,
        };
        let ann = Access::User(Principal::new("ann"));
        for (required, path, given, expected) in [
            (true, "/", None, Access::Unauthenticated),
            (false, "/", None, Access::Anonymous),
            (true, card::PATH, None, Access::Anonymous),
            (true, card::PATH, Some("Bearer t9"), Access::Anonymous),
            (true, "/", Some("Bearer t1"), ann.clone()),
            (false, "/", Some("Bearer t1"), ann),
            (false, "/", Some("Bearer t9"), Access::Unauthenticated),
            (false, "/", Some("Basic t1"), Access::Unauthenticated),
            (true, "/extendedAgentCard", Some("Bearer w1"), Access::Forbidden),
        ] {
            let value = given.map(|value: &str| (header::AUTHORIZATION, value.parse().unwrap()));
            let headers = HeaderMap::from_iter(value);
            assert_eq!(users(required).access(path, &headers), expected, "{required} {path} {given:?}");
        }
    }
}

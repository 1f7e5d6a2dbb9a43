//! Who may call: bearer tokens with the names of their users.

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

/// Who may call.
#[derive(Debug, Clone, Default)]
pub struct Users {
    /// The users by their tokens.
    pub tokens: HashMap<String, String>,
    /// Tokens of users who may do nothing.
    pub weak: Vec<String>,
    /// Whether those without a token are refused.
    pub required: bool,
}

/// What a request's credentials are good for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Admission {
    User(Principal),
    Anybody,
    Unauthenticated,
    Forbidden,
}

impl Users {
    fn admission(&self, path: &str, headers: &HeaderMap) -> Admission {
        let given = headers.get(header::AUTHORIZATION);
        match given.map(|value| value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "))) {
            // Says how to authenticate, so it cannot ask for that.
            _ if path == card::PATH || path == card::OLD_PATH => Admission::Anybody,
            None if self.required => Admission::Unauthenticated,
            None => Admission::Anybody,
            Some(Some(token)) if self.weak.iter().any(|weak| weak == token) => Admission::Forbidden,
            Some(token) => match token.and_then(|token| self.tokens.get(token)) {
                Some(name) => Admission::User(Principal::new(name.as_str())),
                None => Admission::Unauthenticated,
            },
        }
    }
}

/// The middleware: names the caller, or refuses.
pub(super) async fn check(State(users): State<Arc<Users>>, mut request: Request, next: Next) -> Response {
    match users.admission(request.uri().path(), request.headers()) {
        Admission::User(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Admission::Anybody => next.run(request).await,
        Admission::Unauthenticated => {
            let refusal = refusal(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "send a known bearer token");
            ([(header::WWW_AUTHENTICATE, "Bearer")], refusal).into_response()
        }
        Admission::Forbidden => {
            refusal(StatusCode::FORBIDDEN, "PERMISSION_DENIED", "this user may do nothing").into_response()
        }
    }
}

fn refusal(code: StatusCode, status: &str, message: &str) -> (http::StatusCode, Json<serde_json::Value>) {
    (code, Json(json!({"error": {"code": code.as_u16(), "status": status, "message": message}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_decide_but_for_the_card() {
        let users = |required| Users {
            tokens: HashMap::from([("t1".to_owned(), "ann".to_owned())]),
            weak: vec!["w1".to_owned()],
            required,
        };
        let ann = Admission::User(Principal::new("ann"));
        for (required, path, given, expected) in [
            (true, "/", None, Admission::Unauthenticated),
            (false, "/", None, Admission::Anybody),
            (true, card::PATH, None, Admission::Anybody),
            (true, card::PATH, Some("Bearer t9"), Admission::Anybody),
            (true, "/", Some("Bearer t1"), ann.clone()),
            (false, "/", Some("Bearer t1"), ann),
            (false, "/", Some("Bearer t9"), Admission::Unauthenticated),
            (false, "/", Some("Basic t1"), Admission::Unauthenticated),
            (true, "/extendedAgentCard", Some("Bearer w1"), Admission::Forbidden),
        ] {
            let value = given.map(|value: &str| (header::AUTHORIZATION, value.parse().unwrap()));
            let headers = HeaderMap::from_iter(value);
            assert_eq!(users(required).admission(path, &headers), expected, "{required} {path} {given:?}");
        }
    }
}

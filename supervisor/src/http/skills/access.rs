//! Who may call the skills API: callers of the server, and keys of the catalogue, which read skills only.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caipe_a2a::server::Principal;
use caipe_skills::Reader;
use jiff::Timestamp;

use super::SkillsApi;
use super::error::ApiError;
use crate::http::auth::{self, Guard, KEY_HOLDER};
use crate::run::Person;

/// The state of the middleware.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) api: SkillsApi,
    pub(super) guard: Guard,
}

/// The owner of the catalogue key of a request.
#[derive(Debug, Clone)]
struct KeyOwner(Option<String>);

/// A request with a key of the catalogue needs no other credential, and reads skills only.
pub(super) async fn check(State(access): State<Access>, mut request: Request, next: Next) -> Response {
    let Some(given) = request.headers().get(&access.api.key_header) else {
        return auth::check(State(access.guard), request, next).await;
    };
    let record = given.to_str().ok().and_then(|given| {
        access.api.keys.as_ref().and_then(|keys| keys.verify(given.trim(), Timestamp::now()))
    });
    let Some(record) = record else { return ApiError::BadKey.into_response() };
    let path = request.uri().path();
    let reads = request.method() == Method::GET && (path == "/skills" || path.starts_with("/skills/"));
    if !reads {
        return ApiError::KeyForbidden.into_response();
    }
    request.extensions_mut().insert(KeyOwner(record.owner));
    next.run(request).await
}

/// The caller of a request, from its credential only.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Its name; none if the server does not distinguish its callers.
    pub(super) owner: Option<String>,
    pub(super) reader: Reader,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        if let Some(KeyOwner(owner)) = parts.extensions.get::<KeyOwner>().cloned() {
            let reader = Reader { principal: owner.clone(), ..Reader::default() };
            return Ok(Self { owner, reader });
        }
        let principal = parts.extensions.get::<Principal>().map(|principal| principal.as_str().to_owned());
        let owner = principal.filter(|name| name != KEY_HOLDER);
        let teams = parts.extensions.get::<Person>().map(|person| person.groups.clone()).unwrap_or_default();
        let reader = Reader { reads_all: owner.is_none(), principal: owner.clone(), teams };
        Ok(Self { owner, reader })
    }
}

//! `/memory`: what agents remember about the caller, who sees and deletes it.

use std::collections::HashMap;

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Json, Router};
use caipe_a2a::server::Principal;
use serde_json::{Value, json};

use super::auth::KEY_HOLDER;
use crate::memory::{Fact, Memory, MemoryError};
use crate::run::{NO_USER, Person, fact_owner};

/// The header with the e-mail address of the user that a client acts for.
const USER: &str = "x-user-email";

/// Facts of a page, by default and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// A refusal, with the reason.
#[derive(Debug)]
struct Refused(StatusCode, &'static str, String);

/// The routes.
pub(super) fn router(memory: Memory) -> Router {
    Router::new()
        .route("/memory", get(list).delete(forget_all))
        .route("/memory/{id}", delete(forget))
        .with_state(memory)
}

async fn list(
    State(memory): State<Memory>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Result<Json<Value>, Refused> {
    let owner = owner(&request)?;
    let mut facts = memory.list(&owner).await?;
    if let Some(agent) = query.get("agent") {
        facts.retain(|fact| fact.agent == *agent);
    }
    page(facts, &query).map(Json)
}

/// A part of the list. `next` is in it if there are more.
fn page(facts: Vec<Fact>, query: &HashMap<String, String>) -> Result<Value, Refused> {
    let invalid = |reason: String| Refused(StatusCode::BAD_REQUEST, "invalid", reason);
    let limit = match query.get("limit").map(|limit| (limit, limit.parse::<usize>())) {
        None => PAGE,
        Some((_, Ok(limit @ 1..=MAX_PAGE))) => limit,
        Some((limit, _)) => {
            return Err(invalid(format!("limit: must be a number from 1 to {MAX_PAGE}, not {limit:?}")));
        }
    };
    let begin = match query.get("after") {
        None => 0,
        Some(after) => {
            let place = facts.iter().position(|fact| fact.id == *after);
            place.ok_or_else(|| invalid(format!("after: there is no fact {after:?}: begin again")))? + 1
        }
    };
    let has_more = facts.len() > begin + limit;
    let shown: Vec<Fact> = facts.into_iter().skip(begin).take(limit).collect();
    let next = shown.last().filter(|_| has_more).map(|fact| fact.id.clone());
    let mut page = json!({ "facts": shown });
    if let Some(next) = next {
        page["next"] = next.into();
    }
    Ok(page)
}

async fn forget_all(State(memory): State<Memory>, request: Request) -> Result<Json<Value>, Refused> {
    let forgotten = memory.forget_all(&owner(&request)?).await?;
    Ok(Json(json!({ "forgotten": forgotten })))
}

/// The fact of another person is as unknown as one that does not exist.
async fn forget(
    State(memory): State<Memory>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, Refused> {
    if memory.forget(&owner(&request)?, None, &id).await? {
        return Ok(Json(json!({ "forgotten": 1 })));
    }
    Err(Refused(StatusCode::NOT_FOUND, "not_found", format!("there is no fact {id:?}")))
}

/// The owner of the facts about the caller, as of a task that it would start.
fn owner(request: &Request) -> Result<String, Refused> {
    let principal = request.extensions().get::<Principal>().map(Principal::as_str);
    let user = user(request.headers())?;
    if user.is_some() && request.extensions().get::<Person>().is_some() {
        let reason = format!("the token names the user: send no {USER}");
        return Err(Refused(StatusCode::BAD_REQUEST, "invalid", reason));
    }
    let principal = principal.filter(|name| *name != KEY_HOLDER);
    let missing =
        || Refused(StatusCode::BAD_REQUEST, "invalid", format!("{NO_USER} Send the header {USER}."));
    fact_owner(principal, user).ok_or_else(missing)
}

fn user(headers: &HeaderMap) -> Result<Option<&str>, Refused> {
    let Some(value) = headers.get(USER) else { return Ok(None) };
    let invalid = |_| Refused(StatusCode::BAD_REQUEST, "invalid", format!("{USER}: must be visible ASCII"));
    value.to_str().map(Some).map_err(invalid)
}

impl From<MemoryError> for Refused {
    fn from(error: MemoryError) -> Self {
        error.log();
        Self(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, error, reason) = self;
        (status, Json(json!({ "error": error, "reason": reason }))).into_response()
    }
}

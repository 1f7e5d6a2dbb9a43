//! Serves the agent's card, with what HTTP caches need.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use sha2::{Digest, Sha256};

use super::headers::version;
use super::jsonrpc::refuse;
use super::router::Server;
use crate::card::{CardMode, document};
use crate::error::A2aError;
use crate::version::ProtocolVersion;

/// Since when the card is as it is.
#[derive(Debug, Default)]
pub(super) struct Cards {
    known: Mutex<Vec<Known>>,
}

/// A document that was served.
#[derive(Debug)]
struct Known {
    merged: bool,
    etag: String,
    since: Timestamp,
}

impl Cards {
    /// When this document was first served; a new one takes the place of the last.
    fn since(&self, merged: bool, etag: &str, now: Timestamp) -> Timestamp {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|known| known.merged == merged && known.etag == etag) {
            return known.since;
        }
        known.retain(|known| known.merged != merged);
        known.push(Known { merged, etag: etag.to_owned(), since: now });
        now
    }
}

pub(super) async fn serve(State(server): State<Arc<Server>>, request: Request) -> Response {
    let asked = version(request.headers(), request.uri());
    let merged = is_merged(server.options.card, asked.as_deref());
    let body = match document(&server.agent.card(), merged) {
        Ok(body) => body,
        Err(error) => {
            let error = A2aError::Internal(format!("failed to encode the card: {error}"));
            return (StatusCode::INTERNAL_SERVER_ERROR, refuse(&error)).into_response();
        }
    };
    let etag = etag(&body);
    let since = server.cards.since(merged, &etag, Timestamp::now());
    let headers = [
        (header::CACHE_CONTROL, format!("public, max-age={}", server.options.card_max_age.as_secs())),
        (header::VARY, "A2A-Version".to_owned()),
        (header::LAST_MODIFIED, http_date(since)),
        (header::ETAG, etag.clone()),
    ];
    if is_fresh(request.headers(), &etag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Only who says 1.0 gets the pure document: an absent version means 0.3, and such a client reads the merged.
fn is_merged(mode: CardMode, asked: Option<&str>) -> bool {
    let speaks_1_0 = asked.and_then(ProtocolVersion::parse) == Some(ProtocolVersion::V1_0);
    mode == CardMode::Negotiate && !speaks_1_0
}

fn etag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("\"{}\"", hex.collect::<String>())
}

/// Compares weakly, as RFC 9110 wants for `If-None-Match`.
fn is_fresh(headers: &HeaderMap, etag: &str) -> bool {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Before the year 0 or after 9999 there is no HTTP date; the clock is then wrong, and so is any answer.
fn http_date(time: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}

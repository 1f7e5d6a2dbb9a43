//! The agent's card as an HTTP response that can be cached.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use sha2::{Digest, Sha256};

use super::headers::version;
use crate::card::{CardMode, document};
use crate::model::AgentCard;
use crate::version::ProtocolVersion;

/// The documents that were served, for their validators.
#[derive(Debug, Default)]
pub(super) struct Cards {
    served: Mutex<Vec<Document>>,
}

#[derive(Debug)]
struct Document {
    merged: bool,
    etag: String,
    since: Timestamp,
}

impl Cards {
    /// When this document was first served. A new document replaces the last one.
    fn since(&self, merged: bool, etag: &str, now: Timestamp) -> Timestamp {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = served.iter().find(|known| known.merged == merged && known.etag == etag) {
            return known.since;
        }
        served.retain(|known| known.merged != merged);
        served.push(Document { merged, etag: etag.to_owned(), since: now });
        now
    }

    /// The response to a request for the card.
    pub(super) fn respond(
        &self,
        card: &AgentCard,
        mode: CardMode,
        max_age: Duration,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> serde_json::Result<Response> {
        let merged = is_merged(mode, version(headers, uri).as_deref());
        let body = document(card, merged)?;
        let etag = etag(&body);
        let since = self.since(merged, &etag, Timestamp::now());
        let cache = [
            (header::CACHE_CONTROL, format!("public, max-age={}", max_age.as_secs())),
            (header::VARY, "A2A-Version".to_owned()),
            (header::LAST_MODIFIED, http_date(since)),
            (header::ETAG, etag.clone()),
        ];
        if is_fresh(headers, &etag) {
            return Ok((StatusCode::NOT_MODIFIED, cache).into_response());
        }
        Ok((cache, [(header::CONTENT_TYPE, "application/json")], body).into_response())
    }
}

/// Only a client that sends `A2A-Version: 1.0` gets the pure document: an absent version means 0.3.
fn is_merged(mode: CardMode, asked: Option<&str>) -> bool {
    let speaks_1_0 = asked.and_then(ProtocolVersion::parse) == Some(ProtocolVersion::V1_0);
    mode == CardMode::Negotiate && !speaks_1_0
}

fn etag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    format!("\"{}\"", hex.collect::<String>())
}

/// Compares weakly, as RFC 9110 requires for `If-None-Match`.
fn is_fresh(headers: &HeaderMap, etag: &str) -> bool {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Empty before the year 0 and after 9999, which HTTP dates do not cover.
fn http_date(time: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}

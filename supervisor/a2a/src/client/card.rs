//! Reads and revalidates an agent's card.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED,
};
use reqwest::{Response, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::call::CallOptions;
use super::error::ClientError;
use super::http::{Head, host, read_body, same_origin, text};
use super::options::ClientOptions;
use super::rpc::bearer_value;
use super::transport::{TimeLeft, transport_error};
use crate::card::{self, OLD_PATH, PATH};
use crate::model::AgentCard;

/// The longest time for which a card is fresh, whatever its server allows.
const LONGEST_FRESH: Duration = Duration::from_hours(24);

/// A card as it was received.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) card: Arc<AgentCard>,
    /// The document itself, because signatures also cover members that the model does not have.
    pub(super) document: Bytes,
    path: &'static str,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    /// When the card must be revalidated.
    pub(super) fresh_until: Instant,
}

/// A request for a card.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) base: &'a Url,
    pub(super) http: &'a reqwest::Client,
    pub(super) options: &'a ClientOptions,
    pub(super) call: &'a CallOptions,
}

/// Rejects a document without a trusted signature, if the options have keys. The cache is shared by clients with
/// different keys, so each use checks again.
pub(super) fn check_trust(document: &[u8], options: &ClientOptions) -> Result<(), ClientError> {
    let Some(keys) = &options.card_keys else { return Ok(()) };
    let verified = card::verify(document, keys)?;
    tracing::debug!(kid = verified.kid, coverage = ?verified.coverage, "verified an agent card");
    Ok(())
}

/// Reads the card at the path of 0.3 and 1.0, or at the path of 0.2. Revalidates a card that is known already.
pub(super) async fn fetch(asked: Asked<'_>, known: Option<&Known>) -> Result<Known, ClientError> {
    let first = known.map_or(PATH, |known| known.path);
    match fetch_at(asked, first, known).await {
        Err(ClientError::Status { status: StatusCode::NOT_FOUND, .. }) => {
            let other = if first == PATH { OLD_PATH } else { PATH };
            fetch_at(asked, other, None).await
        }
        result => result,
    }
}

async fn fetch_at(asked: Asked<'_>, path: &'static str, known: Option<&Known>) -> Result<Known, ClientError> {
    let mut url = asked.base.clone();
    url.set_path(&format!("{}{path}", asked.base.path().trim_end_matches('/')));
    let time = asked.call.time_left(asked.options.timeout)?;
    let request = asked.http.get(url.clone()).headers(headers(asked, known)?).timeout(time.time);
    let host = host(asked.base);
    let response = request.send().await.map_err(|error| transport_error(error, &host, time))?;
    same_origin(&url, &response)?;
    match known {
        Some(known) if response.status() == StatusCode::NOT_MODIFIED => Ok(renewed(known, &response)),
        _ => received(response, &host, path, asked.options.max_message, time).await,
    }
}

fn headers(asked: Asked<'_>, known: Option<&Known>) -> Result<HeaderMap, ClientError> {
    let mut headers = asked.options.headers.clone();
    headers.extend(asked.call.header_map().clone());
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    // An agent may require authentication for its card.
    if let Some(bearer) = &asked.options.bearer {
        headers.insert(AUTHORIZATION, bearer_value(bearer)?);
    }
    if let Some(known) = known {
        for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
            headers.extend(value.clone().map(|value| (name, value)));
        }
    }
    Ok(headers)
}

async fn received(
    response: Response,
    host: &str,
    path: &'static str,
    limit: usize,
    time: TimeLeft,
) -> Result<Known, ClientError> {
    let head = Head::of(&response);
    let (etag, last_modified) = validators(response.headers());
    let fresh_until = fresh_until(response.headers());
    let document = read_body(response, host, limit, time).await?;
    head.check(host, &document)?;
    let card =
        card::parse(&document).map_err(|error| head.explain(ClientError::Card(error), host, &document))?;
    Ok(Known { card: Arc::new(card), document, path, etag, last_modified, fresh_until })
}

/// The same card with a new time limit. A server may send new validators with it.
fn renewed(known: &Known, response: &Response) -> Known {
    let (etag, last_modified) = validators(response.headers());
    Known {
        card: Arc::clone(&known.card),
        document: known.document.clone(),
        path: known.path,
        etag: etag.or_else(|| known.etag.clone()),
        last_modified: last_modified.or_else(|| known.last_modified.clone()),
        fresh_until: fresh_until(response.headers()),
    }
}

fn validators(headers: &HeaderMap) -> (Option<HeaderValue>, Option<HeaderValue>) {
    (headers.get(ETAG).cloned(), headers.get(LAST_MODIFIED).cloned())
}

fn fresh_until(headers: &HeaderMap) -> Instant {
    let now = Instant::now();
    let age = text(headers, CACHE_CONTROL.as_str()).map(max_age).unwrap_or_default();
    now.checked_add(age.min(LONGEST_FRESH)).unwrap_or(now)
}

/// The time for which a response is fresh; zero by default.
fn max_age(cache_control: &str) -> Duration {
    let mut age = Duration::ZERO;
    for directive in cache_control.split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Duration::ZERO,
            "max-age" => {
                age = value.trim().trim_matches('"').parse().map(Duration::from_secs).unwrap_or_default();
            }
            _ => {}
        }
    }
    age
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_card_is_read_as_servers_write_it() {
        for (value, seconds) in [
            ("max-age=60", 60),
            ("public, max-age=3600", 3600),
            ("Max-Age=\"5\"", 5),
            ("max-age=60, no-cache", 0),
            ("no-store", 0),
            ("private", 0),
            ("max-age=-1", 0),
            ("max-age=many", 0),
            ("", 0),
        ] {
            assert_eq!(max_age(value), Duration::from_secs(seconds), "{value:?}");
        }
    }
}

//! The signing keys of a token issuer: fetched, cached and refreshed (RFC 7517).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// How long fetching the keys may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// The largest answer.
const MOST_BYTES: usize = 256 * 1024;
/// Most keys of one issuer.
const MOST_KEYS: usize = 64;
/// How long keys are cached if the answer does not say, and the bounds of its `max-age`.
const DEFAULT_AGE: Duration = Duration::from_hours(1);
const SHORTEST_AGE: Duration = Duration::from_mins(1);
const LONGEST_AGE: Duration = Duration::from_hours(24);
/// How long old keys serve if new ones cannot be fetched.
const STALE: Duration = Duration::from_hours(24);
/// The shortest time between two fetches, because every caller can name an unknown key.
const PAUSE: Duration = Duration::from_secs(10);

/// Why the keys cannot be fetched, for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to fetch the keys of the tokens' issuer: {0}")]
pub(super) struct KeysError(String);

/// The cached signing keys of an issuer.
#[derive(Debug)]
pub(super) struct Keys {
    url: String,
    client: reqwest::Client,
    cached: Mutex<Option<Arc<KeySet>>>,
    /// The time of the last fetch. The holder of the lock fetches; others wait.
    fetched: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct KeySet {
    keys: BTreeMap<String, Key>,
    since: Instant,
    max_age: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) key: DecodingKey,
    /// The only algorithm of the key, if it names one.
    pub(super) algorithm: Option<String>,
}

impl Keys {
    /// The keys at this URL, which are fetched at the first use. Redirects are not followed.
    pub(super) fn new(url: String) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder().timeout(DEADLINE).redirect(reqwest::redirect::Policy::none());
        Ok(Self {
            url,
            client: client.build()?,
            cached: Mutex::default(),
            fetched: tokio::sync::Mutex::default(),
        })
    }

    /// The key of this id; without an id, the only key. `None` if the issuer has no such key.
    pub(super) async fn find(&self, id: Option<&str>) -> Result<Option<Key>, KeysError> {
        let cached = self.cached();
        let key = cached.as_ref().and_then(|cached| cached.find(id));
        if key.is_some() && cached.as_ref().is_some_and(|cached| cached.since.elapsed() < cached.max_age) {
            return Ok(key);
        }
        let refreshed = self.refresh(cached.as_ref()).await;
        let usable = self.cached().filter(|cached| cached.since.elapsed() < STALE);
        match (usable, refreshed) {
            (Some(cached), Ok(())) => Ok(cached.find(id)),
            (Some(cached), Err(error)) => {
                tracing::warn!(%error, "using the cached keys of the tokens' issuer");
                Ok(cached.find(id))
            }
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(KeysError("the cached ones are too old".to_owned())),
        }
    }

    /// Fetches the keys, unless that was tried just now, or another caller has replaced `seen`.
    async fn refresh(&self, seen: Option<&Arc<KeySet>>) -> Result<(), KeysError> {
        let mut fetched = self.fetched.lock().await;
        let cached = self.cached();
        let is_newer =
            cached.as_ref().is_some_and(|cached| seen.is_none_or(|seen| !Arc::ptr_eq(cached, seen)));
        if is_newer {
            return Ok(());
        }
        if fetched.is_some_and(|fetched| fetched.elapsed() < PAUSE) {
            let failed = || KeysError("that failed a moment ago".to_owned());
            return cached.map(drop).ok_or_else(failed);
        }
        *fetched = Some(Instant::now());
        let keys = self.fetch().await.map_err(KeysError)?;
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
        Ok(())
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let reason = |error: reqwest::Error| error.without_url().to_string();
        let mut answer = self.client.get(&self.url).send().await.map_err(reason)?;
        if !answer.status().is_success() {
            return Err(format!("it answers with HTTP {}", answer.status().as_u16()));
        }
        let max_age = max_age(answer.headers());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reason)? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(format!("its answer has more than {MOST_BYTES} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(KeySet { keys: read(&body)?, since: Instant::now(), max_age })
    }

    fn cached(&self) -> Option<Arc<KeySet>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl KeySet {
    fn find(&self, id: Option<&str>) -> Option<Key> {
        match id {
            Some(id) => self.keys.get(id).cloned(),
            None if self.keys.len() == 1 => self.keys.values().next().cloned(),
            None => None,
        }
    }
}

/// How long the answer may be cached by its `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Duration {
    let directives =
        headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let age = directives.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    age.map_or(DEFAULT_AGE, Duration::from_secs).clamp(SHORTEST_AGE, LONGEST_AGE)
}

/// The keys of a set that can verify a signature. Keys for another use or of an unknown kind are ignored.
fn read(body: &[u8]) -> Result<BTreeMap<String, Key>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set =
        serde_json::from_slice(body).map_err(|error| format!("its answer is no key set: {error}"))?;
    if set.keys.len() > MOST_KEYS {
        return Err(format!("it has more than {MOST_KEYS} keys"));
    }
    let usable = set.keys.into_iter().filter_map(usable);
    let keys: BTreeMap<String, Key> = usable.collect();
    if keys.is_empty() { Err("it has no key that checks signatures".to_owned()) } else { Ok(keys) }
}

fn usable(key: Value) -> Option<(String, Key)> {
    let jwk: Jwk = serde_json::from_value(key).ok()?;
    let common = &jwk.common;
    if common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok().filter(|key| key.family() != AlgorithmFamily::Hmac)?;
    let algorithm = common.key_algorithm.map(|algorithm| algorithm.to_string());
    Some((common.key_id.clone().unwrap_or_default(), Key { key, algorithm }))
}

#[cfg(test)]
mod tests {
    use super::{max_age, read};
    use axum::http::{HeaderMap, header};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn the_age_of_keys_is_bounded() {
        for (directives, seconds) in [
            ("", 3600),
            ("public, max-age=600", 600),
            ("max-age=0", 60),
            ("max-age=99999999", 86_400),
            ("max-age=soon", 3600),
            ("no-store", 3600),
        ] {
            let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, directives.parse().unwrap())]);
            assert_eq!(max_age(&headers), Duration::from_secs(seconds), "{directives}");
        }
    }

    #[test]
    fn only_keys_that_check_signatures_are_taken() {
        let point = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
        let good = json!({"kty": "EC", "crv": "P-256", "kid": "a", "use": "sig", "x": point, "y": point});
        let others = [
            json!({"kty": "oct", "kid": "shared", "k": "c2VjcmV0c2VjcmV0"}),
            json!({"kty": "EC", "crv": "P-256", "kid": "enc", "use": "enc", "x": point, "y": point}),
            json!({"kty": "LMS", "kid": "later"}),
            json!("no key"),
        ];
        let set = |keys: &[serde_json::Value]| json!({ "keys": keys }).to_string();
        let all: Vec<_> = others.iter().cloned().chain([good.clone()]).collect();
        let keys = read(set(&all).as_bytes()).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["a"]);
        assert!(read(set(&others).as_bytes()).is_err());
        assert!(read(b"{}").is_err() && read(b"<html>").is_err());
        assert!(read(set(&vec![good; 65]).as_bytes()).is_err());
    }
}

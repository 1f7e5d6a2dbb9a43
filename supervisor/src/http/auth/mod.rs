//! Authenticates requests. A server beyond loopback needs a key, an issuer of tokens, or an explicit flag.

mod keys;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caipe_a2a::server::Principal;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use subtle::ConstantTimeEq as _;

pub use tokens::{RulesError, TokenRules};
use tokens::{TokenError, Tokens};

use crate::run::{Person, SUBJECT};

/// Paths that need no credential: the cards, which say how to authenticate, and the probes.
const OPEN: [&str; 4] = ["/.well-known/agent-card.json", "/.well-known/agent.json", "/health", "/ready"];

/// The only path that the status token opens.
const STATUS: &str = "/internal/status";

/// The fewest characters of the shared key of a server beyond loopback.
pub const SHORTEST_KEY: usize = 16;

/// The principal of the shared key. No principal of a token equals it, because each begins with [`SUBJECT`].
pub(in crate::http) const KEY_HOLDER: &str = "shared-key";

/// The principal of the Slack bot, a client that states the user of each message like a holder of the shared key.
const SLACK_BOT: &str = "client:slack-bot";

/// The caller of an accepted request, and the person of its token.
type Admitted = (Principal, Option<Person>);

/// The credentials that a server accepts.
#[derive(Debug, Default)]
pub struct Keyring {
    /// A key that all callers share (`A2A_AUTH_SHARED_KEY`).
    pub shared: Option<SecretString>,
    /// The key of the Slack bot, derived from `CAIPE_AGENT_KEY`.
    pub slack_bot: Option<SecretString>,
    /// Tokens of an issuer (`A2A_AUTH_OAUTH2`).
    pub tokens: Option<TokenRules>,
    /// The key to `GET /internal/status`, and to nothing else (`CAIPE_STATUS_TOKEN`).
    pub status: Option<SecretString>,
}

/// Accepts requests with the shared key, the key of the Slack bot or a token.
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Option<Arc<SecretString>>,
    slack_bot: Option<Arc<SecretString>>,
    tokens: Option<Arc<Tokens>>,
    status: Option<Arc<SecretString>>,
    /// Whether the server needs no credential because it listens on loopback.
    loopback_only: bool,
}

/// Why a server must not listen.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Every machine could send requests.
    #[error(
        "refusing to listen on {0} without authentication: set A2A_AUTH_SHARED_KEY, listen on 127.0.0.1, or pass \
         --allow-unauthenticated"
    )]
    Open(SocketAddr),
    /// The shared key is easy to guess.
    #[error(
        "refusing to listen on {0} with a key of less than {SHORTEST_KEY} characters: set A2A_AUTH_SHARED_KEY to a longer one, for \
         example the output of `openssl rand -hex 32`"
    )]
    ShortKey(SocketAddr),
    /// The rules of tokens are wrong.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

/// The response to a rejected request: the status, the reason, and the header `WWW-Authenticate` (RFC 6750).
#[derive(Debug, PartialEq, Eq)]
struct Refused(StatusCode, String, String);

impl Guard {
    /// The guard of a listener at `address`.
    ///
    /// # Errors
    /// If other machines could send requests without a credential or with a short key, or if the rules of tokens are wrong.
    /// The status token does not count as a credential, because it opens one path only, and neither does the key of the Slack
    /// bot, because no other caller has it.
    pub fn new(address: SocketAddr, keyring: Keyring, allow_open: bool) -> Result<Self, GuardError> {
        let closed = keyring.shared.is_some() || keyring.tokens.is_some();
        let is_public = !address.ip().is_loopback();
        if !closed && is_public && !allow_open {
            return Err(GuardError::Open(address));
        }
        let is_short = |key: &SecretString| key.expose_secret().chars().count() < SHORTEST_KEY;
        if is_public && keyring.shared.as_ref().is_some_and(is_short) {
            return Err(GuardError::ShortKey(address));
        }
        let loopback_only = !closed && address.ip().is_loopback();
        let tokens = keyring.tokens.map(Tokens::new).transpose()?.map(Arc::new);
        let [shared, slack_bot, status] =
            [keyring.shared, keyring.slack_bot, keyring.status].map(|key| key.map(Arc::new));
        Ok(Self { shared, slack_bot, tokens, status, loopback_only })
    }

    /// Whether the server needs no credential because it listens on loopback.
    pub(super) fn is_loopback_only(&self) -> bool {
        self.loopback_only
    }

    /// The principal of an accepted request; `None` for an anonymous one.
    async fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Admitted>, Refused> {
        if method == Method::OPTIONS || OPEN.contains(&path) {
            return Ok(None);
        }
        let is_status = path == STATUS;
        if is_status && method == Method::GET && has_key(headers, self.status.as_deref()) {
            return Ok(None);
        }
        match self.authenticate(headers).await {
            Ok(admitted) => Ok(Some(admitted)),
            Err(refused) => {
                let closed = self.shared.is_some() || self.tokens.is_some();
                let locked = closed || (is_status && self.status.is_some());
                if locked { Err(refused) } else { Ok(None) }
            }
        }
    }

    /// The principal of a request: one for all holders of the shared key, one for the Slack bot, the subject for a token.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Admitted, Refused> {
        if has_key(headers, self.shared.as_deref()) {
            return Ok((Principal::new(KEY_HOLDER), None));
        }
        if has_key(headers, self.slack_bot.as_deref()) {
            return Ok((Principal::new(SLACK_BOT), None));
        }
        let Some(given) = bearer(headers) else { return Err(self.without_bearer(headers)) };
        let Some(tokens) = &self.tokens else {
            return Err(unauthorized("the bearer token is not the right one"));
        };
        let person = tokens.person(given).await.map_err(|error| refused(&error))?;
        Ok((Principal::new(format!("{SUBJECT}{}", person.subject)), Some(person)))
    }

    fn without_bearer(&self, headers: &HeaderMap) -> Refused {
        unauthorized(match (&self.tokens, &self.shared) {
            _ if headers.contains_key(header::AUTHORIZATION) => "the bearer token is not the right one",
            (Some(_), None) => "send a token of the issuer as \"Authorization: Bearer TOKEN\"",
            (Some(_), Some(_)) => "send the shared key or a token as \"Authorization: Bearer TOKEN\"",
            (None, _) => "send the shared key as \"Authorization: Bearer KEY\"",
        })
    }
}

/// The middleware that authenticates requests.
pub(crate) async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    match guard.admit(request.method(), request.uri().path(), request.headers()).await {
        Ok(None) => {}
        Ok(Some((principal, person))) => {
            let extensions = request.extensions_mut();
            extensions.insert(principal);
            person.map(|person| extensions.insert(person));
        }
        Err(refused) => return refused.into_response(),
    }
    next.run(request).await
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, reason, challenge) = self;
        let error = match status {
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            _ => "unavailable",
        };
        let body = axum::Json(json!({"error": error, "reason": reason}));
        (status, [(header::WWW_AUTHENTICATE, challenge)], body).into_response()
    }
}

fn unauthorized(reason: impl Into<String>) -> Refused {
    Refused(StatusCode::UNAUTHORIZED, reason.into(), "Bearer".to_owned())
}

/// The refusal of a token.
fn refused(error: &TokenError) -> Refused {
    let reason = error.to_string();
    match error {
        TokenError::Bad(_) => {
            Refused(StatusCode::UNAUTHORIZED, reason, r#"Bearer error="invalid_token""#.to_owned())
        }
        TokenError::Scope(scopes) => {
            let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scopes}""#);
            Refused(StatusCode::FORBIDDEN, reason, challenge)
        }
        TokenError::Unchecked(error) => {
            tracing::warn!(%error, "failed to verify a token");
            Refused(StatusCode::SERVICE_UNAVAILABLE, reason, "Bearer".to_owned())
        }
    }
}

/// Whether a request has this key. The comparison takes a time that depends on the length only.
pub(crate) fn has_key(headers: &HeaderMap, key: Option<&SecretString>) -> bool {
    let (Some(key), Some(given)) = (key, bearer(headers)) else { return false };
    given.as_bytes().ct_eq(key.expose_secret().as_bytes()).into()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(shared: Option<&str>, status: Option<&str>) -> Keyring {
        let secret = |text: &str| SecretString::from(text.to_owned());
        Keyring { shared: shared.map(secret), status: status.map(secret), ..Keyring::default() }
    }

    fn guard(shared: Option<&str>, status: Option<&str>) -> Guard {
        Guard::new("0.0.0.0:1".parse().unwrap(), keyring(shared, status), true).unwrap()
    }

    fn headers(value: &str) -> HeaderMap {
        if value.is_empty() {
            return HeaderMap::new();
        }
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn only_loopback_is_open_without_a_key() {
        let new = |address: &str, keyring, open| Guard::new(address.parse().unwrap(), keyring, open);
        assert!(new("127.0.0.1:8000", Keyring::default(), false).is_ok());
        assert!(new("[::1]:8000", Keyring::default(), false).is_ok());
        let refused = new("0.0.0.0:8000", Keyring::default(), false).unwrap_err();
        assert!(refused.to_string().contains("A2A_AUTH_SHARED_KEY"), "{refused}");
        assert!(new("0.0.0.0:8000", Keyring::default(), true).is_ok());
        // The status token locks one path, not the server.
        assert!(new("0.0.0.0:8000", keyring(None, Some("st4tus")), false).is_err());
        let bot = Keyring { slack_bot: Some("bots-key".to_owned().into()), ..Keyring::default() };
        assert!(new("0.0.0.0:8000", bot, false).is_err(), "only the bot has its key");
        assert!(new("0.0.0.0:8000", keyring(Some("s3cret-of-16-chars"), Some("st4tus")), false).is_ok());
        let short = new("0.0.0.0:8000", keyring(Some("s3cret"), None), false).unwrap_err();
        assert!(short.to_string().contains("less than 16 characters"), "{short}");
        assert!(new("127.0.0.1:8000", keyring(Some("s3cret"), None), false).is_ok());
    }

    #[tokio::test]
    async fn each_key_opens_what_it_is_for() {
        let (both, neither) = (guard(Some("s3cret-of-16-chars"), Some("st4tus")), guard(None, None));
        let (shared, status) = (guard(Some("s3cret-of-16-chars"), None), guard(None, Some("st4tus")));
        let cases = [
            (&both, "POST", "/", "Bearer s3cret-of-16-chars", true),
            (&both, "POST", "/", "bearer s3cret-of-16-chars", true),
            (&both, "POST", "/", "Bearer s3cret-of-16-charS", false),
            (&both, "POST", "/", "Basic s3cret-of-16-chars", false),
            (&both, "POST", "/", "s3cret-of-16-chars", false),
            (&both, "POST", "/", "Bearer st4tus", false),
            (&both, "GET", "/tools", "", false),
            (&both, "GET", "/tools", "Bearer st4tus", false),
            (&both, "GET", STATUS, "Bearer st4tus", true),
            (&both, "GET", STATUS, "Bearer s3cret-of-16-chars", true),
            (&both, "GET", STATUS, "Bearer st4tuS", false),
            (&both, "POST", STATUS, "Bearer st4tus", false),
            (&both, "GET", "/internal/status/", "Bearer st4tus", false),
            (&both, "GET", STATUS, "", false),
            (&shared, "GET", STATUS, "Bearer st4tus", false),
            (&status, "GET", STATUS, "Bearer st4tus", true),
            (&status, "GET", STATUS, "", false),
            (&status, "POST", "/", "", true),
            (&neither, "GET", STATUS, "", true),
            (&neither, "POST", "/", "Bearer whatever", true),
        ];
        for (guard, method, path, value, admitted) in cases {
            let caller = guard.admit(&method.parse().unwrap(), path, &headers(value)).await;
            assert_eq!(caller.is_ok(), admitted, "{method} {path} {value}");
        }
    }

    #[tokio::test]
    async fn the_slack_bot_is_a_principal_of_its_own() {
        let shared = "s3cret-of-16-chars";
        let keys = Keyring { slack_bot: Some("bots-key".to_owned().into()), ..keyring(Some(shared), None) };
        let guard = Guard::new("0.0.0.0:1".parse().unwrap(), keys, false).unwrap();
        for (key, expected) in [(shared, Some("shared-key")), ("bots-key", Some(SLACK_BOT)), ("other", None)]
        {
            let headers = headers(&format!("Bearer {key}"));
            let admitted = guard.admit(&Method::POST, "/", &headers).await.ok().flatten();
            let principal = admitted.as_ref().map(|(principal, _)| principal.as_str());
            assert_eq!(principal, expected, "{key}");
        }
    }

    #[tokio::test]
    async fn cards_and_probes_stay_open() {
        for path in OPEN {
            let guard = guard(Some("s3cret-of-16-chars"), Some("st4tus"));
            assert!(guard.admit(&Method::GET, path, &HeaderMap::new()).await.is_ok(), "{path}");
        }
    }
}

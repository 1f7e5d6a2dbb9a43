//! Verifies bearer tokens: signed JSON Web Tokens of an issuer (RFC 7519, RFC 9068).

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;

use super::keys::{Keys, KeysError};
use crate::run::Person;

/// The longest token that is verified.
const MOST_BYTES: usize = 16 * 1024;
/// The longest subject; it becomes the owner of tasks.
const MOST_SUBJECT: usize = 256;
/// The most groups of a token that count.
const MOST_GROUPS: usize = 1024;
/// The tolerated difference of clocks, in seconds.
const LEEWAY: u64 = 10;
/// Signatures with a private key of the issuer. Shared secrets and unsigned tokens are not accepted.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Which tokens are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRules {
    pub issuer: String,
    pub audience: String,
    /// The URL of the issuer's keys (`JWKS_URI`).
    pub jwks_uri: String,
    /// The accepted algorithms (`ALLOWED_ALGORITHMS`); if empty, all supported ones.
    pub algorithms: Vec<String>,
    /// The accepted OAuth clients (`OAUTH2_CLIENT_ID`); if empty, every client.
    pub clients: Vec<String>,
    /// The required scopes (`OAUTH2_REQUIRED_SCOPES`).
    pub scopes: Vec<String>,
}

/// Why the rules are wrong.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// An unsupported algorithm.
    #[error("failed to take ALLOWED_ALGORITHMS: {0:?} is none of RS256, RS384, RS512, ES256, ES384, EdDSA")]
    Algorithm(String),
    /// A text that cannot be a scope.
    #[error(
        "failed to read OAUTH2_REQUIRED_SCOPES: {0:?} is not a scope (printable ASCII without quotes and backslashes)"
    )]
    Scope(String),
    /// There is no HTTP client for the keys.
    #[error("failed to make a client for the keys of tokens: {0}")]
    Client(#[from] reqwest::Error),
}

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// It is invalid, for a reason that the caller may read.
    #[error("the token is not good here: {0}")]
    Bad(&'static str),
    /// It lacks a scope. Contains the required scopes, separated by spaces.
    #[error("the token lacks a scope; it needs: {0}")]
    Scope(String),
    /// It cannot be verified now.
    #[error("tokens cannot be checked now; try again later")]
    Unchecked(#[from] KeysError),
}

/// Verifies tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    keys: Keys,
    validation: Validation,
    clients: Vec<String>,
    scopes: Vec<String>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    /// The client's id, as Okta names it.
    cid: Option<String>,
    /// The same by RFC 9068.
    client_id: Option<String>,
    /// The same as Keycloak names it.
    azp: Option<String>,
    /// The user's e-mail address.
    email: Option<String>,
    email_verified: Option<bool>,
    /// The groups of the user, as Okta, Keycloak and Entra ID name them.
    groups: Option<Value>,
    /// The scopes, separated by spaces (RFC 9068).
    scope: Option<Value>,
    /// The same as Entra ID (one text) and Okta (a list) name it.
    scp: Option<Value>,
}

/// The entries of the claim `groups`: a list, or one text.
fn groups(claim: Option<Value>) -> Vec<String> {
    let entries = match claim {
        Some(Value::Array(entries)) => entries,
        other => other.into_iter().collect(),
    };
    let text = |entry: Value| entry.as_str().map(str::to_owned);
    entries.into_iter().take(MOST_GROUPS).filter_map(text).collect()
}

/// Whether a claim, a text with spaces or a list, has this scope.
fn has_scope(claim: &Value, scope: &str) -> bool {
    match claim {
        Value::String(text) => text.split(' ').any(|own| own == scope),
        Value::Array(list) => list.iter().any(|own| own == scope),
        _ => false,
    }
}

impl Tokens {
    pub(super) fn new(rules: TokenRules) -> Result<Self, RulesError> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.algorithms = algorithms(&rules.algorithms)?;
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_audience(&[&rules.audience]);
        validation.set_issuer(&[&rules.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        if let Some(scope) = rules.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(RulesError::Scope(scope.clone()));
        }
        let (clients, scopes) = (rules.clients, rules.scopes);
        Ok(Self { keys: Keys::new(rules.jwks_uri)?, validation, clients, scopes })
    }

    /// The person or the service of a valid token.
    pub(super) async fn person(&self, token: &str) -> Result<Person, TokenError> {
        if token.len() > MOST_BYTES {
            return Err(TokenError::Bad("it is too long"));
        }
        let header = decode_header(token).map_err(|error| TokenError::Bad(reason(&error)))?;
        if !self.validation.algorithms.contains(&header.alg) {
            return Err(TokenError::Bad("it is signed in a way that is not taken"));
        }
        let key = self.keys.find(header.kid.as_deref()).await?;
        let key = key.ok_or(TokenError::Bad("its issuer has no such key"))?;
        if key.algorithm.is_some_and(|algorithm| algorithm != format!("{:?}", header.alg)) {
            return Err(TokenError::Bad("its key is for another algorithm"));
        }
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let claims = decode::<Claims>(token, &key.key, &validation)
            .map_err(|error| TokenError::Bad(reason(&error)))?
            .claims;
        self.admit(claims)
    }

    fn admit(&self, claims: Claims) -> Result<Person, TokenError> {
        let client = claims.cid.or(claims.client_id).or(claims.azp);
        if !self.clients.is_empty() && !client.is_some_and(|client| self.clients.contains(&client)) {
            return Err(TokenError::Bad("it is of a client that may not call"));
        }
        let has = |scope: &String| {
            [&claims.scope, &claims.scp].into_iter().flatten().any(|own| has_scope(own, scope))
        };
        if !self.scopes.iter().all(has) {
            return Err(TokenError::Scope(self.scopes.join(" ")));
        }
        if claims.sub.is_empty() || claims.sub.len() > MOST_SUBJECT {
            return Err(TokenError::Bad("its subject is empty or too long"));
        }
        let is_address = |email: &String| !email.is_empty() && email.len() <= MOST_SUBJECT;
        let email = claims.email.filter(is_address).filter(|_| claims.email_verified != Some(false));
        Ok(Person { subject: claims.sub, email, groups: groups(claims.groups) })
    }
}

fn algorithms(names: &[String]) -> Result<Vec<Algorithm>, RulesError> {
    if names.is_empty() {
        return Ok(ALGORITHMS.to_vec());
    }
    let known = |name: &String| {
        let algorithm = name.parse().ok().filter(|algorithm| ALGORITHMS.contains(algorithm));
        algorithm.ok_or_else(|| RulesError::Algorithm(name.clone()))
    };
    names.iter().map(known).collect()
}

/// Whether a text is one scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

/// Why a token is invalid, in words that contain nothing of it.
fn reason(error: &jsonwebtoken::errors::Error) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not good yet",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "it lacks one of exp, iss, aud, sub",
        _ => "it is no signed JSON Web Token that is understood",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::{TokenError, TokenRules, Tokens};

    fn tokens(clients: &[&str], scopes: &[&str]) -> Tokens {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Tokens::new(TokenRules {
            issuer: "https://id.example.com".to_owned(),
            audience: "caipe".to_owned(),
            jwks_uri: "https://id.example.com/keys".to_owned(),
            algorithms: Vec::new(),
            clients: owned(clients),
            scopes: owned(scopes),
        })
        .unwrap()
    }

    fn admitted(tokens: &Tokens, claims: Value) -> Result<String, TokenError> {
        tokens.admit(from_value(claims).unwrap()).map(|person| person.subject)
    }

    #[test]
    fn the_user_is_the_address_that_the_issuer_has_verified() {
        let tokens = tokens(&[], &[]);
        for (claims, email) in [
            (json!({"sub": "a", "email": "a@example.com"}), Some("a@example.com")),
            (json!({"sub": "a", "email": "a@example.com", "email_verified": true}), Some("a@example.com")),
            (json!({"sub": "a", "email": "a@example.com", "email_verified": false}), None),
            (json!({"sub": "a"}), None),
        ] {
            let person = tokens.admit(from_value(claims).unwrap()).unwrap();
            assert_eq!(person.email.as_deref(), email);
        }
    }

    #[test]
    fn groups_are_a_list_or_one_text() {
        let tokens = tokens(&[], &[]);
        for (groups, expected) in [
            (json!(["leads", "sre"]), vec!["leads", "sre"]),
            (json!("leads"), vec!["leads"]),
            (json!(["leads", 5, null]), vec!["leads"]),
            (json!({"leads": true}), vec![]),
            (json!(null), vec![]),
        ] {
            let claims = json!({"sub": "a", "groups": groups});
            assert_eq!(tokens.admit(from_value(claims).unwrap()).unwrap().groups, expected, "{groups}");
        }
    }

    #[test]
    fn scopes_are_found_in_the_claim_of_each_provider() {
        let tokens = tokens(&[], &["call", "read"]);
        let lacking = TokenError::Scope("call read".to_owned());
        for (claims, has) in [
            (json!({"sub": "a", "scope": "read call"}), true),
            (json!({"sub": "a", "scp": "call read other"}), true),
            (json!({"sub": "a", "scp": ["call", "read"]}), true),
            (json!({"sub": "a", "scope": "call", "scp": ["read"]}), true),
            (json!({"sub": "a", "scope": "call"}), false),
            (json!({"sub": "a", "scope": "call reader"}), false),
            (json!({"sub": "a", "scope": 5, "scp": [{"call": "read"}]}), false),
            (json!({"sub": "a"}), false),
        ] {
            let expected = if has { Ok("a".to_owned()) } else { Err(lacking.clone()) };
            assert_eq!(admitted(&tokens, claims.clone()), expected, "{claims}");
        }
    }

    #[test]
    fn a_client_is_known_by_the_claim_of_each_provider() {
        let tokens = tokens(&["bot"], &[]);
        for (claims, known) in [
            (json!({"sub": "a", "cid": "bot"}), true),
            (json!({"sub": "a", "client_id": "bot"}), true),
            (json!({"sub": "a", "azp": "bot"}), true),
            (json!({"sub": "a", "cid": "other", "azp": "bot"}), false),
            (json!({"sub": "bot"}), false),
        ] {
            assert_eq!(admitted(&tokens, claims.clone()).is_ok(), known, "{claims}");
        }
    }

    #[test]
    fn a_scope_that_no_header_can_carry_is_refused() {
        for scope in ["", "a\"b", "a b", "a\\b", "größe"] {
            assert!(!super::is_scope(scope), "{scope:?}");
        }
        assert!(super::is_scope("api://caipe/.default"));
    }
}

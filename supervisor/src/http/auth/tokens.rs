//! Bearer tokens of an issuer: JSON Web Tokens that are signed (RFC 7519, RFC 9068), checked as upstream contract 9 says.

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde::Deserialize;

use super::keys::{Keys, KeysError};

/// The longest token that is looked at.
const MOST_BYTES: usize = 16 * 1024;
/// The longest subject; it becomes the owner of tasks.
const MOST_SUBJECT: usize = 256;
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 10;
/// Signatures with keys that only the issuer has. A shared secret, or none, is no signature of an issuer.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Which tokens are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRules {
    /// Who must have issued them (`ISSUER`).
    pub issuer: String,
    /// For whom they must be (`AUDIENCE`).
    pub audience: String,
    /// Where the issuer's keys are (`JWKS_URI`).
    pub jwks_uri: String,
    /// By which algorithms they may be signed (`ALLOWED_ALGORITHMS`); empty means all that are known.
    pub algorithms: Vec<String>,
    /// The clients that may have asked for them (`OAUTH2_CLIENT_ID`, the claim `cid`); empty means any.
    pub clients: Vec<String>,
}

/// Why the rules cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// An algorithm that is not known, or no signature of an issuer.
    #[error("failed to take ALLOWED_ALGORITHMS: {0:?} is none of RS256, RS384, RS512, ES256, ES384, EdDSA")]
    Algorithm(String),
    /// No client for the keys.
    #[error("failed to make a client for the keys of tokens: {0}")]
    Client(#[from] reqwest::Error),
}

/// Why a token does not open.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// It is not good, for a reason that its bearer may read.
    #[error("the token is not good here: {0}")]
    Bad(&'static str),
    /// It cannot be checked now.
    #[error("tokens cannot be checked now; try again later")]
    Unchecked(#[from] KeysError),
}

/// What checks tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    keys: Keys,
    validation: Validation,
    clients: Vec<String>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    cid: Option<String>,
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
        Ok(Self { keys: Keys::new(rules.jwks_uri)?, validation, clients: rules.clients })
    }

    /// Whose token this is.
    pub(super) async fn subject(&self, token: &str) -> Result<String, TokenError> {
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

    fn admit(&self, claims: Claims) -> Result<String, TokenError> {
        let known = |client: &String| self.clients.contains(client);
        if !self.clients.is_empty() && !claims.cid.as_ref().is_some_and(known) {
            return Err(TokenError::Bad("it is of a client that may not call"));
        }
        if claims.sub.is_empty() || claims.sub.len() > MOST_SUBJECT {
            return Err(TokenError::Bad("its subject is empty or too long"));
        }
        Ok(claims.sub)
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

/// What is wrong with a token, in words that hold nothing of it.
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

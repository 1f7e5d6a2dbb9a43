//! Verifies the signatures of a peer's card (1.0, section 8.4.3).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::Value;

use super::canonical::{Coverage, canonical};

/// Largest card in bytes.
const MAX_CARD: usize = 1024 * 1024;

/// Longest protected header in bytes, encoded.
const MAX_HEADER: usize = 8 * 1024;

/// Most signatures that are checked.
const MAX_SIGNATURES: usize = 16;

/// A card without a trusted signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The keys cannot be read.
    #[error("failed to read the key set: {0}")]
    Keys(String),
    /// The card cannot be read.
    #[error("failed to verify the agent card: {0}")]
    Card(String),
    /// The card has no signature.
    #[error("failed to verify the agent card: it is not signed")]
    Unsigned,
    /// No signature names a trusted key.
    #[error("failed to verify the agent card: none of its keys is trusted ({})", .0.join(", "))]
    UnknownKey(Vec<String>),
    /// No signature of a trusted key fits.
    #[error(
        "failed to verify the agent card: its signature does not fit; it was changed, or signed by somebody else"
    )]
    Invalid,
}

/// Keys that are trusted to sign cards, found by their ids.
#[derive(Debug, Clone, Default)]
pub struct KeySet {
    keys: Vec<TrustedKey>,
}

#[derive(Debug, Clone)]
struct TrustedKey {
    kid: String,
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
}

impl KeySet {
    /// Reads a JSON Web Key Set (RFC 7517). Keys without an id, for encryption, shared secrets and those of an
    /// unknown kind are left out.
    pub fn parse(json: &[u8]) -> Result<Self, SignatureError> {
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<Value>,
        }
        if json.len() > MAX_CARD {
            return Err(SignatureError::Keys(format!("it is larger than {MAX_CARD} bytes")));
        }
        let set: Keys =
            serde_json::from_slice(json).map_err(|error| SignatureError::Keys(error.to_string()))?;
        let keys = set.keys.into_iter().filter_map(|key| trusted(&serde_json::from_value(key).ok()?));
        Ok(Self { keys: keys.collect() })
    }

    /// The number of usable keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no usable key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// The kind of the key determines the algorithms, not the card: otherwise a card could use a public key as a shared
/// secret.
fn trusted(jwk: &Jwk) -> Option<TrustedKey> {
    let mut algorithms = match &jwk.algorithm {
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        AlgorithmParameters::RSA(_) => {
            use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
            vec![RS256, RS384, RS512, PS256, PS384, PS512]
        }
        _ => return None,
    };
    if matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return None;
    }
    if let Some(only) = jwk.common.key_algorithm {
        algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
    }
    let kid = jwk.common.key_id.clone()?;
    Some(TrustedKey { kid, key: DecodingKey::from_jwk(jwk).ok()?, algorithms })
}

/// A valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The id of its key.
    pub kid: String,
    pub coverage: Coverage,
}

#[derive(Deserialize)]
struct Signature {
    protected: String,
    signature: String,
}

#[derive(Deserialize)]
struct Header {
    alg: Algorithm,
    kid: String,
    /// Critical extensions, of which none is supported (RFC 7515, section 4.1.11).
    crit: Option<Value>,
}

/// Verifies a card as it was received, unknown members included. One signature by a trusted key is enough.
///
/// Fetches nothing, because the writer of the card chooses its `jku`.
pub fn verify(json: &[u8], keys: &KeySet) -> Result<Verified, SignatureError> {
    if json.len() > MAX_CARD {
        return Err(SignatureError::Card(format!("it is larger than {MAX_CARD} bytes")));
    }
    let card: Value =
        serde_json::from_slice(json).map_err(|error| SignatureError::Card(error.to_string()))?;
    let signatures = signatures(&card);
    if signatures.is_empty() {
        return Err(SignatureError::Unsigned);
    }
    let forms = forms(&card)?;
    let (mut strangers, mut known) = (Vec::new(), false);
    for signature in signatures {
        let Some(header) = header(&signature.protected) else { continue };
        let mut candidates = keys.keys.iter().filter(|key| key.kid == header.kid).peekable();
        match candidates.peek() {
            Some(_) => known = true,
            None => strangers.push(header.kid.chars().take(80).collect()),
        }
        if let Some(coverage) = candidates.find_map(|key| fits(&signature, &header, key, &forms)) {
            return Ok(Verified { kid: header.kid, coverage });
        }
    }
    Err(if known || strangers.is_empty() {
        SignatureError::Invalid
    } else {
        SignatureError::UnknownKey(strangers)
    })
}

fn signatures(card: &Value) -> Vec<Signature> {
    let all = card.get("signatures").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let read = |signature: &Value| Signature::deserialize(signature).ok();
    all.iter().take(MAX_SIGNATURES).filter_map(read).collect()
}

/// The forms that a signature may cover, in base64. The schema of 1.0 applies to cards of 1.0 only, because it does not
/// contain the addresses of 0.3.
fn forms(card: &Value) -> Result<Vec<(Coverage, String)>, SignatureError> {
    let interfaces = card.get("supportedInterfaces").and_then(Value::as_array);
    let is_new = interfaces.is_some_and(|interfaces| !interfaces.is_empty());
    let coverages: &[Coverage] =
        if is_new { &[Coverage::Document, Coverage::Schema] } else { &[Coverage::Document] };
    let form = |coverage: &Coverage| {
        let payload = canonical(card, *coverage).map_err(|error| SignatureError::Card(error.to_string()))?;
        Ok((*coverage, URL_SAFE_NO_PAD.encode(payload)))
    };
    coverages.iter().map(form).collect()
}

fn header(protected: &str) -> Option<Header> {
    if protected.len() > MAX_HEADER {
        return None;
    }
    let header: Header = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(protected).ok()?).ok()?;
    header.crit.is_none().then_some(header)
}

fn fits(
    signature: &Signature,
    header: &Header,
    key: &TrustedKey,
    forms: &[(Coverage, String)],
) -> Option<Coverage> {
    if !key.algorithms.contains(&header.alg) {
        return None;
    }
    let verifies = |payload: &str| {
        let input = format!("{}.{payload}", signature.protected);
        crypto::verify(&signature.signature, input.as_bytes(), &key.key, header.alg).unwrap_or(false)
    };
    forms.iter().find_map(|(coverage, payload)| verifies(payload).then_some(*coverage))
}

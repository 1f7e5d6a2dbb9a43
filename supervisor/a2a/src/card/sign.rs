//! Signs cards (1.0, section 8.4.2).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{Jwk, JwkSet, ThumbprintHash};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde::Serialize;

use super::canonical::{Coverage, canonical};
use super::write::value;
use crate::model::{AgentCard, AgentCardSignature};

/// A failure to sign a card.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The key cannot be read, or its kind is not supported.
    #[error(
        "failed to read the signing key: it must be an unencrypted private key in PKCS#8 PEM \
         (`-----BEGIN PRIVATE KEY-----`), P-256, P-384, Ed25519 or RSA; \
         `openssl pkcs8 -topk8 -nocrypt -in KEY` converts other forms"
    )]
    Key,
    /// The signature could not be made.
    #[error("failed to sign the agent card: {0}")]
    Sign(String),
}

/// A key that signs cards, with its id and its header.
#[derive(Clone)]
pub struct CardSigner {
    key: EncodingKey,
    algorithm: Algorithm,
    kid: String,
    protected: String,
}

/// Omits the key.
impl fmt::Debug for CardSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardSigner")
            .field("kid", &self.kid)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Protected<'a> {
    alg: Algorithm,
    typ: &'static str,
    kid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jku: Option<&'a str>,
}

impl CardSigner {
    /// Reads an unencrypted private key in PKCS#8 PEM. Its kind determines the algorithm: ES256 for P-256, ES384 for P-384,
    /// `EdDSA` for Ed25519, RS256 for RSA. `kid` is its id, by default its thumbprint (RFC 7638); `jku` is the URL of its
    /// public key.
    pub fn from_pem(pem: &[u8], kid: Option<&str>, jku: Option<&str>) -> Result<Self, SignError> {
        let (key, algorithm) = usable_key(pem).ok_or(SignError::Key)?;
        let kid = match kid {
            Some(kid) => kid.to_owned(),
            None => public(&key, algorithm)?.thumbprint(ThumbprintHash::SHA256).map_err(unsigned)?,
        };
        let protected = Protected { alg: algorithm, typ: "JOSE", kid: &kid, jku };
        let protected = serde_json::to_vec(&protected).map_err(unsigned)?;
        Ok(Self { key, algorithm, kid, protected: URL_SAFE_NO_PAD.encode(protected) })
    }

    /// The id of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as a JSON Web Key Set (RFC 7517).
    pub fn key_set(&self) -> Result<JwkSet, SignError> {
        let mut key = public(&self.key, self.algorithm)?;
        key.common.key_id = Some(self.kid.clone());
        Ok(JwkSet { keys: vec![key] })
    }

    fn signature(&self, payload: &[u8]) -> Result<AgentCardSignature, SignError> {
        let input = format!("{}.{}", self.protected, URL_SAFE_NO_PAD.encode(payload));
        let signature = crypto::sign(input.as_bytes(), &self.key, self.algorithm).map_err(unsigned)?;
        Ok(AgentCardSignature { protected: self.protected.clone(), signature, header: None })
    }
}

fn public(key: &EncodingKey, algorithm: Algorithm) -> Result<Jwk, SignError> {
    Jwk::from_encoding_key(key, algorithm).map_err(unsigned)
}

fn unsigned(error: impl fmt::Display) -> SignError {
    SignError::Sign(error.to_string())
}

/// Reads a key and signs with it, so that an unusable key fails now and not with the first card.
fn usable_key(pem: &[u8]) -> Option<(EncodingKey, Algorithm)> {
    let keys = [
        (EncodingKey::from_ec_pem(pem), &[Algorithm::ES256, Algorithm::ES384][..]),
        (EncodingKey::from_ed_pem(pem), &[Algorithm::EdDSA][..]),
        (EncodingKey::from_rsa_pem(pem), &[Algorithm::RS256][..]),
    ];
    keys.into_iter().find_map(|(key, algorithms)| {
        let key = key.ok()?;
        let usable = |algorithm: &&Algorithm| crypto::sign(b"", &key, **algorithm).is_ok();
        let algorithm = *algorithms.iter().find(usable)?;
        Some((key, algorithm))
    })
}

/// Adds signatures to a card.
///
/// One card is served as two documents, pure and merged, and the specification and the official SDKs differ in
/// what a signature covers. The card gets a signature for each form that differs, up to three, in both documents.
/// A verifier needs one that fits.
pub fn sign(card: &mut AgentCard, signer: &CardSigner) -> Result<(), SignError> {
    let (pure, merged) = (value(card, false).map_err(unsigned)?, value(card, true).map_err(unsigned)?);
    let mut payloads: Vec<Vec<u8>> = Vec::new();
    for (document, coverage) in
        [(&pure, Coverage::Document), (&merged, Coverage::Document), (&pure, Coverage::Schema)]
    {
        let payload = canonical(document, coverage).map_err(unsigned)?;
        if !payloads.contains(&payload) {
            payloads.push(payload);
        }
    }
    for payload in payloads {
        card.signatures.push(signer.signature(&payload)?);
    }
    Ok(())
}

//! Keys of programs that read the catalogue. A key is shown once; its hash is stored in one file below the data directory.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::private_file;

/// The prefix of the id of a key.
const PREFIX: &str = "sk_";
const ID_CHARS: usize = 12;
const SECRET_CHARS: usize = 32;
/// Most keys of all owners.
const MOST_KEYS: usize = 1000;
/// Most keys of one owner that are neither revoked nor expired.
const MOST_OF_OWNER: usize = 20;
/// Characters that nobody confuses in a terminal.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Why a key is not made, listed or revoked.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeysError {
    #[error("there are too many keys: revoke one")]
    Full,
    #[error("there is no key {0:?}")]
    Unknown(String),
    #[error("the key belongs to another principal")]
    Foreign,
    #[error("failed to read or write the keys in {}: {reason}", .path.display())]
    Storage { path: PathBuf, reason: String },
    #[error("the system gives no random numbers")]
    Random,
}

/// What is stored of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub key_id: String,
    /// The SHA-256 of `PEPPER:SECRET`, in hexadecimal.
    hash: String,
    /// The principal that made it; none if the server does not distinguish its callers.
    pub owner: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl KeyRecord {
    /// Whether it opens the catalogue at a time.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// A new key.
#[derive(Debug)]
pub struct NewKey {
    /// The whole key, which is not stored.
    pub key: SecretString,
    pub key_id: String,
    pub expires_at: Option<Timestamp>,
}

/// The keys of all principals.
#[derive(Debug)]
pub struct ApiKeys {
    file: PathBuf,
    pepper: SecretString,
    records: Mutex<Vec<KeyRecord>>,
}

impl ApiKeys {
    /// The keys in a file, which is made with the first key. `pepper` is a secret that is not in the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(file: PathBuf, pepper: SecretString) -> Result<Self, ApiKeysError> {
        let storage = |reason: String| ApiKeysError::Storage { path: file.clone(), reason };
        let records = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| storage(error.to_string()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(storage(error.to_string())),
        };
        Ok(Self { file, pepper, records: Mutex::new(records) })
    }

    /// Makes a key of a principal, and stores its hash. Blocks.
    ///
    /// # Errors
    /// There are too many keys, or the file cannot be written.
    pub fn create(
        &self,
        owner: Option<&str>,
        now: Timestamp,
        lifetime: Option<Duration>,
    ) -> Result<NewKey, ApiKeysError> {
        let (key_id, secret) = (format!("{PREFIX}{}", random(ID_CHARS)?), random(SECRET_CHARS)?);
        let expires_at = lifetime.and_then(|lifetime| now.checked_add(lifetime).ok());
        let hash = self.hash(&secret);
        let owner_name = owner.map(str::to_owned);
        let record = KeyRecord {
            key_id: key_id.clone(),
            hash,
            owner: owner_name,
            created_at: now,
            expires_at,
            revoked_at: None,
        };
        let mut records = self.records();
        let of_owner = records.iter().filter(|it| it.owner.as_deref() == owner && it.is_valid(now)).count();
        let mut next = records.clone();
        if next.len() >= MOST_KEYS {
            next.retain(|it| it.is_valid(now));
        }
        if of_owner >= MOST_OF_OWNER || next.len() >= MOST_KEYS {
            return Err(ApiKeysError::Full);
        }
        next.push(record);
        self.save(&next)?;
        *records = next;
        Ok(NewKey { key: format!("{key_id}.{secret}").into(), key_id, expires_at })
    }

    /// The keys of a principal, the oldest first.
    pub fn of(&self, owner: Option<&str>) -> Vec<KeyRecord> {
        self.records().iter().filter(|it| it.owner.as_deref() == owner).cloned().collect()
    }

    /// Revokes a key. Returns whether it was valid. Blocks.
    ///
    /// # Errors
    /// There is no such key, it belongs to another principal, or the file cannot be written.
    pub fn revoke(&self, key_id: &str, owner: Option<&str>, now: Timestamp) -> Result<bool, ApiKeysError> {
        let mut records = self.records();
        let mut next = records.clone();
        let unknown = || ApiKeysError::Unknown(key_id.chars().take(100).collect());
        let record = next.iter_mut().find(|it| it.key_id == key_id).ok_or_else(unknown)?;
        if record.owner.as_deref() != owner {
            return Err(ApiKeysError::Foreign);
        }
        let was_valid = record.is_valid(now);
        record.revoked_at.get_or_insert(now);
        self.save(&next)?;
        *records = next;
        Ok(was_valid)
    }

    /// The record of a key, if it is valid at a time.
    pub fn verify(&self, key: &str, now: Timestamp) -> Option<KeyRecord> {
        let (key_id, secret) = key.split_once('.')?;
        let hash = self.hash(secret);
        let records = self.records();
        let record = records.iter().find(|it| it.key_id == key_id)?;
        let is_same: bool = record.hash.as_bytes().ct_eq(hash.as_bytes()).into();
        (is_same && record.is_valid(now)).then(|| record.clone())
    }

    fn hash(&self, secret: &str) -> String {
        let digest = Sha256::digest(format!("{}:{secret}", self.pepper.expose_secret()));
        digest.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn save(&self, records: &[KeyRecord]) -> Result<(), ApiKeysError> {
        let written = serde_json::to_vec(records)
            .map_err(std::io::Error::from)
            .and_then(|bytes| private_file::replace(&self.file, &bytes));
        written.map_err(|error| ApiKeysError::Storage { path: self.file.clone(), reason: error.to_string() })
    }

    fn records(&self) -> MutexGuard<'_, Vec<KeyRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Random letters and digits. Bytes beyond a multiple of the alphabet are drawn again, so each character is as likely.
fn random(count: usize) -> Result<String, ApiKeysError> {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let mut bytes = [0; 64];
        rand::fill(&mut bytes).map_err(|_| ApiKeysError::Random)?;
        let fair = bytes.iter().filter(|byte| usize::from(**byte) < ALPHABET.len() * 4);
        let chars = fair.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        text.extend(chars.take(count - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_key_opens_the_catalogue_until_it_is_revoked_or_expires() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keys.json");
        let keys = ApiKeys::open(file.clone(), "pepper".into()).unwrap();
        let new = keys.create(Some("sub:anna"), at(0), Some(Duration::from_mins(1))).unwrap();
        let key = new.key.expose_secret();
        let (id, secret) = key.split_once('.').unwrap();
        assert_eq!((id.len(), secret.len(), id.starts_with("sk_")), (15, 32, true));
        assert_eq!(keys.verify(key, at(59)).unwrap().owner.as_deref(), Some("sub:anna"));
        assert!(keys.verify(key, at(60)).is_none());
        for wrong in ["", ".", id, &format!("{id}."), &format!("{id}.{}", "a".repeat(32)), "sk_x.y"] {
            assert!(keys.verify(wrong, at(1)).is_none(), "{wrong}");
        }
        let stored = fs::read_to_string(&file).unwrap();
        assert!(!stored.contains(secret) && stored.contains(id));
        // Another process reads it, but not with another pepper.
        assert!(ApiKeys::open(file.clone(), "pepper".into()).unwrap().verify(key, at(1)).is_some());
        assert!(ApiKeys::open(file, "other".into()).unwrap().verify(key, at(1)).is_none());
        assert!(matches!(keys.revoke(id, Some("sub:bob"), at(2)), Err(ApiKeysError::Foreign)));
        assert!(matches!(keys.revoke("sk_x", None, at(2)), Err(ApiKeysError::Unknown(_))));
        assert!(keys.revoke(id, Some("sub:anna"), at(2)).unwrap());
        assert!(!keys.revoke(id, Some("sub:anna"), at(3)).unwrap());
        assert!(keys.verify(key, at(3)).is_none());
    }

    #[test]
    fn a_principal_has_a_bounded_number_of_keys() {
        let dir = tempfile::tempdir().unwrap();
        let keys = ApiKeys::open(dir.path().join("keys.json"), "".into()).unwrap();
        for _ in 0..MOST_OF_OWNER {
            keys.create(None, at(0), None).unwrap();
        }
        assert!(matches!(keys.create(None, at(0), None), Err(ApiKeysError::Full)));
        assert!(keys.create(Some("sub:anna"), at(0), None).is_ok());
        assert_eq!(keys.of(None).len(), MOST_OF_OWNER);
    }
}

//! Encryption of one value. Each value has a data key, which is encrypted with a key of the administrator.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::error::StoreError;
use crate::json::{ENCRYPTED, key_of};

/// The bytes of a key of AES-256.
const KEY_BYTES: usize = 32;

/// Most values that one data key encrypts. Random nonces are safe for far more.
const MOST_VALUES: u32 = 1 << 24;

/// Most data keys of other processes in memory.
const MOST_DATA_KEYS: usize = 1024;

/// Bound to each encrypted data key.
const DATA_KEY: &str = "data key";

/// The keys of a store. The first one encrypts, and all decrypt.
pub struct Keyring {
    keys: Vec<(String, RandomizedNonceKey)>,
    current: Mutex<Option<DataKey>>,
    opened: Mutex<HashMap<String, Arc<RandomizedNonceKey>>>,
}

/// The data key of new values.
struct DataKey {
    key: Arc<RandomizedNonceKey>,
    /// The id of the key that encrypts it, and the encrypted data key.
    wrapped: String,
    left: u32,
}

/// Without the keys.
impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|(id, _)| id.as_str()).collect();
        f.debug_struct("Keyring").field("keys", &ids).finish_non_exhaustive()
    }
}

impl Keyring {
    /// Reads keys: in each line an id and 32 bytes as base64, with a space or a colon between them.
    ///
    /// # Errors
    /// When a line is wrong, an id is there twice, or there is no key. The error does not contain the key.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let mut keys: Vec<(String, RandomizedNonceKey)> = Vec::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (line, content) in lines.filter(|(_, content)| !content.is_empty()) {
            let refused = |reason: &str| refused(&format!("line {} {reason}", line + 1));
            let (id, key) = content.split_once([' ', ':']).ok_or_else(|| {
                refused("has no id: write ID:KEY, with the key of `openssl rand -base64 32`")
            })?;
            if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
                return Err(refused("has a wrong id: use letters, digits, - and _"));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(refused("has the id of another line"));
            }
            let bytes = STANDARD.decode(key.trim()).ok().filter(|bytes| bytes.len() == KEY_BYTES);
            let bytes = bytes.ok_or_else(|| {
                refused("has a wrong key: it must be 32 bytes as base64, for example of `openssl rand -base64 32`")
            })?;
            keys.push((id.to_owned(), cipher(&bytes)?));
        }
        if keys.is_empty() {
            return Err(refused("there is no key"));
        }
        Ok(Self { keys, current: Mutex::default(), opened: Mutex::default() })
    }

    /// Encrypts a value. `place` is what the value is and where it is: it can be decrypted only there.
    pub(super) fn seal(&self, place: &str, value: &str) -> Result<String, StoreError> {
        let (key, wrapped) = self.data_key()?;
        let sealed = seal(&key, &format!("{wrapped}\n{place}"), value.as_bytes().to_vec())?;
        Ok(format!("{ENCRYPTED}{wrapped}.{sealed}"))
    }

    /// Decrypts a value. One that was stored without encryption is returned as it is.
    pub(super) fn open(&self, place: &str, value: String) -> Result<String, StoreError> {
        let Some(rest) = value.strip_prefix(ENCRYPTED) else { return Ok(value) };
        let corrupt = |reason: String| StoreError::Corrupt { what: place.replace('\n', " "), reason };
        let Some((wrapped, sealed)) = rest.rsplit_once('.') else {
            return Err(corrupt("its encryption is damaged".to_owned()));
        };
        let id = key_of(&value).unwrap_or_default();
        let Some((_, key)) = self.keys.iter().find(|(known, _)| known == id) else {
            return Err(corrupt(format!(
                "it is encrypted with the key {id:?}, which is not among the keys of the store: add that key"
            )));
        };
        let changed = || {
            corrupt(format!(
                "it cannot be decrypted: the key {id:?} has another value now, or the stored value was changed or moved"
            ))
        };
        let data_key = self.opened_data_key(wrapped, id, key).ok_or_else(changed)?;
        let bytes = open(&data_key, &format!("{wrapped}\n{place}"), sealed).ok_or_else(changed)?;
        String::from_utf8(bytes).map_err(|_| changed())
    }

    /// The data key of new values, with its encrypted form.
    fn data_key(&self) -> Result<(Arc<RandomizedNonceKey>, String), StoreError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match current.take().filter(|found| found.left > 0) {
            Some(found) => found,
            None => self.new_data_key()?,
        };
        let DataKey { key, wrapped, left } = current.insert(found);
        *left -= 1;
        Ok((key.clone(), wrapped.clone()))
    }

    fn new_data_key(&self) -> Result<DataKey, StoreError> {
        let (id, key) = self.keys.first().ok_or_else(|| refused("there is no key"))?;
        let mut bytes = vec![0; KEY_BYTES];
        rand::fill(&mut bytes).map_err(|_| StoreError::Encode("there is no randomness".to_owned()))?;
        let data_key = Arc::new(cipher(&bytes)?);
        let wrapped = format!("{id}.{}", seal(key, DATA_KEY, bytes)?);
        Ok(DataKey { key: data_key, wrapped, left: MOST_VALUES })
    }

    fn opened_data_key(
        &self,
        wrapped: &str,
        id: &str,
        key: &RandomizedNonceKey,
    ) -> Option<Arc<RandomizedNonceKey>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = opened.get(wrapped) {
            return Some(found.clone());
        }
        let bytes = open(key, DATA_KEY, wrapped.strip_prefix(id)?.strip_prefix('.')?)?;
        let found = Arc::new(cipher(&bytes).ok()?);
        if opened.len() >= MOST_DATA_KEYS {
            opened.clear();
        }
        opened.insert(wrapped.to_owned(), found.clone());
        Some(found)
    }
}

fn refused(reason: &str) -> StoreError {
    StoreError::Encode(format!("the keys of the store cannot be used: {reason}"))
}

fn cipher(bytes: &[u8]) -> Result<RandomizedNonceKey, StoreError> {
    RandomizedNonceKey::new(&AES_256_GCM, bytes).map_err(|_| refused("a key has a wrong length"))
}

/// The nonce, the encrypted value and its tag, as base64.
fn seal(key: &RandomizedNonceKey, place: &str, mut value: Vec<u8>) -> Result<String, StoreError> {
    let nonce = key
        .seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut value)
        .map_err(|_| StoreError::Encode("a value cannot be encrypted".to_owned()))?;
    let mut whole = nonce.as_ref().to_vec();
    whole.append(&mut value);
    Ok(URL_SAFE_NO_PAD.encode(whole))
}

/// `None` if the value was not encrypted with this key for this place.
fn open(key: &RandomizedNonceKey, place: &str, sealed: &str) -> Option<Vec<u8>> {
    let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let (nonce, value) = whole.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut value = value.to_vec();
    let length = key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut value).ok()?.len();
    value.truncate(length);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const NEW: &str = "new:HxweHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=";

    #[test]
    fn a_value_is_read_only_in_its_place() {
        let keys = Keyring::parse(OLD).unwrap();
        let sealed = keys.seal("run\nc", "hello").unwrap();
        assert!(!sealed.contains("hello") && sealed.starts_with("enc1.old."), "{sealed}");
        assert_eq!(keys.open("run\nc", sealed.clone()).unwrap(), "hello");
        for (place, value) in
            [("run\nd", sealed.clone()), ("run\nc", format!("{}A", &sealed[..sealed.len() - 1]))]
        {
            // The last character may have been an A.
            if place == "run\nd" || value != sealed {
                let error = keys.open(place, value).unwrap_err().to_string();
                assert!(error.contains("was changed or moved"), "{error}");
            }
        }
        assert_ne!(keys.seal("run\nc", "hello").unwrap(), sealed, "the same nonce again");
    }

    #[test]
    fn an_old_key_reads_and_the_first_one_writes() {
        let sealed = Keyring::parse(OLD).unwrap().seal("p", "hello").unwrap();
        let both = Keyring::parse(&format!("{NEW}\n{OLD}\n")).unwrap();
        assert_eq!(both.open("p", sealed.clone()).unwrap(), "hello");
        assert!(both.seal("p", "hello").unwrap().starts_with("enc1.new."));
        assert_eq!(both.open("p", "{}".to_owned()).unwrap(), "{}", "a value from before");
        let error = Keyring::parse(NEW).unwrap().open("p", sealed.clone()).unwrap_err().to_string();
        assert!(error.contains("the key \"old\"") && error.contains("add that key"), "{error}");
        let other = Keyring::parse(&NEW.replace("new", "old")).unwrap();
        let error = other.open("p", sealed).unwrap_err().to_string();
        assert!(error.contains("has another value now"), "{error}");
    }

    #[test]
    fn wrong_keys_are_refused_and_never_shown() {
        for wrong in ["", "s3cret", "a:s3cret", "a b:s3cret", "a:AAECAw==", &format!("{OLD}\n{OLD}")] {
            let error = Keyring::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("the keys of the store") && !error.contains("s3cret"), "{error}");
        }
        let shown = format!("{:?}", Keyring::parse(OLD).unwrap());
        assert!(shown.contains("old") && !shown.contains("AAECAw"), "{shown}");
    }
}

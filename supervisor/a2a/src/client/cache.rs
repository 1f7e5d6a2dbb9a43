//! The cache of agent cards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::card::{Asked, Known, fetch};
use super::error::ClientError;
use super::options::ClientOptions;

/// A cache of agent cards, for programs that create many clients. Cheap to clone; clones share the cards.
///
/// A card is used as long as its `Cache-Control: max-age` allows, and then revalidated with `If-None-Match`. The key of a
/// card is its address, the token and the headers, because an agent may return different cards to different callers. A full
/// cache drops the card that was used longest ago.
#[derive(Debug, Clone)]
pub struct CardCache {
    shared: Arc<Mutex<Entries>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Entries {
    known: HashMap<Key, Entry>,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    known: Arc<Known>,
    used: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    base: String,
    /// The digest of the credentials.
    digest: Option<[u8; 32]>,
}

impl Key {
    fn of(asked: Asked<'_>) -> Self {
        let digest = digest(asked.options);
        Self { base: asked.base.to_string(), digest }
    }
}

/// A digest of the token and the headers, if there are any.
fn digest(options: &ClientOptions) -> Option<[u8; 32]> {
    if options.bearer.is_none() && options.headers.is_empty() {
        return None;
    }
    let mut headers: Vec<(&str, &[u8])> =
        options.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    headers.sort_unstable();
    let bearer = options.bearer.as_ref().map(|bearer| bearer.expose_secret().as_bytes());
    let parts =
        bearer.into_iter().chain(headers.into_iter().flat_map(|(name, value)| [name.as_bytes(), value]));
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    Some(digest.finalize().into())
}

impl Default for CardCache {
    fn default() -> Self {
        Self::new(256)
    }
}

impl CardCache {
    /// An empty cache for at most `capacity` cards; 0 keeps none.
    pub fn new(capacity: usize) -> Self {
        Self { shared: Arc::default(), capacity }
    }

    pub fn len(&self) -> usize {
        self.entries().known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&self) {
        self.entries().known.clear();
    }

    /// The card; requests it only if the cached one is not fresh.
    pub(super) async fn card(&self, asked: Asked<'_>) -> Result<Arc<Known>, ClientError> {
        match self.get(asked) {
            Some(known) if Instant::now() < known.fresh_until => Ok(known),
            known => self.ask(asked, known.as_deref()).await,
        }
    }

    /// Requests the card, or revalidates `known`.
    pub(super) async fn ask(
        &self,
        asked: Asked<'_>,
        known: Option<&Known>,
    ) -> Result<Arc<Known>, ClientError> {
        let known = Arc::new(fetch(asked, known).await?);
        self.put(asked, &known);
        Ok(known)
    }

    pub(super) fn get(&self, asked: Asked<'_>) -> Option<Arc<Known>> {
        let mut entries = self.entries();
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.known.get_mut(&Key::of(asked))?;
        entry.used = now;
        Some(Arc::clone(&entry.known))
    }

    fn put(&self, asked: Asked<'_>, known: &Arc<Known>) {
        if self.capacity == 0 {
            return;
        }
        let mut entries = self.entries();
        entries.clock += 1;
        let used = entries.clock;
        entries.known.insert(Key::of(asked), Entry { known: Arc::clone(known), used });
        if entries.known.len() > self.capacity {
            let oldest = entries.known.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.map(|key| entries.known.remove(&key));
        }
    }

    /// A panic cannot leave the entries inconsistent, so a poisoned lock is usable.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What agents remember about the people that they work for.
//!
//! A fact belongs to one person and one agent. Agents save, find and forget the facts of their own; the person sees and deletes all.

mod fact;
mod search;

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use caipe_store::{FactChange, FactStore, StoreError};
use jiff::{SignedDuration, Timestamp};

pub use fact::Fact;
use fact::one_line;

/// Most facts of an agent about one person.
pub const MAX_FACTS: usize = 200;

/// Most bytes of a fact, and of its topic.
pub const MAX_TEXT: usize = 2048;
pub const MAX_TOPIC: usize = 128;

/// The facts in a store.
#[derive(Debug, Clone)]
pub struct Memory(Arc<dyn FactStore>);

/// Why a fact cannot be saved, found or forgotten. The words are for the model.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A text is too long.
    #[error("The argument `{argument}` has {bytes} bytes, and at most {most} are saved: shorten it.")]
    TooLong { argument: &'static str, bytes: usize, most: usize },
    /// There are too many facts.
    #[error("There are {MAX_FACTS} facts, and no more are saved: forget some with memory_forget.")]
    Full,
    /// The store failed. Its error, which can name a server, is for the log.
    #[error("What is remembered cannot be read or changed right now.")]
    Store(#[from] StoreError),
}

impl MemoryError {
    /// Logs the error of the store.
    pub(crate) fn log(&self) {
        if let Self::Store(error) = self {
            tracing::error!(%error, "failed to read or change what is remembered about a person");
        }
    }
}

/// What an agent wants to remember.
#[derive(Debug, Clone, Copy)]
pub struct NewFact<'a> {
    pub text: &'a str,
    pub topic: Option<&'a str>,
    /// How long the fact is kept; without it, until it is forgotten.
    pub ttl: Option<SignedDuration>,
}

impl Memory {
    /// The facts in this store.
    pub fn new(store: Arc<dyn FactStore>) -> Self {
        Self(store)
    }

    /// Saves a fact, and returns it. The same text again is the same fact, whose term starts again.
    ///
    /// # Errors
    /// When it is too long, there are too many, or the store fails.
    pub async fn save(&self, owner: &str, agent: &str, new: NewFact<'_>) -> Result<Fact, MemoryError> {
        let NewFact { text, topic, ttl } = new;
        let (text, topic) = (one_line(text), topic.map(one_line));
        fits("fact", &text, MAX_TEXT)?;
        fits("topic", topic.as_deref().unwrap_or_default(), MAX_TOPIC)?;
        let known = self.facts_of(owner, agent).await?;
        let same = known.iter().find(|fact| fact.text == text);
        if same.is_none() && known.len() >= MAX_FACTS {
            return Err(MemoryError::Full);
        }
        let saved = Timestamp::now();
        let fact = Fact {
            id: same.map_or_else(fact::new_id, |same| same.id.clone()),
            agent: agent.to_owned(),
            text,
            topic: topic.or_else(|| same.and_then(|same| same.topic.clone())),
            saved,
            expires: ttl.and_then(|ttl| saved.checked_add(ttl).ok()),
        };
        self.0.change_facts(FactChange::Save(fact.record(owner)?)).await?;
        Ok(fact)
    }

    /// The facts of an agent about a person that match words best, the best first; without words, the newest.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn search(
        &self,
        (owner, agent): (&str, &str),
        words: &str,
        limit: usize,
    ) -> Result<Vec<Fact>, MemoryError> {
        let facts = self.facts_of(owner, agent).await?;
        Ok(search::search(facts, words).into_iter().take(limit).collect())
    }

    /// The facts of all agents about a person, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, owner: &str) -> Result<Vec<Fact>, MemoryError> {
        let records = self.0.facts(owner, Timestamp::now()).await?;
        Ok(records.into_iter().map(Fact::try_from).collect::<Result<_, StoreError>>()?)
    }

    /// Forgets a fact; of one agent only, if it is given. Returns whether there was such a fact of this person.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget(&self, owner: &str, agent: Option<&str>, id: &str) -> Result<bool, MemoryError> {
        if let Some(agent) = agent
            && !self.facts_of(owner, agent).await?.iter().any(|fact| fact.id == id)
        {
            return Ok(false);
        }
        let remove = FactChange::Remove { owner: owner.to_owned(), id: id.to_owned() };
        Ok(self.0.change_facts(remove).await? > 0)
    }

    /// Forgets all facts about a person. Returns how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_all(&self, owner: &str) -> Result<u64, MemoryError> {
        Ok(self.0.change_facts(FactChange::RemoveAll { owner: owner.to_owned() }).await?)
    }

    async fn facts_of(&self, owner: &str, agent: &str) -> Result<Vec<Fact>, MemoryError> {
        let mut facts = self.list(owner).await?;
        facts.retain(|fact| fact.agent == agent);
        Ok(facts)
    }
}

fn fits(argument: &'static str, text: &str, most: usize) -> Result<(), MemoryError> {
    if text.len() <= most { Ok(()) } else { Err(MemoryError::TooLong { argument, bytes: text.len(), most }) }
}

/// Finds the person that a task is for.
#[async_trait]
pub trait FactOwners: Send + Sync {
    /// The owner of the facts about the person that the task is for.
    async fn owner_of(&self, task: &str) -> Result<String, String>;
}

/// Where the memory is found once the process serves people. A process that serves none has no memory.
#[derive(Clone, Default)]
pub struct MemorySlot(Arc<OnceLock<(Memory, Weak<dyn FactOwners>)>>);

impl std::fmt::Debug for MemorySlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MemorySlot").finish_non_exhaustive()
    }
}

impl MemorySlot {
    /// Sets the memory; the first one stays.
    pub fn set(&self, memory: Memory, owners: Weak<dyn FactOwners>) {
        drop(self.0.set((memory, owners)));
    }

    /// The memory, and what finds the owner of a task.
    pub fn get(&self) -> Option<(Memory, Arc<dyn FactOwners>)> {
        let (memory, owners) = self.0.get()?;
        Some((memory.clone(), owners.upgrade()?))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

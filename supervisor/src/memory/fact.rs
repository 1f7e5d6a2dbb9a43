//! A fact about a person.

use caipe_store::{FactRecord, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The characters of an id.
const ID_CHARS: usize = 12;

/// A fact about a person, as people and models read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Unique among the facts about the person.
    pub id: String,
    /// The agent that remembers it.
    pub agent: String,
    #[serde(rename = "fact")]
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    pub saved: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// The part of a fact that stores do not parse and may encrypt.
#[derive(Serialize, Deserialize)]
struct Content {
    fact: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
}

impl Fact {
    /// The fact in the store.
    pub(super) fn record(&self, owner: &str) -> Result<FactRecord, StoreError> {
        let content = Content { fact: self.text.clone(), topic: self.topic.clone() };
        Ok(FactRecord {
            owner: owner.to_owned(),
            id: self.id.clone(),
            agent: self.agent.clone(),
            saved: self.saved,
            expires: self.expires,
            json: serde_json::to_string(&content).map_err(|error| StoreError::Encode(error.to_string()))?,
        })
    }
}

impl TryFrom<FactRecord> for Fact {
    type Error = StoreError;

    fn try_from(record: FactRecord) -> Result<Self, StoreError> {
        let FactRecord { id, agent, saved, expires, json, owner: _ } = record;
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            what: format!("the fact {id:?}"),
            reason: format!("{error}; if facts were encrypted, give the keys of the store"),
        };
        let Content { fact: text, topic } = serde_json::from_str(&json).map_err(corrupt)?;
        Ok(Self { id, agent, text, topic, saved, expires })
    }
}

/// A random id. It tells nothing of the text, which may be encrypted.
pub(super) fn new_id() -> String {
    Uuid::new_v4().simple().to_string().chars().take(ID_CHARS).collect()
}

/// The text with one space between its words, so that the same fact has the same text.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! The records of a copy. Stored values are texts, so that they come back byte for byte.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::commit_rules::Owner;
use crate::control::{Control, ControlMessage};
use crate::event_chunk::EventChunk;
use crate::facts::{FactRecord, StoredFact};
use crate::push::PushRecord;
use crate::types::OutboxEntry;

/// One record: a line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Conversation(ConversationRecord),
    Task(TaskContent),
    /// Events of the last task before this record.
    Events(EventsRecord),
    Facts(FactsRecord),
}

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRecord {
    pub context: String,
    /// The principal of its first task; `None` if it never had a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerRecord>,
    /// When it was last written, in microseconds since 1970.
    pub touched: i64,
    pub run: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, Vec<String>>,
}

/// The owner of a conversation, which may be nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    pub principal: Option<String>,
}

impl From<Owner> for OwnerRecord {
    fn from(Owner(principal): Owner) -> Self {
        Self { principal }
    }
}

/// A task without its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskContent {
    pub id: String,
    /// The record of the task, as JSON.
    pub record: String,
    /// The owner of its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerRecord>,
    /// The token of its newest lease, and the number of the last commit under it.
    pub token: u64,
    pub number: u64,
    /// Owners may have shown events up to this number.
    pub reserved: u64,
    /// The control messages up to this number are handled.
    pub handled: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) controls: Vec<StoredControl>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pushes: Vec<StoredPush>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outbox: Vec<StoredOutboxEntry>,
}

/// A control message that waits, or one of the last handled ones, whose ids are remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredControl {
    pub(crate) number: u64,
    pub(crate) id: String,
    pub(crate) body: String,
}

impl From<Control> for StoredControl {
    fn from(Control { number, message: ControlMessage { id, body } }: Control) -> Self {
        Self { number, id, body }
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredPush {
    pub(crate) id: String,
    pub(crate) delivered: u64,
    pub(crate) body: String,
}

/// Without the body, which holds credentials.
impl fmt::Debug for StoredPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, delivered, body: _ } = self;
        f.debug_struct("StoredPush").field("id", id).field("delivered", delivered).finish_non_exhaustive()
    }
}

impl From<PushRecord> for StoredPush {
    fn from(PushRecord { task: _, id, body, delivered }: PushRecord) -> Self {
        Self { id, delivered, body }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredOutboxEntry {
    pub(crate) id: String,
    /// In microseconds since 1970.
    pub(crate) deadline: i64,
    pub(crate) body: String,
}

impl From<OutboxEntry> for StoredOutboxEntry {
    fn from(OutboxEntry { task: _, id, body, deadline }: OutboxEntry) -> Self {
        Self { id, deadline: deadline.as_microsecond(), body }
    }
}

/// Chunks of a task's log, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsRecord {
    pub task: String,
    /// The first and the last number of each chunk, and its JSON.
    pub(crate) chunks: Vec<(u64, u64, String)>,
}

impl EventsRecord {
    pub(crate) fn of(task: &str, chunks: Vec<EventChunk>) -> Self {
        let chunks = chunks.into_iter().map(|EventChunk { first, last, json }| (first, last, json));
        Self { task: task.to_owned(), chunks: chunks.collect() }
    }
}

/// The facts about a person that have not expired.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsRecord {
    pub owner: String,
    /// By id.
    pub(crate) facts: BTreeMap<String, StoredFact>,
}

/// Without the owner and the facts, which are about a person.
impl fmt::Debug for FactsRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&String> = self.facts.keys().collect();
        f.debug_struct("FactsRecord").field("ids", &ids).finish_non_exhaustive()
    }
}

impl FactsRecord {
    pub(crate) fn of(owner: &str, facts: Vec<FactRecord>) -> Self {
        let facts = facts.into_iter().map(|fact| (fact.id.clone(), fact.into()));
        Self { owner: owner.to_owned(), facts: facts.collect() }
    }

    /// The facts as a store has them.
    pub(crate) fn records(&self) -> impl Iterator<Item = FactRecord> {
        self.facts.iter().map(|(id, fact)| fact.clone().into_record(&self.owner, id.clone()))
    }
}

impl Record {
    /// What the record is about, for a person.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Conversation(conversation) => format!("conversation {}", conversation.context),
            Self::Task(task) => format!("task {}", task.id),
            Self::Events(events) => format!("the events of task {}", events.task),
            Self::Facts(facts) => format!("the facts about {}", facts.owner),
        }
    }

    /// About as many bytes as the record has in memory.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Conversation(conversation) => {
                let items = conversation.lists.values().flatten().map(String::len);
                conversation.run.len() + items.sum::<usize>()
            }
            Self::Task(task) => task.record.len(),
            Self::Events(events) => events.chunks.iter().map(|(.., json)| json.len()).sum(),
            Self::Facts(facts) => {
                facts.facts.iter().map(|(id, fact)| id.len() + fact.agent.len() + fact.json.len()).sum()
            }
        }
    }
}

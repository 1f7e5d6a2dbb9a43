//! Which values are encrypted, and what each is bound to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keyring::Keyring;
use crate::conversation::{ConversationChange, ListChange};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::{decode, encode, key_of};
use crate::push::PushRecord;
use crate::types::{TaskRecord, TaskReply};

/// The encrypted part of a task's record.
#[derive(Serialize, Deserialize)]
struct Content {
    request: Value,
    replies: Vec<TaskReply>,
    status_message: Option<Value>,
}

impl Keyring {
    pub(super) fn record(&self, mut record: TaskRecord) -> Result<TaskRecord, StoreError> {
        let Some(sealed) = record.request.as_str().filter(|text| key_of(text).is_some()) else {
            return Ok(record);
        };
        let json = self.open(&place_of_record(&record), sealed.to_owned())?;
        let content: Content = decode(|| format!("the record of task {:?}", record.id), &json)?;
        Content { request: record.request, replies: record.replies, status_message: record.status_message } =
            content;
        Ok(record)
    }

    pub(super) fn sealed_record(&self, record: TaskRecord) -> Result<TaskRecord, StoreError> {
        let place = place_of_record(&record);
        let TaskRecord { request, replies, status_message, .. } = record;
        let json = encode(&Content { request, replies, status_message })?;
        let request = Value::String(self.seal(&place, &json)?);
        Ok(TaskRecord { request, replies: Vec::new(), status_message: None, ..record })
    }

    pub(super) fn sealed_conversation(
        &self,
        context: &str,
        change: ConversationChange,
    ) -> Result<ConversationChange, StoreError> {
        let list = |ListChange { list, keep, append }: ListChange| {
            let item =
                |(number, item): (u64, String)| self.seal(&place_of_item(context, &list, number), &item);
            let append = (keep..).zip(append).map(item).collect::<Result<_, _>>()?;
            Ok(ListChange { list, keep, append })
        };
        let lists = change.lists.into_iter().map(list).collect::<Result<_, StoreError>>()?;
        Ok(ConversationChange { run: self.seal(&place(["run", context]), &change.run)?, lists })
    }

    pub(super) fn chunk(&self, task: &str, chunk: EventChunk) -> Result<EventChunk, StoreError> {
        let sealed = chunk.json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        let Some(sealed) = sealed.filter(|text| key_of(text).is_some()) else { return Ok(chunk) };
        let json = self.open(&place_of_chunk(task, &chunk), sealed.to_owned())?;
        Ok(EventChunk { json, ..chunk })
    }

    pub(super) fn push(&self, push: PushRecord) -> Result<PushRecord, StoreError> {
        let body = self.open(&place(["push", &push.task, &push.id]), push.body)?;
        Ok(PushRecord { body, ..push })
    }

    pub(super) fn sealed_chunk(&self, task: &str, chunk: &EventChunk) -> Result<EventChunk, StoreError> {
        let sealed = self.seal(&place_of_chunk(task, chunk), &chunk.json)?;
        // A backend may join the chunks of a log as JSON.
        Ok(EventChunk { first: chunk.first, last: chunk.last, json: format!("\"{sealed}\"") })
    }
}

/// What a value is, and where. No id contains a line break that could make two places equal, because each is preceded by its
/// length.
pub(super) fn place<const N: usize>(parts: [&str; N]) -> String {
    parts.map(|part| format!("{}:{part}", part.len())).join("\n")
}

pub(super) fn place_of_record(record: &TaskRecord) -> String {
    let owner = record.owner.as_ref().map_or_else(|| "-".to_owned(), |owner| format!("={owner}"));
    place(["task", &record.id, &record.context, &owner])
}

pub(super) fn place_of_item(context: &str, list: &str, number: u64) -> String {
    place(["item", context, list, &number.to_string()])
}

pub(super) fn place_of_chunk(task: &str, chunk: &EventChunk) -> String {
    place(["events", task, &chunk.first.to_string(), &chunk.last.to_string()])
}

/// A fact cannot be moved to another person or agent.
pub(super) fn place_of_fact(owner: &str, agent: &str, id: &str) -> String {
    place(["fact", owner, agent, id])
}

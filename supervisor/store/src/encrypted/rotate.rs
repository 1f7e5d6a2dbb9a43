//! Encrypts the values of an export again, with the newest key.

use std::io::Write;

use super::keyring::Keyring;
use super::values::{place, place_of_fact, place_of_item};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::{decode, encode};
use crate::transfer::{
    ConversationRecord, EventsRecord, ExportFile, ExportWriter, Exported, FactsRecord, Record,
    RecordSource as _, TaskContent, TransferError,
};
use crate::types::TaskRecord;

/// Writes everything that an export has, with all values encrypted with the first key. Values without encryption are encrypted too.
/// Only one record is in memory.
///
/// # Errors
/// When a value cannot be decrypted with any of the keys, or a read or a write fails.
pub async fn rotate(mut from: ExportFile, keys: &Keyring, to: impl Write) -> Result<Exported, TransferError> {
    let mut writer = ExportWriter::new(to, from.backend())?;
    while let Some(record) = from.next().await? {
        writer.record(&keys.rotated(record)?)?;
    }
    writer.finish()
}

impl Keyring {
    fn rotated(&self, record: Record) -> Result<Record, StoreError> {
        Ok(match record {
            Record::Conversation(conversation) => {
                Record::Conversation(self.rotated_conversation(conversation)?)
            }
            Record::Task(task) => Record::Task(self.rotated_task(task)?),
            Record::Events(events) => Record::Events(self.rotated_events(events)?),
            Record::Facts(facts) => Record::Facts(self.rotated_facts(facts)?),
        })
    }

    /// Replaces a value at its place.
    fn rotate(&self, place: &str, value: &mut String) -> Result<(), StoreError> {
        let open = self.open(place, std::mem::take(value))?;
        *value = self.seal(place, &open)?;
        Ok(())
    }

    fn rotated_conversation(
        &self,
        mut conversation: ConversationRecord,
    ) -> Result<ConversationRecord, StoreError> {
        let context = &conversation.context;
        self.rotate(&place(["run", context]), &mut conversation.run)?;
        for (list, items) in &mut conversation.lists {
            for (number, item) in (0..).zip(items) {
                self.rotate(&place_of_item(context, list, number), item)?;
            }
        }
        Ok(conversation)
    }

    fn rotated_task(&self, mut task: TaskContent) -> Result<TaskContent, StoreError> {
        let id = &task.id;
        let record: TaskRecord = decode(|| format!("the record of task {id:?}"), &task.record)?;
        task.record = encode(&self.sealed_record(self.record(record)?)?)?;
        for control in &mut task.controls {
            self.rotate(&place(["control", id, &control.id]), &mut control.body)?;
        }
        for push in &mut task.pushes {
            self.rotate(&place(["push", id, &push.id]), &mut push.body)?;
        }
        for entry in &mut task.outbox {
            self.rotate(&place(["outbox", id, &entry.id]), &mut entry.body)?;
        }
        Ok(task)
    }

    fn rotated_events(&self, mut events: EventsRecord) -> Result<EventsRecord, StoreError> {
        for (first, last, json) in &mut events.chunks {
            let chunk = EventChunk { first: *first, last: *last, json: std::mem::take(json) };
            *json = self.sealed_chunk(&events.task, &self.chunk(&events.task, chunk)?)?.json;
        }
        Ok(events)
    }

    fn rotated_facts(&self, mut record: FactsRecord) -> Result<FactsRecord, StoreError> {
        for (id, fact) in &mut record.facts {
            self.rotate(&place_of_fact(&record.owner, &fact.agent, id), &mut fact.json)?;
        }
        Ok(record)
    }
}

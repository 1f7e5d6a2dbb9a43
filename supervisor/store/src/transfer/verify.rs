//! Compares a store with a file or with another store.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use jiff::Timestamp;

use super::error::TransferError;
use super::reader::RecordSource;
use super::record::{ConversationRecord, EventsRecord, FactsRecord, Record, TaskContent};
use super::{RecordKind, Transfer};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::facts::StoredFact;

const PAGE: usize = 256;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    pub conversations: u64,
    pub tasks: u64,
    /// Without those that have expired since the export.
    pub facts: u64,
    pub differences: u64,
}

/// Compares the records of a file or a store with another store, and passes each difference to `report`.
///
/// # Errors
/// When a process serves the store, or a read fails.
pub async fn verify(
    records: &mut dyn RecordSource,
    store: &dyn Transfer,
    report: &mut (dyn FnMut(&str) + Send),
) -> Result<Verified, TransferError> {
    super::import::refuse_in_use(store).await?;
    let mut comparison =
        Comparison { store, report, seen: Seen::default(), found: Verified::default(), open: None };
    if let Some(progress) = store.unfinished_import().await? {
        comparison.differs(&format!("the store has an unfinished import of export {}", progress.export));
    }
    while let Some(record) = records.next().await? {
        comparison.compare(record).await?;
    }
    comparison.end_events().await?;
    comparison.report_additional().await?;
    Ok(comparison.found)
}

struct Comparison<'a> {
    store: &'a dyn Transfer,
    report: &'a mut (dyn FnMut(&str) + Send),
    seen: Seen,
    found: Verified,
    /// The last task, and the number of its last compared event.
    open: Option<(String, u64)>,
}

/// The ids that were compared, as 8 random bytes each.
#[derive(Default)]
struct Seen {
    ids: HashSet<u64>,
    hasher: RandomState,
}

impl Seen {
    fn hash(&self, kind: RecordKind, id: &str) -> u64 {
        self.hasher.hash_one((kind, id))
    }
}

impl Comparison<'_> {
    fn differs(&mut self, what: &str) {
        self.found.differences += 1;
        (self.report)(what);
    }

    async fn compare(&mut self, record: Record) -> Result<(), StoreError> {
        if !matches!(record, Record::Events(_)) {
            self.end_events().await?;
        }
        let name = record.name();
        match record {
            Record::Conversation(wanted) => {
                self.found.conversations += 1;
                self.seen.ids.insert(self.seen.hash(RecordKind::Conversation, &wanted.context));
                match self.store.export_conversation(&wanted.context).await? {
                    Some(found) => self.list(&name, &conversation_differences(&wanted, &found)),
                    None => self.differs(&format!("{name}: missing in the store")),
                }
            }
            Record::Task(wanted) => {
                self.found.tasks += 1;
                self.seen.ids.insert(self.seen.hash(RecordKind::Task, &wanted.id));
                match self.store.export_task(&wanted.id).await? {
                    Some(found) => {
                        self.list(&name, &task_differences(&wanted, &found));
                        self.open = Some((wanted.id, 0));
                    }
                    None => self.differs(&format!("{name}: missing in the store")),
                }
            }
            Record::Events(wanted) => self.compare_events(&name, &wanted).await?,
            Record::Facts(wanted) => self.compare_facts(wanted).await?,
        }
        Ok(())
    }

    fn list(&mut self, name: &str, parts: &[&str]) {
        for part in parts {
            self.differs(&format!("{name}: different {part}"));
        }
    }

    /// Reports the first difference of a task's events.
    async fn compare_events(&mut self, name: &str, wanted: &EventsRecord) -> Result<(), StoreError> {
        let Some((task, after)) = self.open.take_if(|(task, _)| *task == wanted.task) else { return Ok(()) };
        let found = self.store.export_events(&task, after, wanted.chunks.len()).await?;
        let mut found = found.into_iter().map(|EventChunk { first, last, json }| (first, last, json));
        let mut end = after;
        for chunk in &wanted.chunks {
            end = chunk.1;
            if found.next().as_ref() != Some(chunk) {
                self.differs(&format!("{name}: different or missing from number {} on", chunk.0));
                return Ok(());
            }
        }
        self.open = Some((task, end));
        Ok(())
    }

    /// Compares the facts about a person that have not expired.
    async fn compare_facts(&mut self, wanted: FactsRecord) -> Result<(), StoreError> {
        let (now, owner) = (Timestamp::now(), wanted.owner);
        self.seen.ids.insert(self.seen.hash(RecordKind::FactOwner, &owner));
        let mut found = FactsRecord::of(&owner, self.store.facts(&owner, now).await?).facts;
        let is_current = |expires: i64| expires > now.as_microsecond();
        for (id, fact) in wanted.facts.into_iter().filter(|(_, fact)| fact.expires.is_none_or(is_current)) {
            self.found.facts += 1;
            let name = format!("fact {id} about {owner}");
            match found.remove(&id) {
                Some(found) => self.list(&name, &fact_differences(&fact, &found)),
                None => self.differs(&format!("{name}: missing in the store")),
            }
        }
        for id in found.keys() {
            self.differs(&format!("fact {id} about {owner}: only in the store"));
        }
        Ok(())
    }

    /// Reports that the store has more events of the last task.
    async fn end_events(&mut self) -> Result<(), StoreError> {
        if let Some((task, after)) = self.open.take()
            && let Some(chunk) = self.store.export_events(&task, after, 1).await?.first()
        {
            let first = chunk.first;
            self.differs(&format!("the events of task {task}: only in the store from number {first} on"));
        }
        Ok(())
    }

    async fn report_additional(&mut self) -> Result<(), StoreError> {
        for kind in RecordKind::ALL {
            let mut after = None;
            loop {
                let page = self.store.list_ids(kind, after.as_deref(), PAGE).await?;
                for id in page.ids {
                    if self.seen.ids.contains(&self.seen.hash(kind, &id)) {
                        continue;
                    }
                    let name = match kind {
                        RecordKind::Conversation => "conversation",
                        RecordKind::Task => "task",
                        RecordKind::FactOwner => {
                            self.compare_facts(FactsRecord { owner: id, ..FactsRecord::default() }).await?;
                            continue;
                        }
                    };
                    self.differs(&format!("{name} {id}: only in the store"));
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn conversation_differences(wanted: &ConversationRecord, found: &ConversationRecord) -> Vec<&'static str> {
    differences(&[
        ("state", wanted.run == found.run),
        ("messages or files", wanted.lists == found.lists),
        ("owner", wanted.owner == found.owner),
        ("time of the last write", wanted.touched == found.touched),
    ])
}

fn task_differences(wanted: &TaskContent, found: &TaskContent) -> Vec<&'static str> {
    differences(&[
        ("record", wanted.record == found.record),
        ("owner of the conversation", wanted.owner == found.owner),
        ("fencing token", (wanted.token, wanted.number) == (found.token, found.number)),
        ("reserved numbers", wanted.reserved == found.reserved),
        ("control messages", (wanted.handled, &wanted.controls) == (found.handled, &found.controls)),
        ("push configurations", wanted.pushes == found.pushes),
        ("outbox", wanted.outbox == found.outbox),
    ])
}

fn fact_differences(wanted: &StoredFact, found: &StoredFact) -> Vec<&'static str> {
    differences(&[
        ("agent", wanted.agent == found.agent),
        ("times", (wanted.saved, wanted.expires) == (found.saved, found.expires)),
        ("content", wanted.json == found.json),
    ])
}

fn differences(parts: &[(&'static str, bool)]) -> Vec<&'static str> {
    parts.iter().filter(|(_, is_equal)| !is_equal).map(|(name, _)| *name).collect()
}

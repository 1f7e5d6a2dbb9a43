//! Reads a whole store as records: first the conversations, then each task with its events, then the facts about each person.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use super::error::TransferError;
use super::record::{EventsRecord, FactsRecord, Record};
use super::{RecordKind, Transfer};
use crate::error::StoreError;

/// How many conversations or tasks are read ahead, and how many at once.
const PAGE: usize = 64;
const AT_ONCE: usize = 16;

/// Most chunks of events in a record.
const CHUNKS: usize = 32;

/// Something that has records.
#[async_trait]
pub trait RecordSource: Send {
    /// The next record; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Record>, TransferError>;
}

/// The records of a store. In memory are those of a page.
pub struct StoreReader {
    store: Arc<dyn Transfer>,
    /// What is read next; `None` after the last page.
    place: Option<(RecordKind, Option<String>)>,
    queue: VecDeque<Step>,
}

enum Step {
    Ready(Record),
    /// There may be more events of a task after this number.
    More(String, u64),
    /// A person whose facts are next. They are read alone, because each person may have thousands.
    Facts(String),
}

impl StoreReader {
    pub fn new(store: Arc<dyn Transfer>) -> Self {
        Self { store, place: Some((RecordKind::Conversation, None)), queue: VecDeque::new() }
    }

    async fn read_page(&mut self, kind: RecordKind, after: Option<&str>) -> Result<(), StoreError> {
        let page = self.store.list_ids(kind, after, PAGE).await?;
        let store = &self.store;
        let steps = stream::iter(page.ids).map(|id| async move {
            match kind {
                RecordKind::Conversation => conversation(&**store, &id).await,
                RecordKind::Task => task(&**store, &id).await,
                RecordKind::FactOwner => Ok(vec![Step::Facts(id)]),
            }
        });
        let steps: Vec<Vec<Step>> = steps.buffered(AT_ONCE).try_collect().await?;
        self.queue.extend(steps.into_iter().flatten());
        self.place = match (kind, page.next) {
            (kind, Some(next)) => Some((kind, Some(next))),
            (RecordKind::Conversation, None) => Some((RecordKind::Task, None)),
            (RecordKind::Task, None) => Some((RecordKind::FactOwner, None)),
            (RecordKind::FactOwner, None) => None,
        };
        Ok(())
    }
}

async fn conversation(store: &dyn Transfer, context: &str) -> Result<Vec<Step>, StoreError> {
    let found = store.export_conversation(context).await?;
    Ok(found.map(|record| Step::Ready(Record::Conversation(record))).into_iter().collect())
}

async fn task(store: &dyn Transfer, id: &str) -> Result<Vec<Step>, StoreError> {
    let Some(content) = store.export_task(id).await? else { return Ok(Vec::new()) };
    let mut steps = vec![Step::Ready(Record::Task(content))];
    steps.extend(events(store, id, 0).await?);
    Ok(steps)
}

/// The events of a task after a number, and where there may be more.
async fn events(store: &dyn Transfer, task: &str, after: u64) -> Result<Vec<Step>, StoreError> {
    let chunks = store.export_events(task, after, CHUNKS).await?;
    let Some(last) = chunks.last().map(|chunk| chunk.last) else { return Ok(Vec::new()) };
    let may_be_more = chunks.len() >= CHUNKS;
    let mut steps = vec![Step::Ready(Record::Events(EventsRecord::of(task, chunks)))];
    steps.extend(may_be_more.then(|| Step::More(task.to_owned(), last)));
    Ok(steps)
}

#[async_trait]
impl RecordSource for StoreReader {
    async fn next(&mut self) -> Result<Option<Record>, TransferError> {
        loop {
            match self.queue.pop_front() {
                Some(Step::Ready(record)) => return Ok(Some(record)),
                Some(Step::More(task, after)) => {
                    for step in events(&*self.store, &task, after).await?.into_iter().rev() {
                        self.queue.push_front(step);
                    }
                }
                Some(Step::Facts(owner)) => {
                    let facts = self.store.facts(&owner, Timestamp::now()).await?;
                    if !facts.is_empty() {
                        return Ok(Some(Record::Facts(FactsRecord::of(&owner, facts))));
                    }
                }
                None => {
                    let Some((kind, after)) = self.place.take() else { return Ok(None) };
                    self.read_page(kind, after.as_deref()).await?;
                }
            }
        }
    }
}

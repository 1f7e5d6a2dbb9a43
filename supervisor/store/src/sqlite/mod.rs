//! A store in one SQLite file: the default, which survives a restart and needs no server.
//!
//! One thread writes. It puts all waiting jobs into one transaction, so that a thousand busy tasks share one sync of the
//! disk. Readers have connections of their own and never wait for the writer.

mod controls;
mod error;
mod facts;
mod import;
mod open;
mod outbox;
mod push;
mod read;
mod rows;
mod schema;
mod transfer;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::backend::Store;
use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::LoggedEvent;
use crate::facts::{FactChange, FactRecord, FactStore, current};
use crate::lease::LeaseTable;
use crate::notifier::{Changes, Topic, Watchers};
use crate::push::{PushChange, PushRecord};
use crate::types::{Commit, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskRecord};
use read::Readers;
use rows::PreparedCommit;
use writer::{Done, Job, Work};

pub(crate) const BACKEND: &str = "sqlite";

/// Writes that may wait in the queue; a further caller waits for a place.
const QUEUE: usize = 1024;

/// How long a disk may take to prove that it can be written to.
const PROBE_DEADLINE: Duration = Duration::from_secs(5);

/// Conversations, tasks and logs in one SQLite file.
///
/// A store that is dropped without [`Store::close`] still writes the waiting commits, but reports no result.
pub struct SqliteStore {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    readers: Arc<Readers>,
    leases: LeaseTable,
    watchers: Watchers,
}

impl SqliteStore {
    /// Opens the file. Makes the file and its directories if they are missing. Only one process can have it open.
    ///
    /// The file has mode 0600 and is in write-ahead mode with `synchronous=FULL`: an acknowledged commit survives a power
    /// failure. A file with an older schema is migrated. A file with a newer schema, or of another program, is rejected.
    /// Blocks the thread.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = open::prepare(path)?;
        let connection = open::for_writing(path)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let watchers = Watchers::default();
        writer::start(path, connection, lock, (queue, watchers.events.clone()))?;
        let readers = Arc::new(Readers::new(path));
        Ok(Self { path: path.to_owned(), jobs, readers, leases: LeaseTable::default(), watchers })
    }

    async fn write(&self, work: Work) -> Result<Done, StoreError> {
        let (done, answer) = oneshot::channel();
        self.jobs.send(Job { work, done }).await.map_err(|_| self.closed())?;
        answer.await.map_err(|_| self.closed())?
    }

    fn closed(&self) -> StoreError {
        error::unavailable(&self.path, "it is closed")
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl FactStore for SqliteStore {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        change.check()?;
        Ok(self.write(Work::Facts(change)).await?.removed)
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        let owner = owner.to_owned();
        let found = self.readers.read(move |connection| facts::of(connection, &owner)).await?;
        Ok(current(found, now))
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let write = async |commit| {
            let prepared = PreparedCommit::new(commit, Timestamp::now())?;
            self.write(Work::Commit(Box::new(prepared))).await.map(drop)
        };
        self.leases.commit(commit, write).await
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        let write = async || Ok(self.write(Work::Acquire(task.to_owned())).await?.lease);
        self.leases.acquire(task, term, write).await
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        self.leases.renew(task, token, ttl)
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        self.leases.release(task, token);
        Ok(())
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        let mut found = Vec::new();
        for id in self.readers.read(|connection| read::under_way(connection)).await? {
            if found.len() < limit && !self.leases.is_held(&id) {
                found.extend(self.task(&id).await?.filter(|record| record.phase.is_under_way()));
            }
        }
        Ok(found)
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        self.leases.take_turn(self, context, task).await
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        message.check(task)?;
        self.write(Work::Control(task.to_owned(), message)).await?;
        self.watchers.controls.notify(task);
        Ok(())
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        let task = task.to_owned();
        self.readers.read(move |connection| controls::waiting(connection, &task, after)).await
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        self.readers.read(|connection| outbox::all(connection)).await
    }

    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.write(Work::Settle { task: task.to_owned(), id: id.to_owned() }).await.map(drop)
    }

    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError> {
        Ok(self.leases.claim(what, term))
    }

    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError> {
        self.leases.end_claim(what, owner);
        Ok(())
    }

    async fn watch(&self, task: &str, topic: Topic) -> Result<Changes, StoreError> {
        Ok(self.watchers.watch(task, topic))
    }

    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError> {
        let context = context.to_owned();
        self.readers.read(move |connection| read::conversation(connection, &context)).await
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        let id = id.to_owned();
        self.readers.read(move |connection| read::task(connection, &id)).await
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        let filter = filter.clone();
        self.readers.read(move |connection| read::tasks(connection, &filter)).await
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        let filter = filter.clone();
        self.readers.read(move |connection| read::count_tasks(connection, &filter)).await
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        let task = task.to_owned();
        self.readers.read(move |connection| read::events(connection, &task, after, limit)).await
    }

    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError> {
        self.write(Work::Push(PushChange::put(push)?)).await.map(drop)
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        let task = task.to_owned();
        self.readers.read(move |connection| push::of(connection, &task)).await
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        self.readers.read(|connection| push::pending(connection)).await
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        self.write(Work::Push(PushChange::delivered(task, id, seq))).await.map(drop)
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.write(Work::Push(PushChange::delete(task, id))).await.map(drop)
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        let slow = |_| error::unavailable(&self.path, format!("a probe took longer than {PROBE_DEADLINE:?}"));
        let probe = async {
            self.write(Work::Probe(Timestamp::now())).await?;
            // The writer may have everything it needs in memory; a damaged file shows when it is read.
            self.readers.read(read::probe).await
        };
        tokio::time::timeout(PROBE_DEADLINE, probe).await.map_err(slow)?
    }

    /// Prunes in small steps. Commits can run between them.
    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        let mut total = Pruned::default();
        loop {
            let step = self.write(Work::Prune(retention)).await?.pruned;
            if step == Pruned::default() {
                return Ok(total);
            }
            total.tasks += step.tasks;
            total.conversations += step.conversations;
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        self.write(Work::Close).await.map(drop)
    }
}

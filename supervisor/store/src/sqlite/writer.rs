//! The one thread that writes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::error::{Failure, translate, unavailable};
use super::rows::PreparedCommit;
use super::{controls, facts, import, outbox, push, rows};
use crate::control::ControlMessage;
use crate::error::StoreError;
use crate::facts::FactChange;
use crate::notifier::Notifier;
use crate::push::PushChange;
use crate::transfer::ImportBatch;
use crate::types::{Lease, Pruned, Retention};

/// Most jobs in one transaction, which bounds how long each of them waits.
const GROUP: usize = 256;

/// How long a busy writer waits for more jobs, and how often at most: a large transaction costs each job less.
const LINGER: Duration = Duration::from_micros(250);
const LONGEST_LINGER: u32 = 8;

/// Something to write.
pub(super) struct Job {
    pub(super) work: Work,
    /// Receives the result once the write is durable.
    pub(super) done: Answer,
}

/// The result of a write. Only a prune, an import and a change of facts count anything, and only an acquisition has a lease.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) pruned: Pruned,
    pub(super) lease: Lease,
    /// The imported conversations and tasks that were there.
    pub(super) left: u64,
    /// The removed facts.
    pub(super) removed: u64,
}

type Answer = oneshot::Sender<Result<Done, StoreError>>;

pub(super) enum Work {
    Commit(Box<PreparedCommit>),
    Acquire(String),
    Control(String, ControlMessage),
    Settle { task: String, id: String },
    Push(PushChange),
    Facts(FactChange),
    Prune(Retention),
    BeginImport(String),
    Import(Box<ImportBatch>),
    FinishImport,
    Probe(Timestamp),
    Close,
}

struct Writer {
    path: PathBuf,
    connection: Connection,
    queue: mpsc::Receiver<Job>,
    closing: Vec<Answer>,
    /// The readers that follow a log.
    followers: Arc<Notifier>,
}

/// Starts the thread. It ends at `Close`, or when the last sender is gone.
pub(super) fn start(
    path: &Path,
    connection: Connection,
    lock: File,
    (queue, followers): (mpsc::Receiver<Job>, Arc<Notifier>),
) -> Result<(), StoreError> {
    let writer = Writer { path: path.to_owned(), connection, queue, closing: Vec::new(), followers };
    std::thread::Builder::new()
        .name("caipe-store".into())
        .spawn(move || writer.run(lock))
        .map(drop)
        .map_err(|error| unavailable(path, format!("failed to start its thread: {error}")))
}

impl Writer {
    fn run(mut self, lock: File) {
        while let Some(first) = self.queue.blocking_recv() {
            let group = self.gather(first);
            self.write(group);
            self.linger();
        }
        let Self { path, connection, closing, .. } = self;
        let closed = close(&path, connection);
        drop(lock);
        if let Err(error) = &closed {
            tracing::warn!(%error, "the store closed badly; its log is replayed when it is opened next");
        }
        for done in closing {
            let _ = done.send(closed.clone().map(|()| Done::default()));
        }
    }

    /// Waits for more work while more arrives, if work arrived during the last write. A single writer never waits.
    #[expect(clippy::disallowed_methods, reason = "nothing tells when more is in the queue than there was")]
    fn linger(&self) {
        let mut waiting = self.queue.len();
        for _ in 0..LONGEST_LINGER {
            if !(1..GROUP).contains(&waiting) {
                return;
            }
            std::thread::sleep(LINGER);
            let now = self.queue.len();
            if now == waiting {
                return;
            }
            waiting = now;
        }
    }

    /// The jobs in the queue, up to a limit, in order. A request to close is answered once the file is closed.
    fn gather(&mut self, first: Job) -> Vec<Job> {
        let mut group = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            if matches!(job.work, Work::Close) {
                self.queue.close();
                self.closing.push(job.done);
            } else {
                group.push(job);
            }
            next = if group.len() < GROUP { self.queue.try_recv().ok() } else { None };
        }
        group
    }

    fn write(&mut self, group: Vec<Job>) {
        match transact(&mut self.connection, &group) {
            Ok(outcomes) => {
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    if let Work::Commit(prepared) = &job.work
                        && outcome.is_ok()
                    {
                        self.followers.notify(prepared.task());
                    }
                    let _ =
                        job.done.send(outcome.map_err(|failure| failure.at(&self.path, job.work.action())));
                }
            }
            Err(error) => {
                let error = translate(&self.path, "commit", &error);
                for job in group {
                    let _ = job.done.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Writes a group in one transaction. The outer result is that of all jobs, each inner one that of one job.
fn transact(connection: &mut Connection, group: &[Job]) -> rusqlite::Result<Vec<Result<Done, Failure>>> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for job in group {
        let outcome = job.work.run(&mut transaction);
        if transaction.is_autocommit() {
            // For example out of space: SQLite has rolled back the whole transaction.
            return Err(match outcome {
                Err(Failure::Sqlite(error)) => error,
                _ => rusqlite::Error::InvalidQuery,
            });
        }
        outcomes.push(outcome);
    }
    transaction.commit()?;
    Ok(outcomes)
}

impl Work {
    fn run(&self, transaction: &mut Transaction<'_>) -> Result<Done, Failure> {
        let savepoint = transaction.savepoint()?;
        let mut done = Done::default();
        match self {
            Self::Commit(prepared) => rows::commit(&savepoint, prepared)?,
            Self::Acquire(task) => done.lease = rows::acquire(&savepoint, task)?,
            Self::Control(task, message) => controls::put(&savepoint, task, message)?,
            Self::Settle { task, id } => outbox::settle(&savepoint, task, id)?,
            Self::Push(change) => push::change(&savepoint, change)?,
            Self::Facts(change) => done.removed = facts::change(&savepoint, change)?,
            Self::Prune(retention) => done.pruned = rows::prune(&savepoint, *retention)?,
            Self::BeginImport(export) => import::begin(&savepoint, export)?,
            Self::Import(batch) => done.left = import::import(&savepoint, batch)?,
            Self::FinishImport => import::finish(&savepoint)?,
            Self::Probe(at) => rows::probe(&savepoint, *at)?,
            Self::Close => {}
        }
        savepoint.commit()?;
        Ok(done)
    }

    const fn action(&self) -> &'static str {
        match self {
            Self::Commit(_) => "commit",
            Self::Acquire(_) => "take over a task",
            Self::Control(..) => "send a control message",
            Self::Settle { .. } => "settle an outbox entry",
            Self::Push(_) => "keep a push configuration",
            Self::Facts(change) => change.action(),
            Self::Prune(_) => "prune",
            Self::BeginImport(_) | Self::Import(_) | Self::FinishImport => "import",
            Self::Probe(_) => "write a probe",
            Self::Close => "close",
        }
    }
}

/// Folds the write-ahead log into the file, so that a copy of the file alone is whole.
fn close(path: &Path, connection: Connection) -> Result<(), StoreError> {
    let fold = |error| translate(path, "close", &error);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fold)?;
    connection.close().map_err(|(_, error)| translate(path, "close", &error))
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;

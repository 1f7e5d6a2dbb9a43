//! The way of events into the file.
//!
//! Many logs grow at once. If each commit inserted into the table of the events, every token would change pages of its own.
//! So a transaction appends the events of all its logs to the shared log (the table `journal`) as one row; the unsealed
//! events of each log also stay in memory. A log is sealed, which means that its unsealed events become a row of the
//! table of the events, when they are long enough, when its task rests, or when the shared log becomes long. Rows of the
//! shared log that no unsealed event needs are removed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::error::Failure;
use super::event_range::{EventRange, entries, event_row, shared_log_row};
use super::rows::{column, last_seq, run};
use super::unsealed_events::UnsealedEvents;
use crate::prepared_commit::Write;

/// Events of one log and one transaction that have at least this size are sealed at once: they fill a page of their own.
const PAGE: usize = 4 << 10;

/// A longer end of a log is sealed, because every reader of the log parses it.
const LONGEST_TAIL: usize = 32 << 10;

/// About how many bytes the shared log may have: it is also in memory, and the next start reads it.
const LONGEST_SHARED_LOG: i64 = 8 << 20;

/// The shared log's old part is removed in pieces of at least this many bytes.
const REMOVED_AT_ONCE: i64 = 1 << 20;

/// The shared log as the writer knows it.
#[derive(Debug)]
pub(super) struct SharedLog {
    unsealed: Arc<UnsealedEvents>,
    extent: Extent,
}

/// The places of the shared log that are in the file: that of its first row, and that of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    begin: i64,
    end: i64,
}

/// The events of one transaction, until it is written.
#[derive(Debug)]
pub(super) struct Staged<'g> {
    unsealed: &'g UnsealedEvents,
    logs: HashMap<Cow<'g, str>, Log>,
    /// Whether the shared log must lose every sealed event.
    purge: bool,
}

/// What happens to one log in one transaction.
#[derive(Debug, Default)]
struct Log {
    /// Its unsealed events, with those of this transaction so far, have become a row of the events.
    sealed: bool,
    /// Its task is no longer under way.
    rests: bool,
    /// It could not be sealed.
    stuck: bool,
    /// The events of this transaction that are in no row yet.
    fresh: Option<EventRange>,
}

impl SharedLog {
    /// The shared log of the file. Seals the events that an earlier process left in it.
    pub(super) fn open(connection: &mut Connection, unsealed: &Arc<UnsealedEvents>) -> Result<Self, Failure> {
        let mut shared_log = Self { unsealed: unsealed.clone(), extent: Extent { begin: 0, end: 0 } };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut staged = Staged::new(unsealed);
        shared_log.extent = staged.take_up(&transaction)?;
        staged.purge(&transaction)?;
        shared_log.commit(transaction, staged)?;
        Ok(shared_log)
    }

    /// Moves all events into the table of the events.
    pub(super) fn close(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        let unsealed = self.unsealed.clone();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut staged = Staged::new(&unsealed);
        staged.purge(&transaction)?;
        self.commit(transaction, staged)
    }

    pub(super) fn unsealed(&self) -> Arc<UnsealedEvents> {
        self.unsealed.clone()
    }

    /// Writes the staged events and commits the transaction.
    pub(super) fn commit(
        &mut self,
        transaction: Transaction<'_>,
        mut staged: Staged<'_>,
    ) -> rusqlite::Result<()> {
        let at = self.extent.end;
        let extent = self.write(&transaction, &mut staged)?;
        transaction.commit()?;
        self.extent = extent;
        for (task, log) in staged.logs {
            if log.sealed {
                self.unsealed.remove(&task);
            }
            if let Some(fresh) = log.fresh {
                self.unsealed.grow(&task, fresh, at);
            }
            if log.stuck {
                self.unsealed.set_stuck(&task);
            }
        }
        Ok(())
    }

    fn write(&self, connection: &Connection, staged: &mut Staged<'_>) -> rusqlite::Result<Extent> {
        staged.seal_due(connection)?;
        let Extent { mut begin, end: at } = self.extent;
        staged.shorten(connection, at - LONGEST_SHARED_LOG)?;
        let end = at + append(connection, at, &staged.logs)?;
        let live = staged.live_from(at);
        if live - begin >= if staged.purge { 1 } else { REMOVED_AT_ONCE } {
            run(connection, "DELETE FROM journal WHERE id < ?1", [live])?;
            begin = live;
        }
        Ok(Extent { begin, end })
    }
}

impl<'g> Staged<'g> {
    pub(super) fn new(unsealed: &'g UnsealedEvents) -> Self {
        Self { unsealed, logs: HashMap::new(), purge: false }
    }

    /// The number of the last event of a log, if that event is not in the table of the events yet.
    pub(super) fn last_seq(&self, task: &str) -> Option<u64> {
        match self.logs.get(task) {
            Some(Log { fresh: Some(fresh), .. }) => Some(fresh.last),
            Some(Log { sealed: true, .. }) => None,
            _ => self.unsealed.last_seq(task),
        }
    }

    /// The same for the log that a commit continues.
    pub(super) fn last_seq_before(&self, write: &Write) -> Option<u64> {
        write.events.as_ref().and_then(|chunk| self.last_seq(&chunk.task))
    }

    /// Adds the events of a commit whose other rows are written.
    pub(super) fn take(&mut self, write: &'g Write) {
        if let Some(chunk) = &write.events {
            self.add(Cow::Borrowed(&chunk.task), EventRange::of(chunk));
        }
        if let Some(row) = write.task.as_ref().filter(|row| !row.record.phase.is_under_way()) {
            self.logs.entry(Cow::Borrowed(&row.record.id)).or_default().rests = true;
        }
    }

    fn add(&mut self, task: Cow<'g, str>, range: EventRange) {
        match &mut self.logs.entry(task).or_default().fresh {
            Some(fresh) => fresh.append(&range),
            none => *none = Some(range),
        }
    }

    /// Adds the events of the shared log of the file that are in no row of the events.
    fn take_up(&mut self, connection: &Connection) -> Result<Extent, Failure> {
        let mut extent = Extent { begin: 0, end: 0 };
        let mut statement = connection.prepare("SELECT id, entries FROM journal ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (at, text): (i64, String) = (row.get(0)?, row.get(1)?);
            extent.end = at + length(&text);
            for (task, range) in entries(&text)? {
                self.take_entry(connection, task, range)?;
            }
        }
        Ok(extent)
    }

    /// Adds an entry that continues its log. Any other was sealed before, or its task was removed.
    fn take_entry(
        &mut self,
        connection: &Connection,
        task: String,
        entry: EventRange,
    ) -> Result<(), Failure> {
        let last = match self.last_seq(&task) {
            None => last_seq(connection, &task)?,
            known => known,
        };
        if last.is_some_and(|last| last + 1 == entry.first) {
            self.add(Cow::Owned(task), entry);
        }
        Ok(())
    }

    /// Seals every log, and empties the shared log with this transaction: a removed task must leave nothing there.
    pub(super) fn purge(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.purge = true;
        let fresh = self.logs.keys().cloned();
        let tasks: Vec<_> =
            self.unsealed.tasks().iter().map(|task| Cow::Owned(task.to_string())).chain(fresh).collect();
        tasks.iter().try_for_each(|task| self.seal(connection, task))
    }

    fn seal_due(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let due = |(task, log): &(&Cow<'g, str>, &Log)| {
            !log.stuck && self.unsealed.sealable(task).is_some_and(|tail| log.is_due(tail))
        };
        let due: Vec<_> = self.logs.iter().filter(due).map(|(task, _)| task.clone()).collect();
        due.iter().try_for_each(|task| self.seal(connection, task))
    }

    /// Seals the logs whose unsealed events begin before this place of the shared log.
    fn shorten(&mut self, connection: &Connection, place: i64) -> rusqlite::Result<()> {
        let can_be =
            |staged: &Self, task: &str| staged.logs.get(task).is_none_or(|log| !log.sealed && !log.stuck);
        while let Some((since, task)) = self.unsealed.oldest(|task, stuck| !stuck && can_be(self, task))
            && since < place
        {
            self.seal(connection, &task)?;
        }
        Ok(())
    }

    /// The place of the oldest event that is still needed; `at`, that of the next row, if there is none.
    fn live_from(&self, at: i64) -> i64 {
        let needed = |task: &str| self.logs.get(task).is_none_or(|log| !log.sealed);
        self.unsealed.oldest(|task, _| needed(task)).map_or(at, |(since, _)| since)
    }

    /// Writes the unsealed events of a log as a row of the events. If that fails for this log alone, for example because
    /// of a damaged page, its events stay in the shared log.
    fn seal(&mut self, connection: &Connection, task: &str) -> rusqlite::Result<()> {
        const SQL: &str = "INSERT INTO events (task, first_seq, last_seq, chunks) VALUES (?1, ?2, ?3, ?4)";
        if !self.logs.contains_key(task) {
            self.logs.insert(Cow::Owned(task.to_owned()), Log::default());
        }
        let Some(log) = self.logs.get_mut(task) else { return Ok(()) };
        let tail = if log.sealed { None } else { self.unsealed.get(task) };
        let Some((first, last, chunks)) = event_row(tail.iter().chain(&log.fresh)) else { return Ok(()) };
        match run(connection, SQL, params![task, column(first), column(last), chunks]) {
            Ok(()) => {
                (log.sealed, log.fresh) = (true, None);
                Ok(())
            }
            Err(error) if connection.is_autocommit() => Err(error),
            Err(error) => {
                tracing::warn!(%task, %error, "events stay in the shared log; is the file damaged?");
                log.stuck = true;
                Ok(())
            }
        }
    }
}

impl Log {
    fn is_due(&self, tail: usize) -> bool {
        let fresh = self.fresh.as_ref().map_or(0, EventRange::len);
        self.rests || fresh >= PAGE || tail + fresh >= LONGEST_TAIL
    }
}

/// Writes the fresh events as a row of the shared log, and returns its length.
fn append(connection: &Connection, at: i64, logs: &HashMap<Cow<'_, str>, Log>) -> rusqlite::Result<i64> {
    let fresh = logs.iter().filter_map(|(task, log)| log.fresh.as_ref().map(|fresh| (&**task, fresh)));
    let Some(row) = shared_log_row(fresh) else { return Ok(0) };
    run(connection, "INSERT INTO journal (id, entries) VALUES (?1, ?2)", params![at, row])?;
    Ok(length(&row))
}

fn length(row: &str) -> i64 {
    column(row.len() as u64)
}

#[cfg(test)]
#[path = "shared_log_tests.rs"]
mod tests;

//! The way of events into the file.
//!
//! A thousand logs under way would be a thousand places in the table of the events, and each token would change
//! pages of its own there. So a transaction appends what all of them tell to the journal, as one row, and the end of
//! each log stays in memory beside it. A log gets a row of its own when its end is worth it, when its task rests, or
//! when the journal would become long. Then the journal's old part is in no log's end any more, and is removed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior, params};

use super::error::Failure;
use super::rows::{column, last_seq, run};
use super::stretch::{Stretch, entries, event_row, journal_row};
use super::tails::Tails;
use crate::write::Write;

/// What one transaction tells of one log is sealed at once from this size on: it fills a page of its own.
const PAGE: usize = 4 << 10;

/// A longer end of a log is sealed: whoever reads the log parses it.
const LONGEST_TAIL: usize = 32 << 10;

/// About how many bytes the journal may have: it is read at the next start, and is in memory.
const LONGEST_JOURNAL: i64 = 8 << 20;

/// The journal's old part is removed in pieces of at least this many bytes.
const REMOVED_AT_ONCE: i64 = 1 << 20;

/// The journal as the writer knows it.
#[derive(Debug)]
pub(super) struct Journal {
    tails: Arc<Tails>,
    extent: Extent,
}

/// The places of the journal that are in the file: where its rows begin, and where the next one will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    begin: i64,
    end: i64,
}

/// The events of one transaction, until it is written.
#[derive(Debug)]
pub(super) struct Staged<'g> {
    tails: &'g Tails,
    logs: HashMap<Cow<'g, str>, Log>,
    /// Nothing that is sealed may stay in the journal.
    purge: bool,
}

/// What happens to one log in one transaction.
#[derive(Debug, Default)]
struct Log {
    /// Its tail, and whatever this transaction told of it before, has become a row of the events.
    sealed: bool,
    /// Its task is under way no more.
    rests: bool,
    /// It could not be sealed.
    stuck: bool,
    /// What is in no row yet.
    fresh: Option<Stretch>,
}

/// What becomes true with the transaction.
#[derive(Debug)]
pub(super) struct Written<'g> {
    logs: HashMap<Cow<'g, str>, Log>,
    /// Where in the journal the fresh events are.
    at: i64,
    extent: Extent,
}

impl Journal {
    /// The journal of the file; what a former process left in it goes where it belongs.
    pub(super) fn open(connection: &mut Connection, tails: &Arc<Tails>) -> Result<Self, Failure> {
        let mut journal = Self { tails: tails.clone(), extent: Extent { begin: 0, end: 0 } };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut staged = Staged::new(tails);
        journal.extent = staged.take_up(&transaction)?;
        staged.purge(&transaction)?;
        let written = journal.write(&transaction, staged)?;
        transaction.commit()?;
        journal.settle(written);
        Ok(journal)
    }

    /// Moves all of it into the table of the events, so that the file is read without it.
    pub(super) fn close(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        let tails = self.tails.clone();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut staged = Staged::new(&tails);
        staged.purge(&transaction)?;
        let written = self.write(&transaction, staged)?;
        transaction.commit()?;
        self.settle(written);
        Ok(())
    }

    /// Where the ends of the logs are.
    pub(super) fn tails(&self) -> Arc<Tails> {
        self.tails.clone()
    }

    /// Writes what a transaction tells, as its last statements.
    pub(super) fn write<'g>(
        &self,
        connection: &Connection,
        mut staged: Staged<'g>,
    ) -> rusqlite::Result<Written<'g>> {
        staged.seal_due(connection)?;
        let Extent { mut begin, end: at } = self.extent;
        staged.shorten(connection, at - LONGEST_JOURNAL)?;
        let end = at + append(connection, at, &staged.logs)?;
        let live = staged.live_from(at);
        if live - begin >= if staged.purge { 1 } else { REMOVED_AT_ONCE } {
            run(connection, "DELETE FROM journal WHERE id < ?1", [live])?;
            begin = live;
        }
        Ok(Written { logs: staged.logs, at, extent: Extent { begin, end } })
    }

    /// Takes note that the transaction has come true.
    pub(super) fn settle(&mut self, written: Written<'_>) {
        self.extent = written.extent;
        for (task, log) in written.logs {
            if log.sealed {
                self.tails.remove(&task);
            }
            if let Some(fresh) = log.fresh {
                self.tails.grow(&task, fresh, written.at);
            }
            if log.stuck {
                self.tails.leave(&task);
            }
        }
    }
}

impl<'g> Staged<'g> {
    pub(super) fn new(tails: &'g Tails) -> Self {
        Self { tails, logs: HashMap::new(), purge: false }
    }

    /// The number of a log's last event, as far as it is not in the table of the events.
    pub(super) fn last_seq(&self, task: &str) -> Option<u64> {
        match self.logs.get(task) {
            Some(Log { fresh: Some(fresh), .. }) => Some(fresh.last),
            Some(Log { sealed: true, .. }) => None,
            _ => self.tails.last_seq(task),
        }
    }

    /// Takes the events of a commit whose other rows are written.
    pub(super) fn take(&mut self, write: &'g Write) {
        if let Some(chunk) = &write.events {
            match &mut self.log(&chunk.task).fresh {
                Some(fresh) => fresh.push(chunk),
                none => *none = Some(Stretch::of(chunk)),
            }
        }
        if let Some(row) = write.task.as_ref().filter(|row| !row.record.phase.is_under_way()) {
            self.log(&row.record.id).rests = true;
        }
    }

    fn log(&mut self, task: &'g str) -> &mut Log {
        self.logs.entry(Cow::Borrowed(task)).or_default()
    }

    /// Takes what is in the journal of the file and in no row of the events.
    fn take_up(&mut self, connection: &Connection) -> Result<Extent, Failure> {
        let mut extent = Extent { begin: 0, end: 0 };
        let mut statement = connection.prepare("SELECT id, entries FROM journal ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (at, text): (i64, String) = (row.get(0)?, row.get(1)?);
            extent.end = at + length(&text);
            for (task, stretch) in entries(&text)? {
                self.take_entry(connection, task, stretch)?;
            }
        }
        Ok(extent)
    }

    /// Takes what follows the end of its log. All else was sealed before, or its task is gone.
    fn take_entry(&mut self, connection: &Connection, task: String, entry: Stretch) -> Result<(), Failure> {
        let last = match self.last_seq(&task) {
            None => last_seq(connection, &task)?,
            known => known,
        };
        if last.is_some_and(|last| last + 1 == entry.first) {
            match &mut self.logs.entry(Cow::Owned(task)).or_default().fresh {
                Some(fresh) => fresh.append(&entry),
                none => *none = Some(entry),
            }
        }
        Ok(())
    }

    /// Seals every log, and has the journal emptied: a task that goes must leave nothing there.
    pub(super) fn purge(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.purge = true;
        let fresh = self.logs.keys().cloned();
        let tasks: Vec<_> =
            self.tails.tasks().iter().map(|task| Cow::Owned(task.to_string())).chain(fresh).collect();
        tasks.iter().try_for_each(|task| self.seal(connection, task))
    }

    fn seal_due(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let due = |(task, log): &(&Cow<'g, str>, &Log)| {
            !log.stuck && self.tails.sealable(task).is_some_and(|tail| log.is_due(tail))
        };
        let due: Vec<_> = self.logs.iter().filter(due).map(|(task, _)| task.clone()).collect();
        due.iter().try_for_each(|task| self.seal(connection, task))
    }

    /// Seals the logs whose tails begin before this place of the journal.
    fn shorten(&mut self, connection: &Connection, place: i64) -> rusqlite::Result<()> {
        let can_be =
            |staged: &Self, task: &str| staged.logs.get(task).is_none_or(|log| !log.sealed && !log.stuck);
        while let Some((since, task)) = self.tails.oldest(|task, stuck| !stuck && can_be(self, task))
            && since < place
        {
            self.seal(connection, &task)?;
        }
        Ok(())
    }

    /// From where on the journal is still needed, if this is where its next row begins.
    fn live_from(&self, at: i64) -> i64 {
        let needed = |task: &str| self.logs.get(task).is_none_or(|log| !log.sealed);
        self.tails.oldest(|task, _| needed(task)).map_or(at, |(since, _)| since)
    }

    /// Writes what there is of a log as a row of the events. Where that fails for this log alone, for example because
    /// of a damaged page, its events go on in the journal.
    fn seal(&mut self, connection: &Connection, task: &str) -> rusqlite::Result<()> {
        const SQL: &str = "INSERT INTO events (task, first_seq, last_seq, chunks) VALUES (?1, ?2, ?3, ?4)";
        if !self.logs.contains_key(task) {
            self.logs.insert(Cow::Owned(task.to_owned()), Log::default());
        }
        let Some(log) = self.logs.get_mut(task) else { return Ok(()) };
        let tail = if log.sealed { None } else { self.tails.get(task) };
        let Some((first, last, chunks)) = event_row(tail.iter().chain(&log.fresh)) else { return Ok(()) };
        match run(connection, SQL, params![task, column(first), column(last), chunks]) {
            Ok(()) => {
                (log.sealed, log.fresh) = (true, None);
                Ok(())
            }
            Err(error) if connection.is_autocommit() => Err(error),
            Err(error) => {
                tracing::warn!(%task, %error, "events stay in the journal; is the file damaged?");
                log.stuck = true;
                Ok(())
            }
        }
    }
}

impl Log {
    fn is_due(&self, tail: usize) -> bool {
        let fresh = self.fresh.as_ref().map_or(0, Stretch::len);
        self.rests || fresh >= PAGE || tail + fresh >= LONGEST_TAIL
    }
}

/// Writes the fresh events as a row of the journal, and returns its length.
fn append(connection: &Connection, at: i64, logs: &HashMap<Cow<'_, str>, Log>) -> rusqlite::Result<i64> {
    let fresh = logs.iter().filter_map(|(task, log)| log.fresh.as_ref().map(|fresh| (&**task, fresh)));
    let Some(row) = journal_row(fresh) else { return Ok(0) };
    run(connection, "INSERT INTO journal (id, entries) VALUES (?1, ?2)", params![at, row])?;
    Ok(length(&row))
}

fn length(row: &str) -> i64 {
    column(row.len() as u64)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

//! The schema of the file, by version. Never change a released migration: add the next one.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use super::error::{Failure, corrupt, unavailable};
use super::rows::change_conversation;
use crate::conversation::converted;

/// Marks a file as ours (`PRAGMA application_id`): "CAIP".
const APPLICATION_ID: i32 = 0x4341_4950;

/// The step from each version to the next; a file's version (`PRAGMA user_version`) is how many it has had.
///
/// Times are microseconds since 1970. Texts other than ids are JSON. Large columns come last, so that SQLite reads the
/// others without them.
const MIGRATIONS: &[&str] =
    &[FIRST, PUSH_CONFIGS, DATED_EVENTS, SHARED_LOG, LEASES_AND_LISTS, OWNERS_AND_MAILBOXES];

const FIRST: &str = r"
CREATE TABLE conversations (
    context TEXT NOT NULL UNIQUE,
    touched INTEGER NOT NULL,
    state   TEXT NOT NULL
) STRICT;
CREATE INDEX conversations_by_touch ON conversations (touched);

-- Inputs to apply on top of the state, in the order of the ids; one row per commit.
CREATE TABLE appends (
    id      INTEGER PRIMARY KEY,
    context TEXT NOT NULL,
    at      INTEGER NOT NULL,
    inputs  TEXT NOT NULL
) STRICT;
CREATE INDEX appends_by_context ON appends (context, id);

CREATE TABLE tasks (
    id      TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    phase   TEXT NOT NULL,
    owner   TEXT,
    updated INTEGER NOT NULL,
    record  TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_by_change ON tasks (updated DESC, id DESC);
CREATE INDEX tasks_by_context ON tasks (context, updated DESC, id DESC);
CREATE INDEX tasks_by_owner ON tasks (owner, updated DESC, id DESC) WHERE owner IS NOT NULL;

-- The logs of the tasks; one row per commit, so that a burst of tokens is one insert.
CREATE TABLE events (
    task      TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    events    TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_task ON events (task, last_seq);

-- One row that health checks write.
CREATE TABLE probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
";

const PUSH_CONFIGS: &str = r"
CREATE TABLE push_configs (
    task      TEXT NOT NULL,
    id        TEXT NOT NULL,
    delivered INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
";

// The best known time of an older event is that of the task's last change.
const DATED_EVENTS: &str = r"
CREATE TABLE dated_events (
    task      TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    events    TEXT NOT NULL
) STRICT;
INSERT INTO dated_events
    SELECT old.task, old.first_seq, old.last_seq, tasks.updated, old.events
    FROM events AS old JOIN tasks ON tasks.id = old.task ORDER BY old.rowid;
DROP TABLE events;
ALTER TABLE dated_events RENAME TO events;
CREATE UNIQUE INDEX events_by_task ON events (task, last_seq);
";

// A row of the events holds the events of several commits, as [[microseconds, [event, ...]], ...]. The journal holds the
// events that are not there yet, one row per transaction: [[task, first, last, [chunk, ...]], ...].
const SHARED_LOG: &str = r"
CREATE TABLE sealed_events (
    task      TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    chunks    TEXT NOT NULL
) STRICT;
INSERT INTO sealed_events
    SELECT task, first_seq, last_seq, '[[' || at || ',' || events || ']]' FROM events ORDER BY rowid;
DROP TABLE events;
ALTER TABLE sealed_events RENAME TO events;
CREATE UNIQUE INDEX events_by_task ON events (task, last_seq);

-- The ids are places: how many bytes of entries came before.
CREATE TABLE journal (
    id      INTEGER PRIMARY KEY,
    entries TEXT NOT NULL
) STRICT;
";

// A conversation is one value and lists of items. The journal's events go into the table of the events, unless they are there
// already. `convert_conversations` converts the states and the appended inputs before the table of the inputs goes.
const LEASES_AND_LISTS: &str = r"
ALTER TABLE tasks ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_by_phase ON tasks (phase, updated DESC, id DESC);

CREATE TABLE items (
    context TEXT NOT NULL,
    list    TEXT NOT NULL,
    place   INTEGER NOT NULL,
    item    TEXT NOT NULL,
    PRIMARY KEY (context, list, place)
) STRICT, WITHOUT ROWID;

INSERT INTO events
    SELECT entry.value ->> 0, entry.value ->> 1, entry.value ->> 2, entry.value -> 3
    FROM journal, json_each(journal.entries) AS entry JOIN tasks ON tasks.id = entry.value ->> 0
    WHERE entry.value ->> 1 >
        (SELECT coalesce(max(last_seq), 0) FROM events AS old WHERE old.task = entry.value ->> 0)
    ORDER BY journal.id, entry.key;
DROP TABLE journal;
";

const OWNERS_AND_MAILBOXES: &str = r"
-- The principal of the first task of each conversation.
CREATE TABLE conversation_owners (
    context TEXT NOT NULL PRIMARY KEY,
    owner   TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO conversation_owners
    SELECT context, owner FROM (SELECT context, owner, min(updated) FROM tasks GROUP BY context);

ALTER TABLE tasks ADD COLUMN handled INTEGER NOT NULL DEFAULT 0;

-- The control messages to the owners of the tasks. Those up to the number in `handled` are remembered only for their ids.
CREATE TABLE controls (
    task   TEXT NOT NULL,
    number INTEGER NOT NULL,
    id     TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

-- What must follow a commit, until it is done.
CREATE TABLE outbox (
    task     TEXT NOT NULL,
    id       TEXT NOT NULL,
    deadline INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;
";

/// The facts of people. The table is not a step of [`MIGRATIONS`], and the version of a file does not count it: a program that does
/// not know it opens the file all the same, so that an upgrade can be undone.
const FACTS: &str = r"
CREATE TABLE IF NOT EXISTS facts (
    owner   TEXT NOT NULL,
    id      TEXT NOT NULL,
    agent   TEXT NOT NULL,
    saved   INTEGER NOT NULL,
    expires INTEGER,
    json    TEXT NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS facts_by_expiry ON facts (expires) WHERE expires IS NOT NULL;
";

/// The version of the files whose conversations must be converted.
const WITH_APPENDS: i64 = 4;

/// Rewrites the conversations of a file of version 4 that have inputs to apply. The state of any other is read as it is.
fn convert_conversations(connection: &Connection) -> Result<(), Failure> {
    let mut contexts = connection.prepare(
        "SELECT context, touched, state FROM conversations WHERE context IN (SELECT context FROM appends)",
    )?;
    let mut inputs = connection.prepare("SELECT inputs FROM appends WHERE context = ?1 ORDER BY id")?;
    let mut rows = contexts.query([])?;
    while let Some(row) = rows.next()? {
        let (context, touched, state): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let appended = inputs.query_map([&context], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        let touched = Timestamp::from_microsecond(touched).unwrap_or_default();
        match converted(&context, &state, &appended) {
            Ok(change) => change_conversation(connection, &context, &change, touched)?,
            // The others must not be lost for it. It is reported again when it is read.
            Err(error) => tracing::warn!(%context, %error, "a conversation cannot be converted"),
        }
    }
    Ok(connection.execute_batch("DROP TABLE appends")?)
}

/// Rejects a file of another program before anything is written to it.
pub(super) fn refuse_foreign(connection: &Connection, path: &Path) -> Result<(), Failure> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (id, tables) {
        (APPLICATION_ID, _) | (0, 0) => Ok(()),
        _ => Err(corrupt(path, "it is the SQLite file of another program").into()),
    }
}

/// Migrates the file from its version to the newest. Each step is one transaction.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(missing) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..)) else {
        let known = MIGRATIONS.len();
        let reason =
            format!("its schema is version {version}, this program knows {known}; run a newer program");
        return Err(unavailable(path, reason).into());
    };
    for (next, step) in (version + 1..).zip(missing) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        if next == WITH_APPENDS + 1 {
            convert_conversations(&transaction)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", next)?;
        transaction.commit()?;
    }
    Ok(connection.execute_batch(FACTS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_first_schema_keeps_its_logs() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(FIRST).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let rows = "INSERT INTO tasks VALUES ('t', 'c', 'completed', NULL, 77, '{}');
            INSERT INTO events VALUES ('t', 1, 3, '[1, 2, 3]'), ('t', 4, 4, '[4]');";
        connection.execute_batch(rows).unwrap();
        migrate(&mut connection, Path::new("caipe.db")).unwrap();
        let mut statement =
            connection.prepare("SELECT last_seq, chunks FROM events ORDER BY last_seq").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>().unwrap();
        assert_eq!(rows, [(3, "[[77,[1, 2, 3]]]".to_owned()), (4, "[[77,[4]]]".to_owned())]);
    }

    #[test]
    fn a_file_of_the_fifth_schema_gets_mailboxes_and_owners() {
        let mut connection = Connection::open_in_memory().unwrap();
        for step in &MIGRATIONS[..5] {
            connection.execute_batch(step).unwrap();
        }
        connection.execute_batch("DROP TABLE appends").unwrap();
        connection.pragma_update(None, "user_version", 5).unwrap();
        let rows = "INSERT INTO conversations VALUES ('c', 7, '{}');
            INSERT INTO tasks VALUES ('t', 'c', 'working', 'ann', 77, '{}', 3, 9, 1024),
                ('u', 'c', 'completed', 'bob', 78, '{}', 0, 0, 0), ('v', 'd', 'failed', NULL, 78, '{}', 0, 0, 0);
            INSERT INTO events VALUES ('t', 1, 3, '[[5,[1,2,3]]]');";
        connection.execute_batch(rows).unwrap();
        migrate(&mut connection, Path::new("caipe.db")).unwrap();
        let owner = |context: &str| {
            let sql = "SELECT owner FROM conversation_owners WHERE context = ?1";
            connection.query_row(sql, [context], |row| row.get::<_, Option<String>>(0)).unwrap()
        };
        assert_eq!([owner("c"), owner("d")], [Some("ann".to_owned()), None]);
        let lease = crate::sqlite::rows::acquire(&connection, "t").unwrap();
        assert_eq!((lease.token, lease.reserved, lease.has_controls), (4, 1024, false));
        let message = crate::ControlMessage { id: "m".into(), body: "{}".into() };
        crate::sqlite::controls::put(&connection, "t", &message).unwrap();
        assert_eq!(crate::sqlite::controls::waiting(&connection, "t", 0).unwrap()[0].number, 1);
    }

    /// A program without facts opens the file, and the next one with facts adds the table again.
    #[test]
    fn the_table_of_facts_is_no_version_of_the_schema() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("caipe.db")).unwrap();
        connection.execute_batch("DROP TABLE facts").unwrap();
        for _ in 0..2 {
            migrate(&mut connection, Path::new("caipe.db")).unwrap();
            let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            assert_eq!(version, i64::try_from(MIGRATIONS.len()).unwrap());
            connection.execute_batch("SELECT json FROM facts").unwrap();
        }
    }

    /// A file as version 4 leaves it after a crash: a tool's result is appended to the state, and events are in the journal
    /// alone.
    #[test]
    fn a_file_of_the_fourth_schema_keeps_its_conversations_and_events() {
        let state = include_str!("../../golden/state-1.json");
        let mut connection = Connection::open_in_memory().unwrap();
        for step in &MIGRATIONS[..4] {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", 4).unwrap();
        connection
            .execute("INSERT INTO conversations VALUES ('c', 7, ?1), ('idle', 7, ?1)", [state])
            .unwrap();
        let rows = r#"INSERT INTO appends (context, at, inputs) VALUES ('c', 8,
                '[{"input":"tool_finished","call":"call-1","output":{"content":"twelve"}}]');
            INSERT INTO tasks VALUES ('t', 'c', 'working', NULL, 77, '{}');
            INSERT INTO events VALUES ('t', 1, 3, '[[5,[1,2,3]]]');
            INSERT INTO journal VALUES (0, '[["t",3,3,[[5,[3]]]],["t",4,5,[[6,[4,5]]]],["gone",1,1,[[6,[1]]]]]'),
                (90, '[["t",6,6,[[9,[6]]]]]');"#;
        connection.execute_batch(rows).unwrap();
        migrate(&mut connection, Path::new("caipe.db")).unwrap();
        let mut statement = connection
            .prepare("SELECT task, first_seq, last_seq, chunks FROM events ORDER BY last_seq")
            .unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
        });
        let rows: Vec<(String, i64, i64, String)> = rows.unwrap().collect::<Result<_, _>>().unwrap();
        let row = |first, last, chunks: &str| ("t".to_owned(), first, last, chunks.to_owned());
        assert_eq!(rows, [row(1, 3, "[[5,[1,2,3]]]"), row(4, 5, "[[6,[4,5]]]"), row(6, 6, "[[9,[6]]]")]);
        drop(statement);
        let load = |connection: &mut Connection, context: &str| {
            crate::sqlite::read::conversation(connection, context)
                .unwrap()
                .unwrap()
                .decode(context)
                .unwrap()
                .0
        };
        let (continued, idle) = (load(&mut connection, "c"), load(&mut connection, "idle"));
        assert_eq!(
            idle.messages.len() + 1,
            continued.messages.len(),
            "the result is part of the conversation"
        );
        assert!(format!("{:?}", continued.messages.last()).contains("twelve"));
    }
}

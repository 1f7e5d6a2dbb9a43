//! The collections of the database and their indexes.
//!
//! `tasks`          a record with its lease and the position of its log; `_id` and `task` are that of the task
//! `events`         chunks of events: task, first, last, json
//! `controls`       control messages: task, number, message (its id), body
//! `outbox`         task, entry (its id), deadline, body
//! `pushes`         task, push (its id), body, delivered
//! `facts`          owner, fact (its id), agent, saved, expires if it does, json
//! `conversations`  run, touched, owner, turn; `_id` is that of the conversation
//! `items`          one item of a list of a conversation: context, list, place, item
//! `claims`         owner, until; `_id` is what is claimed, or the process that serves
//! `import`         one document while an import has not ended: export, records, skips
//! `signals`        capped: messages between processes; nothing depends on them
//! `probe`          one document that health checks write

use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use mongodb::options::IndexOptions;
use mongodb::{Database, IndexModel};

use super::error::code;

pub(super) const TASKS: &str = "tasks";
pub(super) const EVENTS: &str = "events";
pub(super) const CONTROLS: &str = "controls";
pub(super) const OUTBOX: &str = "outbox";
pub(super) const PUSHES: &str = "pushes";
pub(super) const FACTS: &str = "facts";
pub(super) const CONVERSATIONS: &str = "conversations";
pub(super) const ITEMS: &str = "items";
pub(super) const CLAIMS: &str = "claims";
pub(super) const IMPORT: &str = "import";
pub(super) const SIGNALS: &str = "signals";
pub(super) const PROBE: &str = "probe";

/// The bytes of the capped collection.
const SIGNAL_BYTES: u64 = 32 << 20;

/// The code of the error that a collection exists.
const EXISTS: i32 = 48;

/// Creates what is missing. Several processes may do so at once.
pub(super) async fn create(database: &Database) -> Result<()> {
    let unique = [
        (EVENTS, doc! { "task": 1, "last": 1 }),
        (CONTROLS, doc! { "task": 1, "number": 1 }),
        (CONTROLS, doc! { "task": 1, "message": 1 }),
        (OUTBOX, doc! { "task": 1, "entry": 1 }),
        (PUSHES, doc! { "task": 1, "push": 1 }),
        (FACTS, doc! { "owner": 1, "fact": 1 }),
        (ITEMS, doc! { "context": 1, "list": 1, "place": 1 }),
    ];
    let others = [
        (TASKS, doc! { "updated": -1, "task": -1 }),
        (TASKS, doc! { "context": 1, "updated": -1, "task": -1 }),
        (TASKS, doc! { "owner": 1, "updated": -1, "task": -1 }),
        (TASKS, doc! { "phase": 1, "until": 1 }),
        (TASKS, doc! { "phase": 1, "updated": 1 }),
        (CONVERSATIONS, doc! { "touched": 1 }),
        (FACTS, doc! { "expires": 1 }),
    ];
    for (name, keys) in unique {
        index(database, name, keys, true).await?;
    }
    for (name, keys) in others {
        index(database, name, keys, false).await?;
    }
    // They have no index that would create them, and a transaction cannot create them everywhere.
    unless_exists(database.create_collection(CLAIMS).await)?;
    unless_exists(database.create_collection(IMPORT).await)?;
    unless_exists(database.create_collection(SIGNALS).capped(true).size(SIGNAL_BYTES).await)
}

fn unless_exists(created: Result<()>) -> Result<()> {
    match created {
        Err(error) if code(&error) != Some(EXISTS) => Err(error),
        _ => Ok(()),
    }
}

async fn index(database: &Database, name: &str, keys: Document, unique: bool) -> Result<()> {
    let options = IndexOptions::builder().unique(unique).build();
    let model = IndexModel::builder().keys(keys).options(options).build();
    database.collection::<Document>(name).create_index(model).await.map(drop)
}

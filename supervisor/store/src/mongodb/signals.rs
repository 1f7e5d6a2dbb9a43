//! Messages between processes in a capped collection: changes, the readers of a task, and text that is not stored yet.
//!
//! A message may be lost, because a commit is acknowledged before it is sent. So all readers read the store again now and then.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, CollectionOptions, CursorType, ReadConcern, WriteConcern};
use mongodb::{Collection, Cursor};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::connection::Connection;
use super::schema::SIGNALS;
use crate::error::StoreError;
use crate::live_exchange::{BATCH, LiveExchange, Message, READS};
use crate::notifier::Watchers;

/// The channels of changes.
pub(super) const EVENTS: &str = "events";
pub(super) const CONTROLS: &str = "controls";

/// The wait before a lost cursor is opened again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// How often every reader reads the store again, and says that it still reads.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// How long the server keeps a request for messages that do not come.
const AWAIT: Duration = Duration::from_secs(2);

/// A new cursor also returns the messages of this time, in milliseconds. A message acts once, however often it comes.
const OVERLAP: i64 = 2000;

/// Most bytes of a message. Larger text is read from the store.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Receives messages, and opens the cursor again after each loss. Then every reader reads once.
pub(super) async fn run(
    connection: Connection,
    watchers: Arc<Watchers>,
    live: Arc<LiveExchange>,
    own: Arc<str>,
) {
    let mut wait = FIRST_WAIT;
    loop {
        if let Err(error) = listen(&connection, &watchers, &live, &own, &mut wait).await {
            tracing::debug!(%error, "failed to follow the messages of other processes in MongoDB");
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Passes messages on until the cursor ends.
async fn listen(
    connection: &Connection,
    watchers: &Watchers,
    live: &LiveExchange,
    own: &str,
    wait: &mut Duration,
) -> Result<(), StoreError> {
    let mut messages = open(connection, live).await?;
    *wait = FIRST_WAIT;
    let mut refresh = interval(REFRESH_INTERVAL);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = messages.try_next() => {
                let message = message
                    .map_err(|error| super::error::translate(connection.servers(), "follow", &error))?;
                let Some(message) = message else { return Ok(()) };
                receive(&message, watchers, live, own);
            }
            _ = refresh.tick() => {
                watchers.notify_all();
                live.refresh();
            }
        }
    }
}

async fn open(connection: &Connection, live: &LiveExchange) -> Result<Cursor<Document>, StoreError> {
    let signals = collection(connection).await?;
    let now = connection.now().await?.earliest;
    let channels = vec![EVENTS.to_owned(), CONTROLS.to_owned(), READS.to_owned(), live.channel()];
    let filter = doc! { "channel": { "$in": channels }, "at": { "$gt": now - OVERLAP } };
    let opened = async {
        // The server ends a cursor over an empty collection at once.
        signals.insert_one(doc! { "channel": "start", "at": now, "message": "" }).await?;
        signals.find(filter).cursor_type(CursorType::TailableAwait).max_await_time(AWAIT).await
    };
    connection.in_time("follow", opened).await
}

fn receive(message: &Document, watchers: &Watchers, live: &LiveExchange, own: &str) {
    let (Ok(channel), Ok(text)) = (message.get_str("channel"), message.get_str("message")) else { return };
    if channel == live.channel() {
        return live.receive(text);
    }
    match text.split_once(' ').filter(|(sender, _)| *sender != own) {
        Some((sender, task)) if channel == READS => live.note(sender, task),
        Some((_, task)) if channel == CONTROLS => watchers.controls.notify(task),
        Some((_, task)) => watchers.events.notify(task),
        None => {}
    }
}

/// Sends messages in order. One that cannot be sent is lost.
pub(super) async fn send(connection: Connection, mut queue: mpsc::Receiver<Message>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        batch.retain(|(_, message)| message.len() <= MAX_MESSAGE_BYTES);
        if batch.is_empty() {
            continue;
        }
        if let Err(error) = insert(&connection, batch.drain(..)).await {
            tracing::debug!(%error, "failed to send messages to other processes; they read the store");
        }
    }
}

async fn insert(
    connection: &Connection,
    batch: impl Iterator<Item = Message> + Send,
) -> Result<(), StoreError> {
    let signals = collection(connection).await?;
    let at = connection.now().await?.earliest;
    let documents: Vec<_> =
        batch.map(|(channel, message)| doc! { "channel": channel, "at": at, "message": message }).collect();
    connection.in_time("publish", async { signals.insert_many(documents).await }).await.map(drop)
}

/// The collection, without the guarantees that messages do not need.
async fn collection(connection: &Connection) -> Result<Collection<Document>, StoreError> {
    let options = CollectionOptions::builder()
        .read_concern(ReadConcern::local())
        .write_concern(WriteConcern::builder().w(Acknowledgment::Nodes(1)).build())
        .build();
    Ok(connection.ready().await?.database.collection_with_options(SIGNALS, options))
}

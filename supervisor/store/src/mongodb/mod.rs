//! A store in a replica set of MongoDB: shared by processes.
//!
//! Each commit is one transaction, which a majority of the members has on disk before the commit returns. A fence is the
//! document of its task, which every commit of its owner changes, so two owners conflict. Changes and text travel in a capped
//! collection; a reader that misses a message reads the log again a little later.

mod clock;
mod commit;
mod connection;
mod documents;
mod error;
mod facts;
mod leases;
mod presence;
mod prune;
mod pushes;
mod read;
mod schema;
mod server;
mod signals;
mod transaction;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::doc;
use tokio_util::task::AbortOnDropHandle;

use crate::backend::Store;
use crate::commit_order::CommitOrder;
use crate::commit_rules::changed_task;
use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{EventChunk, LoggedEvent};
use crate::live::LiveEvents;
use crate::live_exchange::LiveExchange;
use crate::notifier::{Changes, Topic, Watchers};
use crate::push::{PushChange, PushRecord};
use crate::restrictions::RestrictionCache;
use crate::types::{Commit, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskRecord};
use crate::unique::unique;
use commit::PreparedCommit;
use connection::Connection;
use documents::column;
use error::unavailable;
use leases::{SendControl, TakeTurn};
use transaction::transact;

pub(crate) const BACKEND: &str = "mongodb";

/// Where the server is, and which database the store uses.
#[derive(Clone, Default)]
pub struct MongodbOptions {
    /// `mongodb://` or `mongodb+srv://`, with user and password where the server wants them.
    pub uri: String,
    /// The name of the database. Stores with different databases share nothing.
    pub database: String,
    /// A file with the certificate authority of the server as PEM; `None` uses those of the URI, or those of Mozilla.
    pub certificate_authority: Option<PathBuf>,
}

/// Without the URI, which holds a password.
impl std::fmt::Debug for MongodbOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MongodbOptions").field("database", &self.database).finish_non_exhaustive()
    }
}

/// Conversations, tasks and logs in MongoDB.
#[derive(Clone)]
pub struct MongodbStore {
    connection: Connection,
    watchers: Arc<Watchers>,
    live: Arc<LiveExchange>,
    order: Arc<CommitOrder>,
    restrictions: Arc<RestrictionCache>,
    /// Marks the messages of this process, whose readers learn of changes directly.
    sender: Arc<str>,
    /// Receives the messages of other processes, and says that this one serves. None for copies.
    background: Option<Arc<[AbortOnDropHandle<()>; 2]>>,
}

impl MongodbStore {
    /// A store that connects when it is first used, and again whenever the connection is lost.
    ///
    /// # Errors
    /// When the URI cannot be used.
    pub fn open(options: &MongodbOptions) -> Result<Self, StoreError> {
        let mut store = Self::open_alone(options)?;
        let (connection, sender) = (store.connection.clone(), store.sender.clone());
        let listener =
            signals::run(connection.clone(), store.watchers.clone(), store.live.clone(), sender.clone());
        let background = [tokio::spawn(listener), tokio::spawn(presence::run(connection, sender))];
        store.background = Some(Arc::new(background.map(AbortOnDropHandle::new)));
        Ok(store)
    }

    /// A store that does not follow other processes and does not count as a running supervisor. For
    /// [`Transfer`](crate::Transfer).
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_alone(options: &MongodbOptions) -> Result<Self, StoreError> {
        let connection = Connection::new(options)?;
        let sender: Arc<str> = unique().into();
        let live = LiveExchange::new(sender.clone(), |queue| signals::send(connection.clone(), queue));
        let (watchers, order, restrictions) = Default::default();
        Ok(Self { connection, watchers, live: Arc::new(live), order, restrictions, sender, background: None })
    }

    async fn write(&self, mut prepared: PreparedCommit) -> Result<(), StoreError> {
        if prepared.creates() {
            prepared.begins = self.connection.now().await?.latest;
        }
        transact(&self.connection, "commit", &prepared).await
    }

    /// Says to all processes that a task has changed.
    fn announce(&self, channel: &str, task: &str) {
        self.live.put(channel.to_owned(), format!("{} {task}", self.sender));
    }
}

impl std::fmt::Debug for MongodbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MongodbStore").field("servers", &self.connection.servers()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MongodbStore {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let changed = changed_task(&commit).map(str::to_owned);
        let queue = changed.clone().unwrap_or_else(|| commit.context.clone());
        let prepared = PreparedCommit::new(commit, Timestamp::now())?;
        let turn = self.order.queue(&queue).await;
        let store = self.clone();
        // A task of its own, because dropping the future must not cancel the commit.
        let writing = tokio::spawn(async move {
            let _turn = turn.reached().await;
            let outcome = store.write(prepared).await;
            // After a lost response the commit may be written.
            if let Some(task) = changed
                && outcome.as_ref().err().is_none_or(StoreError::is_transient)
            {
                store.watchers.events.notify(&task);
                store.announce(signals::EVENTS, &task);
            }
            outcome
        });
        writing.await.map_err(|error| unavailable(format!("a commit did not end: {error}")))?
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        leases::acquire(&self.connection, task, term).await
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        let is_held = leases::renew(&self.connection, task, token, Some(ttl)).await?;
        if is_held { Ok(()) } else { Err(StoreError::LeaseLost { task: task.to_owned() }) }
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        leases::renew(&self.connection, task, token, None).await.map(drop)
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        leases::abandoned(&self.connection, limit).await
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        let now = self.connection.now().await?;
        transact(&self.connection, "take the turn of a conversation", &TakeTurn { context, task, now }).await
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        message.check(task)?;
        transact(&self.connection, "send a control message", &SendControl { task, message: &message })
            .await?;
        self.watchers.controls.notify(task);
        self.announce(signals::CONTROLS, task);
        Ok(())
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        read::controls(&self.connection, task, after).await
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        read::outbox(&self.connection).await
    }

    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError> {
        let entry = doc! { "task": task, "entry": id };
        self.connection.delete_one("settle an outbox entry", schema::OUTBOX, entry).await
    }

    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError> {
        let now = self.connection.now().await?;
        transact(&self.connection, "claim a duty", &leases::Claim { what, term, now }).await
    }

    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError> {
        let claim = doc! { "_id": what, "owner": owner };
        self.connection.delete_one("end a claim", schema::CLAIMS, claim).await
    }

    async fn watch(&self, task: &str, topic: Topic) -> Result<Changes, StoreError> {
        Ok(self.watchers.watch(task, topic))
    }

    fn live(&self, task: &str) -> Option<LiveEvents> {
        let events = self.live.readers.read(task);
        self.live.announce(task);
        Some(events)
    }

    fn has_live_readers(&self, task: &str) -> bool {
        self.live.is_read(task)
    }

    fn publish(&self, task: &str, events: EventChunk) {
        self.live.publish(task, &events);
    }

    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError> {
        transact(&self.connection, "read", &read::Conversation(context)).await
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        read::task(&self.connection, id).await
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        read::tasks(&self.connection, filter).await
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        read::count_tasks(&self.connection, filter).await
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        read::events(&self.connection, task, after, limit).await
    }

    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError> {
        pushes::change(&self.connection, PushChange::put(push)?).await
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        pushes::find(&self.connection, doc! { "task": task }).await
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        let pending = doc! { "delivered": { "$lt": column(PushRecord::DONE) } };
        pushes::find(&self.connection, pending).await
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        pushes::change(&self.connection, PushChange::delivered(task, id, seq)).await
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        pushes::change(&self.connection, PushChange::delete(task, id)).await
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        self.connection.probe(Timestamp::now()).await
    }

    async fn restrictions(&self) -> Vec<String> {
        self.restrictions.get(server::restrictions(&self.connection)).await
    }

    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        prune::prune(&self.connection, retention).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let Some(background) = &self.background else { return Ok(()) };
        for task in background.iter() {
            task.abort();
        }
        presence::unmark(&self.connection, &self.sender).await
    }
}

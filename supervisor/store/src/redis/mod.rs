//! A store in Redis 6 or newer, or Valkey: shared by processes, with plain commands and scripts.
//!
//! Each write is one script, so it happens completely or not at all. All keys have one hash tag. Changes are published; a reader
//! that misses a message reads the log again when the subscription is back.

mod client;
mod connection;
mod discovery;
mod encode;
mod error;
mod facts;
mod listener;
mod publisher;
mod read;
mod scripts;
mod server;
mod transfer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use redis::Script;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::backend::Store;
use crate::commit_order::CommitOrder;
use crate::commit_rules::changed_task;
use crate::control::{Control, ControlMessage, MAX_CONTROLS};
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
pub use connection::Connection;
use connection::DEADLINE;
use encode::{Arguments, place_of};
use error::{corrupt, unavailable};

pub(crate) const BACKEND: &str = "redis";

/// Most tasks of one step of a prune; commits wait for it.
const PRUNE_STEP: u64 = 64;

/// The wait before a commit is sent again whose response was lost.
const AGAIN: Duration = Duration::from_millis(50);

/// Where the server is, and which keys the store uses.
#[derive(Clone, Default)]
pub struct RedisOptions {
    /// `redis://` or `rediss://`, with user and password where the server wants them; or
    /// `redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/PRIMARY/0`, or `redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379`;
    /// both also with `rediss+`.
    pub url: String,
    /// The prefix of all keys. Stores with different names share nothing.
    pub database: String,
    /// The certificate authority of the server as PEM; `None` uses those of the machine.
    pub certificate_authority: Option<String>,
}

/// Without the URL, which holds a password.
impl std::fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions").field("database", &self.database).finish_non_exhaustive()
    }
}

/// Conversations, tasks and logs in Redis.
#[derive(Clone)]
pub struct RedisStore {
    connection: Connection,
    watchers: Arc<Watchers>,
    live: Arc<LiveExchange>,
    order: Arc<CommitOrder>,
    restrictions: Arc<RestrictionCache>,
    /// Marks the published changes of this process, whose readers learn of them directly.
    sender: Arc<str>,
    listener: Option<Arc<AbortOnDropHandle<()>>>,
}

impl RedisStore {
    /// A store that connects when it is first used, and again whenever the connection is lost.
    ///
    /// # Errors
    /// When the URL or the certificate authority cannot be used.
    pub fn open(options: &RedisOptions) -> Result<Self, StoreError> {
        let mut store = Self::open_alone(options)?;
        let (connection, watchers) = (store.connection.clone(), store.watchers.clone());
        let listener = listener::run(connection, watchers, store.live.clone(), store.sender.clone());
        store.listener = Some(Arc::new(AbortOnDropHandle::new(tokio::spawn(listener))));
        Ok(store)
    }

    /// A store that does not listen to changes of other processes, so that it does not count as a running supervisor. For
    /// [`Transfer`](crate::Transfer).
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_alone(options: &RedisOptions) -> Result<Self, StoreError> {
        let connection = Connection::new(options)?;
        let sender: Arc<str> = unique().into();
        let publish = |queue| publisher::send(connection.clone(), queue);
        let live = Arc::new(LiveExchange::new(sender.clone(), publish));
        let (watchers, order, restrictions) = Default::default();
        Ok(Self { connection, watchers, live, order, restrictions, sender, listener: None })
    }

    async fn write(
        &self,
        action: &'static str,
        script: &Script,
        arguments: Arguments,
    ) -> Result<Vec<String>, StoreError> {
        error::accepted(self.connection.call(action, script, arguments).await?)
    }

    /// Sends a commit, and sends it again while responses are lost, up to the deadline.
    async fn write_commit(&self, arguments: Arguments) -> Result<(), StoreError> {
        let until = Instant::now() + DEADLINE;
        loop {
            match self.write("commit", &scripts::COMMIT, arguments.clone()).await {
                Err(error) if error::is_unanswered(&error) && Instant::now() + AGAIN < until => {
                    sleep(AGAIN).await;
                }
                outcome => return outcome.map(drop),
            }
        }
    }

    async fn change_push(&self, change: PushChange) -> Result<(), StoreError> {
        let arguments = encode::push(change);
        self.write("keep a push configuration", &scripts::PUSHES, arguments).await.map(drop)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("server", &self.connection.name()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for RedisStore {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let changed = changed_task(&commit).map(str::to_owned);
        let queue = changed.clone().unwrap_or_else(|| commit.context.clone());
        let arguments = encode::commit(commit, &self.sender, Timestamp::now())?;
        let turn = self.order.queue(&queue).await;
        let store = self.clone();
        // A task of its own, because dropping the future must not cancel the commit.
        let writing = tokio::spawn(async move {
            let _turn = turn.reached().await;
            let outcome = store.write_commit(arguments).await;
            // After a lost response the commit may be written.
            if let Some(task) = changed
                && outcome.as_ref().err().is_none_or(StoreError::is_transient)
            {
                store.watchers.events.notify(&task);
            }
            outcome
        });
        writing.await.map_err(|error| unavailable(format!("a commit did not end: {error}")))?
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        let arguments = Arguments::of([task, &term.owner]).and(encode::millis(term.ttl));
        let lease = self.write("take over a task", &scripts::ACQUIRE, arguments).await?;
        let [token, reserved, waits] = lease.as_slice() else { return Err(corrupt("a lease")) };
        let number = |text: &String| text.parse().map_err(|_| corrupt("a lease"));
        Ok(Lease { token: number(token)?, reserved: number(reserved)?, has_controls: waits == "1" })
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        let arguments = Arguments::of([task]).and(token).and(encode::millis(ttl));
        self.write("renew a lease", &scripts::RENEW, arguments).await.map(drop)
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        let arguments = Arguments::of([task, &token.to_string(), ""]);
        match self.write("release a lease", &scripts::RENEW, arguments).await {
            Ok(_) | Err(StoreError::LeaseLost { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        read::abandoned(&self.connection, limit).await
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        let arguments = Arguments::of([context, task]);
        Ok(self.write("take the turn of a conversation", &scripts::TAKE_TURN, arguments).await?.pop())
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        message.check(task)?;
        let arguments =
            Arguments::of([task, &message.id, &message.body, &self.sender]).and(MAX_CONTROLS as u64);
        self.write("send a control message", &scripts::SEND_CONTROL, arguments).await?;
        self.watchers.controls.notify(task);
        Ok(())
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        read::controls(&self.connection, task, after).await
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        read::outbox(&self.connection).await
    }

    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.write("settle an outbox entry", &scripts::SETTLE, Arguments::of([task, id])).await.map(drop)
    }

    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError> {
        let arguments = Arguments::of([what, &term.owner]).and(encode::millis(term.ttl));
        let claimed = self.write("claim a duty", &scripts::CLAIM, arguments).await?;
        Ok(claimed.first().is_some_and(|claimed| claimed == "1"))
    }

    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError> {
        let arguments = Arguments::of([what, owner, ""]);
        self.write("end a claim", &scripts::CLAIM, arguments).await.map(drop)
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
        read::conversation(&self.connection, context).await
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
        self.change_push(PushChange::put(push)?).await
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        read::pushes(&self.connection, "", task).await
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        let mut pending = read::pushes(&self.connection, "pushes", "").await?;
        pending.retain(|push| push.delivered < PushRecord::DONE);
        Ok(pending)
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        self.change_push(PushChange::delivered(task, id, seq)).await
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.change_push(PushChange::delete(task, id)).await
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        let key = self.connection.key("probe");
        let mut probe = redis::cmd("SET");
        probe.arg(key).arg(Timestamp::now().as_microsecond());
        self.connection.query("write a probe", &probe).await
    }

    async fn restrictions(&self) -> Vec<String> {
        self.restrictions.get(server::restrictions(&self.connection)).await
    }

    /// Prunes in small steps. Commits can run between them.
    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        let bound = |cutoff: Option<Timestamp>| cutoff.map(|at| format!("({}", place_of(at)));
        let bounds = [retention.tasks_before, retention.conversations_before].map(bound);
        let [tasks, conversations] = bounds.map(Option::unwrap_or_default);
        let (mut total, mut skip) = (Pruned::default(), 0);
        loop {
            let arguments = Arguments::of([&*tasks, &*conversations]).and(skip).and(PRUNE_STEP);
            let step: (usize, usize, u64, u8) =
                self.connection.call("prune", &scripts::PRUNE, arguments).await?;
            total.tasks += step.0;
            total.conversations += step.1;
            skip = step.2;
            if step.3 == 0 {
                return Ok(total);
            }
        }
    }
}

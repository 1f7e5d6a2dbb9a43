//! The children of the bridge: one for each session, one for the stateless era, one spare.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::child::{Child, ChildCommand};
use super::error::BridgeError;
use super::message_router::Clients;

/// How long a new child waits for a slot. Stopping a child takes less.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);

/// The session of one client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) child: Arc<Child>,
    /// The negotiated protocol version.
    pub(crate) version: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ChildPool {
    command: ChildCommand,
    max_children: usize,
    slots: Arc<Semaphore>,
    table: Mutex<Table>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<String, Arc<Session>>,
    /// The child of the stateless era.
    shared: Option<Arc<Child>>,
    /// The child for the next session: unused, or it has rejected `server/discover`.
    spare: Option<Arc<Child>>,
}

impl ChildPool {
    pub(crate) fn new(command: ChildCommand, max_children: usize, shutdown: CancellationToken) -> Self {
        let slots = Arc::new(Semaphore::new(max_children));
        Self { command, max_children, slots, table: Mutex::default(), tasks: TaskTracker::new(), shutdown }
    }

    /// Starts the first child before the first request, because a server may take longer to start than a client waits.
    pub(crate) async fn start_spare(&self) {
        match self.start(Clients::All).await {
            Ok(child) => self.table().spare = Some(child),
            Err(error) => tracing::warn!(reason = error.message(), "the tool server does not start"),
        }
    }

    /// The session of this id, while its child runs.
    pub(crate) fn session(&self, id: &str) -> Result<Arc<Session>, BridgeError> {
        let session = self.table().sessions.get(id).cloned();
        session.filter(|session| !session.child.has_ended()).ok_or_else(BridgeError::no_session)
    }

    pub(crate) async fn child_for_session(&self) -> Result<Arc<Child>, BridgeError> {
        let spare = self.table().spare.take().filter(|child| !child.has_ended());
        if let Some(child) = spare {
            child.dedicate();
            return Ok(child);
        }
        self.start(Clients::One).await
    }

    /// Adds a session and returns its id.
    pub(crate) fn open_session(&self, session: Session) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        self.table().sessions.insert(id.clone(), Arc::new(session));
        id
    }

    pub(crate) fn end_session(&self, id: &str) -> Result<(), BridgeError> {
        let session = self.table().sessions.remove(id).ok_or_else(BridgeError::no_session)?;
        session.child.stop();
        Ok(())
    }

    /// The child of the stateless era.
    pub(crate) async fn shared_child(&self) -> Result<Arc<Child>, BridgeError> {
        if let Some(child) = self.table().shared_child() {
            return Ok(child);
        }
        let started = self.start(Clients::All).await?;
        let mut table = self.table();
        // A concurrent request may have started one as well; then the second child ends as it is dropped.
        let child = table.shared.take().filter(|child| !child.has_ended()).unwrap_or(started);
        table.shared = Some(child.clone());
        Ok(child)
    }

    /// Keeps the shared child for the next session, because its server only knows sessions.
    pub(crate) fn keep_for_session(&self, child: &Arc<Child>) {
        let mut table = self.table();
        if table.shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, child)) {
            let spare = table.shared.take().filter(|child| !child.has_ended() && child.idle_time().is_some());
            table.spare = spare.or(table.spare.take());
        }
    }

    /// Stops all children and waits for their end. No new ones start.
    pub(crate) async fn shutdown(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn start(&self, clients: Clients) -> Result<Arc<Child>, BridgeError> {
        if self.shutdown.is_cancelled() {
            return Err(BridgeError::unavailable("the bridge is shutting down"));
        }
        self.free_slot();
        let full = || {
            let max_children = self.max_children;
            BridgeError::unavailable(format!(
                "{max_children} tool servers run, which is the limit (--max-sessions)"
            ))
        };
        // Waits for a slot only if a child is being stopped.
        let slot = match self.slots.clone().try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) if self.is_full() => return Err(full()),
            Err(_) => match timeout(SLOT_TIMEOUT, self.slots.clone().acquire_owned()).await {
                Ok(Ok(slot)) => slot,
                _ => return Err(full()),
            },
        };
        Child::start(&self.command, clients, slot, &self.tasks, &self.shutdown)
            .map_err(|error| BridgeError::unavailable(self.command.redactor.redact(error.to_string())))
    }

    /// Removes ended children; at the limit, also the one that has been idle for longest.
    fn free_slot(&self) {
        let mut table = self.table();
        table.sessions.retain(|_, session| !session.child.has_ended());
        if self.slots.available_permits() > 0 {
            return;
        }
        let mut idle: Vec<_> = table.all().filter_map(|child| Some((child.idle_time()?, child))).collect();
        idle.sort_by_key(|(time, _)| *time);
        if let Some((_, child)) = idle.pop() {
            child.stop();
        }
    }

    fn is_full(&self) -> bool {
        self.table().all().filter(|child| !child.has_ended()).count() >= self.max_children
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The shared child, or an unused spare in its place.
    fn shared_child(&mut self) -> Option<Arc<Child>> {
        let shared = self.shared.take().filter(|child| !child.has_ended());
        self.shared = shared.or_else(|| self.spare.take_if(|child| child.is_unused() && !child.has_ended()));
        self.shared.clone()
    }

    fn all(&self) -> impl Iterator<Item = Arc<Child>> {
        let sessions = self.sessions.values().map(|session| session.child.clone());
        sessions.chain(self.shared.clone()).chain(self.spare.clone())
    }
}

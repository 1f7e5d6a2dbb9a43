//! All children, the session of each, and their limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::child::Child;
use super::launch::Launch;
use super::message_router::Clients;
use super::refusal::Refusal;

/// How long a child that makes room may take to go: longer than it takes to stop a stubborn one.
const ROOM: Duration = Duration::from_secs(10);

/// One client's session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) child: Arc<Child>,
    /// The protocol version agreed on.
    pub(super) version: OnceLock<String>,
}

/// All children.
#[derive(Debug)]
pub(super) struct Children {
    launch: Launch,
    most: usize,
    places: Arc<Semaphore>,
    table: Mutex<Table>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<String, Arc<Session>>,
    /// Who serves the stateless era.
    shared: Option<Arc<Child>>,
    /// The child for the next session: it got no request so far, or refused the first one of that era.
    spare: Option<Arc<Child>>,
}

impl Children {
    pub(super) fn new(launch: Launch, most: usize, shutdown: CancellationToken) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self { launch, most, places, table: Mutex::default(), tasks: TaskTracker::new(), shutdown }
    }

    /// Starts a child before anybody asks: servers may take long to start, and clients may not wait that long.
    pub(super) async fn warm_up(&self) {
        match self.start(Clients::All).await {
            Ok(child) => self.table().spare = Some(child),
            Err(refusal) => tracing::warn!(reason = refusal.message(), "the tool server does not start"),
        }
    }

    /// The session of this id, while its child is there.
    pub(super) fn session(&self, id: &str) -> Result<Arc<Session>, Refusal> {
        let session = self.table().sessions.get(id).cloned();
        session.filter(|session| !session.child.is_gone()).ok_or_else(Refusal::no_session)
    }

    /// A child for a new session.
    pub(super) async fn for_session(&self) -> Result<Arc<Child>, Refusal> {
        let spare = self.table().spare.take().filter(|child| !child.is_gone());
        if let Some(child) = spare {
            child.dedicate();
            return Ok(child);
        }
        self.start(Clients::One).await
    }

    /// Notes a session: its id.
    pub(super) fn open(&self, session: Session) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        self.table().sessions.insert(id.clone(), Arc::new(session));
        id
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str) -> Result<(), Refusal> {
        let session = self.table().sessions.remove(id).ok_or_else(Refusal::no_session)?;
        session.child.stop();
        Ok(())
    }

    /// The child of the stateless era.
    pub(super) async fn shared(&self) -> Result<Arc<Child>, Refusal> {
        if let Some(child) = self.table().sharing() {
            return Ok(child);
        }
        let started = self.start(Clients::All).await?;
        let mut table = self.table();
        // Somebody else may have been quicker; then the second goes as it is dropped.
        let child = table.shared.take().filter(|child| !child.is_gone()).unwrap_or(started);
        table.shared = Some(child.clone());
        Ok(child)
    }

    /// Takes the shared child out of service, which is of the other era, and keeps it for the next session.
    pub(super) fn retire(&self, child: &Arc<Child>) {
        let mut table = self.table();
        if table.shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, child)) {
            let retired = table.shared.take().filter(|child| !child.is_gone() && child.idle_time().is_some());
            table.spare = retired.or(table.spare.take());
        }
    }

    /// Ends all children, and returns when they are gone. No new ones are started.
    pub(super) async fn shutdown(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn start(&self, clients: Clients) -> Result<Arc<Child>, Refusal> {
        if self.shutdown.is_cancelled() {
            return Err(Refusal::unavailable("the bridge is shutting down"));
        }
        self.make_room();
        let full = || {
            let most = self.most;
            Refusal::unavailable(format!("{most} tool servers run, which is the limit (--max-sessions)"))
        };
        // Without a child that is on its way out, nobody makes room soon.
        let place = match self.places.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) if self.is_full() => return Err(full()),
            Err(_) => match timeout(ROOM, self.places.clone().acquire_owned()).await {
                Ok(Ok(place)) => place,
                _ => return Err(full()),
            },
        };
        Child::start(&self.launch, clients, place, &self.tasks, &self.shutdown)
            .map_err(|error| Refusal::unavailable(self.launch.redactor.redact(error.to_string())))
    }

    /// Removes ended children; at the limit, also the one that has been idle for longest.
    fn make_room(&self) {
        let mut table = self.table();
        table.sessions.retain(|_, session| !session.child.is_gone());
        if self.places.available_permits() > 0 {
            return;
        }
        let mut idle: Vec<_> = table.all().filter_map(|child| Some((child.idle_time()?, child))).collect();
        idle.sort_by_key(|(time, _)| *time);
        if let Some((_, child)) = idle.pop() {
            child.stop();
        }
    }

    fn is_full(&self) -> bool {
        self.table().all().filter(|child| !child.is_gone()).count() >= self.most
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The shared child, for which one that was asked nothing so far will do.
    fn sharing(&mut self) -> Option<Arc<Child>> {
        let shared = self.shared.take().filter(|child| !child.is_gone());
        self.shared = shared.or_else(|| self.spare.take_if(|child| child.is_fresh() && !child.is_gone()));
        self.shared.clone()
    }

    fn all(&self) -> impl Iterator<Item = Arc<Child>> {
        let sessions = self.sessions.values().map(|session| session.child.clone());
        sessions.chain(self.shared.clone()).chain(self.spare.clone())
    }
}

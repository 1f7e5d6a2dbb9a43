//! All push configurations of a server.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_net::{Client, Redirects, Screen};
use tokio::sync::Mutex;
use url::Url;
use uuid::Uuid;

use super::admit;
use super::counts::{Counts, PushCounts};
use super::desk::Desk;
use super::lanes::Lanes;
use super::policy::Backoff;
use super::store::{PushStore, PushStoreError, Registration};
use super::worker::{Shared, Worker};
use crate::error::{A2aError, Violation};
use crate::model::TaskPushNotificationConfig;
use crate::server::call::Subscription;
use crate::server::log::TaskLog;
use crate::version::ProtocolVersion;

/// How to serve push configurations.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Which addresses may be reached.
    pub screen: Screen,
    /// How long to wait after a notification before the next, unless it tells that the task ended or waits.
    /// What happens meanwhile is put together.
    pub pace: Duration,
    /// How long a receiver may take to answer.
    pub attempt_timeout: Duration,
    /// The wait after a first failure; each later one doubles it.
    pub first_wait: Duration,
    /// The longest wait between two attempts, unless the receiver asks for more.
    pub most_wait: Duration,
    /// How long a receiver may fail on end before the configuration is given up.
    pub give_up_after: Duration,
    /// How many deliveries go on at once.
    pub most_at_once: usize,
    /// How many of them to one host.
    pub most_per_receiver: usize,
}

impl Default for PushOptions {
    fn default() -> Self {
        Self {
            screen: Screen::default(),
            pace: Duration::from_millis(500),
            attempt_timeout: Duration::from_secs(15),
            first_wait: Duration::from_secs(1),
            most_wait: Duration::from_mins(5),
            give_up_after: Duration::from_hours(1),
            most_at_once: 64,
            most_per_receiver: 8,
        }
    }
}

/// Keeps the push configurations of a server's tasks and serves them, each in a task of its own that no run waits
/// for. Stops with [`Pushes::stop`] or when it is dropped.
pub struct Pushes {
    screen: Screen,
    shared: Arc<Shared>,
    registering: Mutex<()>,
}

impl fmt::Debug for Pushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushes").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Pushes {
    /// Serves what is kept in `store`.
    ///
    /// # Errors
    /// When the system has no TLS to offer.
    pub fn new(store: Arc<dyn PushStore>, options: PushOptions) -> Result<Arc<Self>, reqwest::Error> {
        let shared = Shared {
            store,
            desk: Desk::default(),
            client: Client::new(options.screen.clone(), Redirects::Return)?,
            lanes: Lanes::new(options.most_at_once, options.most_per_receiver),
            counts: Counts::default(),
            backoff: Backoff {
                first: options.first_wait,
                most: options.most_wait,
                total: options.give_up_after,
            },
            pace: options.pace,
            attempt_timeout: options.attempt_timeout,
        };
        Ok(Arc::new(Self { screen: options.screen, shared: Arc::new(shared), registering: Mutex::default() }))
    }

    /// Takes up what a former process left in the store, and returns the tasks that it is about. Each of them is to
    /// be shown to [`Pushes::follow`], at once or when it goes on, or told to [`Pushes::forget`].
    pub async fn resume(&self) -> Result<Vec<String>, PushStoreError> {
        let mut tasks = BTreeSet::new();
        for registration in self.shared.store.pending().await? {
            tasks.insert(registration.task.clone());
            self.shared.desk.take(registration);
        }
        Ok(tasks.into_iter().collect())
    }

    /// Tells that the events of a task are now found in this log. Costs nothing where nobody wants them.
    pub fn follow(&self, task: &str, log: &Arc<TaskLog>) {
        let start =
            |job| tokio::spawn(Worker::run(Arc::clone(&self.shared), job, Arc::clone(log))).abort_handle();
        self.shared.desk.follow(task, log, start);
    }

    /// Whether anything is left to be delivered for a task.
    pub fn serves(&self, task: &str) -> bool {
        self.shared.desk.knows(task)
    }

    /// Forgets all configurations of a task that is no more.
    pub async fn forget(&self, task: &str) -> Result<(), PushStoreError> {
        self.shared.desk.drop_orders(task, None);
        for registration in self.shared.store.of_task(task).await? {
            self.shared.store.delete(task, &registration.id).await?;
        }
        Ok(())
    }

    /// Waits, at most `grace`, until what is known of tasks that run no more is delivered, then stops.
    pub async fn drain(&self, grace: Duration) {
        const LOOK: Duration = Duration::from_millis(20);
        let settled = async {
            while self.shared.desk.owes() {
                tokio::time::sleep(LOOK).await;
            }
        };
        drop(tokio::time::timeout(grace, settled).await);
        self.stop();
    }

    /// Stops delivering; what is undelivered stays in the store.
    pub fn stop(&self) {
        self.shared.desk.stop();
    }

    /// How deliveries went so far.
    pub fn counts(&self) -> PushCounts {
        self.shared.counts.read()
    }

    /// Whether a configuration can be served. Faults are located below `prefix`.
    pub(in crate::server) fn check(
        &self,
        config: &TaskPushNotificationConfig,
        prefix: &str,
    ) -> Result<(), A2aError> {
        let mut faults = admit::faults(config, prefix);
        let reason = match config.url.parse::<Url>() {
            Ok(url) => self.screen.check_url(&url).err().map(|refusal| refusal.to_string()),
            Err(error) => Some(error.to_string()),
        };
        faults.extend(reason.map(|reason| Violation::new(admit::at(prefix, "url"), reason)));
        if faults.is_empty() { Ok(()) } else { Err(A2aError::InvalidParams(faults)) }
    }

    /// Whether a task can have this configuration besides those that it has.
    pub(in crate::server) async fn has_room(
        &self,
        task: &str,
        config: &TaskPushNotificationConfig,
        version: ProtocolVersion,
    ) -> Result<(), A2aError> {
        let known = self.shared.store.of_task(task).await.map_err(told)?;
        place(config, task, version, &known).map(drop)
    }

    /// Keeps a configuration and serves it with what comes after `subscription.after`. Returns it as it is kept.
    ///
    /// The task may go on in another log meanwhile, which is then to be shown to [`Pushes::follow`] once more.
    pub(in crate::server) async fn register(
        &self,
        task: &str,
        config: TaskPushNotificationConfig,
        version: ProtocolVersion,
        subscription: &Subscription,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        // One at a time: two that come at once must not both find the last place free.
        let _registering = self.registering.lock().await;
        let known = self.shared.store.of_task(task).await.map_err(told)?;
        let Place { id, replaces } = place(&config, task, version, &known)?;
        let config =
            TaskPushNotificationConfig { id: Some(id.clone()), task_id: Some(task.to_owned()), ..config };
        let same = |old: &&Registration| old.config == config && old.version == version;
        if replaces.filter(same).is_some_and(|old| old.delivered < Registration::DONE) {
            // Who serves it goes on: told with each message, it is still one wish.
            return Ok(config);
        }
        let delivered = if has_ended(subscription) {
            Registration::DONE
        } else {
            // Whoever registers once more is still owed what was not delivered yet.
            let owed = replaces.filter(|old| old.config.url == config.url).map(|old| old.delivered);
            owed.map_or(subscription.after, |owed| owed.min(subscription.after))
        };
        let kept = config.clone();
        let registration = Registration { task: task.to_owned(), id, version, config, delivered };
        self.put(registration, replaces, &subscription.log).await.map_err(told)?;
        Ok(kept)
    }

    /// Keeps a registration and serves it. Who served the old one stops first, so as to note nothing in the new one.
    async fn put(
        &self,
        new: Registration,
        old: Option<&Registration>,
        log: &Arc<TaskLog>,
    ) -> Result<(), PushStoreError> {
        self.shared.desk.drop_orders(&new.task, Some(&new.id));
        let put = self.shared.store.put(new.clone()).await;
        let served = if put.is_ok() { Some(&new) } else { old };
        if let Some(served) = served.filter(|served| served.delivered < Registration::DONE) {
            self.shared.desk.take(served.clone());
            self.follow(&served.task, log);
        }
        put
    }

    /// The configurations of a task, by their ids.
    pub(in crate::server) async fn of_task(
        &self,
        task: &str,
    ) -> Result<Vec<TaskPushNotificationConfig>, A2aError> {
        let known = self.shared.store.of_task(task).await.map_err(told)?;
        Ok(known.into_iter().map(|registration| registration.config).collect())
    }

    /// Forgets a configuration; nothing more is delivered for it.
    pub(in crate::server) async fn remove(&self, task: &str, id: &str) -> Result<(), A2aError> {
        self.shared.desk.drop_orders(task, Some(id));
        self.shared.store.delete(task, id).await.map_err(told)
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether nothing comes after `after`: the task ended by then.
fn has_ended(subscription: &Subscription) -> bool {
    subscription.log.state().is_terminal() && subscription.after >= subscription.log.last_seq()
}

/// Where a configuration goes among those of its task.
struct Place<'a> {
    id: String,
    replaces: Option<&'a Registration>,
}

/// Finds a place. Without an id of its own a configuration takes, in 0.3, the task's, as the official SDKs do. In
/// 1.0, where a client may create several, one is made up; but the same address, told again with each message, stays
/// one configuration.
fn place<'a>(
    config: &TaskPushNotificationConfig,
    task: &str,
    version: ProtocolVersion,
    known: &'a [Registration],
) -> Result<Place<'a>, A2aError> {
    let named = config.id.as_deref().filter(|id| !id.is_empty());
    let replaces = match (named, version) {
        (Some(id), _) => known.iter().find(|known| known.id == id),
        (None, ProtocolVersion::V0_3) => known.iter().find(|known| known.id == task),
        (None, ProtocolVersion::V1_0) => known.iter().find(|known| known.config.url == config.url),
    };
    if replaces.is_none() && known.len() >= admit::MOST_PER_TASK {
        return Err(admit::too_many(task));
    }
    let id = match (named, replaces, version) {
        (Some(id), ..) => id.to_owned(),
        (None, Some(old), _) => old.id.clone(),
        (None, None, ProtocolVersion::V0_3) => task.to_owned(),
        (None, None, ProtocolVersion::V1_0) => Uuid::new_v4().to_string(),
    };
    Ok(Place { id, replaces })
}

/// What a client is told when the store fails; why is for the log.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn told(error: PushStoreError) -> A2aError {
    tracing::error!(%error, "push configurations cannot be served");
    A2aError::Internal("the store of push configurations failed; try again".to_owned())
}

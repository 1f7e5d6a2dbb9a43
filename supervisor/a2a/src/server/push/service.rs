//! All push configurations of a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_net::{Client, Redirects, Screen};
use tokio::sync::Mutex;
use url::Url;
use uuid::Uuid;

use super::concurrency::Permits;
use super::jobs::Jobs;
use super::retry::Backoff;
use super::store::{PushStore, PushStoreError, Registration};
use super::validate;
use super::worker::{Shared, Worker};
use crate::error::{A2aError, Violation};
use crate::model::TaskPushNotificationConfig;
use crate::server::call::Subscription;
use crate::server::task_log::TaskLog;
use crate::version::ProtocolVersion;

/// Options of push notifications.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// The addresses that may be reached.
    pub screen: Screen,
    /// The time between notifications, which combine the events in between. A notification that the task ended or waits
    /// is sent at once.
    pub pace: Duration,
    /// How long a receiver may take to respond.
    pub attempt_timeout: Duration,
    /// The wait after a first failure; each later one doubles it.
    pub first_wait: Duration,
    /// The longest wait between two attempts, unless the receiver asks for more.
    pub most_wait: Duration,
    /// How long a receiver may fail before its configuration is given up.
    pub give_up_after: Duration,
    /// Most concurrent deliveries.
    pub most_at_once: usize,
    /// Most concurrent deliveries to one host.
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

/// Stores the push configurations of a server's tasks and delivers their notifications in the background. Stops with [`Pushes::stop`] or when it is dropped.
pub struct Pushes {
    screen: Screen,
    shared: Arc<Shared>,
    registering: Mutex<()>,
}

impl fmt::Debug for Pushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushes").finish_non_exhaustive()
    }
}

impl Pushes {
    /// Push notifications for the configurations in `store`.
    ///
    /// # Errors
    /// If the system offers no TLS.
    pub fn new(store: Arc<dyn PushStore>, options: PushOptions) -> Result<Arc<Self>, reqwest::Error> {
        let shared = Shared {
            store,
            jobs: Jobs::default(),
            client: Client::new(options.screen.clone(), Redirects::Return)?,
            permits: Permits::new(options.most_at_once, options.most_per_receiver),
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

    /// Stays the one that delivers what it does, and returns the configurations with undelivered notifications for which it
    /// does nothing. Pass each to [`Pushes::take`] if its task has undelivered events, or its task to [`Pushes::forget`].
    pub async fn unserved(&self) -> Result<Vec<Registration>, PushStoreError> {
        for served in self.shared.jobs.served() {
            if self.shared.store.admit(&served).await?.is_none() {
                self.shared.jobs.remove(&served.task, Some(&served.id));
            }
        }
        let mut pending = self.shared.store.pending().await?;
        self.shared.jobs.retain_pending(&mut pending);
        Ok(pending)
    }

    /// Takes a configuration unless another process delivers it. Returns whether it did; then pass the task to
    /// [`Pushes::follow`].
    pub async fn take(&self, registration: Registration) -> Result<bool, PushStoreError> {
        let Some(delivered) = self.shared.store.admit(&registration).await? else { return Ok(false) };
        self.shared.jobs.add_idle(Registration { delivered, ..registration });
        Ok(true)
    }

    /// Delivers the events of a task from this log. Costs nothing for a task without configurations.
    pub fn follow(&self, task: &str, log: &Arc<TaskLog>) {
        let start =
            |job| tokio::spawn(Worker::run(Arc::clone(&self.shared), job, Arc::clone(log))).abort_handle();
        self.shared.jobs.follow(task, log, start);
    }

    /// Whether a task has undelivered notifications.
    pub fn serves(&self, task: &str) -> bool {
        self.shared.jobs.contains(task)
    }

    /// The number of configurations with notifications that are not delivered yet.
    pub fn queued(&self) -> usize {
        self.shared.jobs.count()
    }

    /// Removes all configurations of a removed task.
    pub async fn forget(&self, task: &str) -> Result<(), PushStoreError> {
        self.shared.jobs.remove(task, None);
        for registration in self.shared.store.of_task(task).await? {
            self.shared.store.delete(task, &registration.id).await?;
        }
        Ok(())
    }

    /// Waits at most `grace` until the notifications of ended tasks are delivered, then stops and leaves the rest to other
    /// processes.
    pub async fn drain(&self, grace: Duration) {
        const INTERVAL: Duration = Duration::from_millis(20);
        let settled = async {
            while self.shared.jobs.has_undelivered_logs() {
                tokio::time::sleep(INTERVAL).await;
            }
        };
        drop(tokio::time::timeout(grace, settled).await);
        let served = self.shared.jobs.served();
        self.stop();
        for Registration { task, id, .. } in served {
            if let Err(error) = self.shared.store.release(&task, &id).await {
                tracing::warn!(task, %error, "another process delivers push notifications a little later");
            }
        }
    }

    /// Stops deliveries; undelivered notifications stay in the store.
    pub fn stop(&self) {
        self.shared.jobs.stop();
    }

    /// Checks a configuration. Fields of violations start with `prefix`.
    pub(in crate::server) fn check(
        &self,
        config: &TaskPushNotificationConfig,
        prefix: &str,
    ) -> Result<(), A2aError> {
        let mut faults = validate::faults(config, prefix);
        let reason = match config.url.parse::<Url>() {
            Ok(url) => self.screen.check_url(&url).err().map(|refusal| refusal.to_string()),
            Err(error) => Some(error.to_string()),
        };
        faults.extend(reason.map(|reason| Violation::new(validate::field_path(prefix, "url"), reason)));
        if faults.is_empty() { Ok(()) } else { Err(A2aError::InvalidParams(faults)) }
    }

    /// Whether a task can have this configuration in addition to its others.
    pub(in crate::server) async fn has_room(
        &self,
        task: &str,
        config: &TaskPushNotificationConfig,
        version: ProtocolVersion,
    ) -> Result<(), A2aError> {
        let known = self.shared.store.of_task(task).await.map_err(store_failed)?;
        place(config, task, version, &known).map(drop)
    }

    /// Stores a configuration and delivers the events after `subscription.after`. Returns the stored configuration.
    ///
    /// If the task has continued in another log meanwhile, call [`Pushes::follow`] again.
    pub(in crate::server) async fn register(
        &self,
        task: &str,
        config: TaskPushNotificationConfig,
        version: ProtocolVersion,
        subscription: &Subscription,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        // One at a time, so that two concurrent calls cannot both take the last free place.
        let _registering = self.registering.lock().await;
        let known = self.shared.store.of_task(task).await.map_err(store_failed)?;
        let Place { id, replaces } = place(&config, task, version, &known)?;
        let config =
            TaskPushNotificationConfig { id: Some(id.clone()), task_id: Some(task.to_owned()), ..config };
        let same = |old: &&Registration| old.config == config && old.version == version;
        if replaces.filter(same).is_some_and(|old| old.delivered < Registration::DONE) {
            // Clients repeat a configuration with each message; its worker continues.
            return Ok(config);
        }
        let delivered = if has_ended(subscription) {
            Registration::DONE
        } else {
            // A client that registers again still gets the undelivered events.
            let undelivered_from =
                replaces.filter(|old| old.config.url == config.url).map(|old| old.delivered);
            undelivered_from.map_or(subscription.after, |seq| seq.min(subscription.after))
        };
        let stored = config.clone();
        let registration = Registration { task: task.to_owned(), id, version, config, delivered };
        self.put(registration, replaces, &subscription.log).await.map_err(store_failed)?;
        Ok(stored)
    }

    /// Stores a registration and starts its worker. Stops the old worker first, so that it does not save its progress in
    /// the new registration.
    async fn put(
        &self,
        new: Registration,
        old: Option<&Registration>,
        log: &Arc<TaskLog>,
    ) -> Result<(), PushStoreError> {
        self.shared.jobs.remove(&new.task, Some(&new.id));
        let put = self.shared.store.put(new.clone()).await;
        let served = if put.is_ok() { Some(&new) } else { old };
        if let Some(served) = served.filter(|served| served.delivered < Registration::DONE) {
            self.shared.jobs.add(served.clone());
            self.follow(&served.task, log);
        }
        put
    }

    /// The configurations of a task, by their ids.
    pub(in crate::server) async fn of_task(
        &self,
        task: &str,
    ) -> Result<Vec<TaskPushNotificationConfig>, A2aError> {
        let known = self.shared.store.of_task(task).await.map_err(store_failed)?;
        Ok(known.into_iter().map(|registration| registration.config).collect())
    }

    /// Removes a configuration and stops its deliveries.
    pub(in crate::server) async fn remove(&self, task: &str, id: &str) -> Result<(), A2aError> {
        self.shared.jobs.remove(task, Some(id));
        self.shared.store.delete(task, id).await.map_err(store_failed)
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether the task ended by `after`.
fn has_ended(subscription: &Subscription) -> bool {
    subscription.log.state().is_terminal() && subscription.after >= subscription.log.last_seq()
}

/// The id of a configuration, and the configuration that it replaces.
struct Place<'a> {
    id: String,
    replaces: Option<&'a Registration>,
}

/// Without an id, a configuration of 0.3 gets the id of its task, as in the official SDKs. One of 1.0, which allows several
/// per task, gets a new id unless the task already has one with the same URL.
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
    if replaces.is_none() && known.len() >= validate::MOST_PER_TASK {
        return Err(validate::too_many(task));
    }
    let id = match (named, replaces, version) {
        (Some(id), ..) => id.to_owned(),
        (None, Some(old), _) => old.id.clone(),
        (None, None, ProtocolVersion::V0_3) => task.to_owned(),
        (None, None, ProtocolVersion::V1_0) => Uuid::new_v4().to_string(),
    };
    Ok(Place { id, replaces })
}

/// The error for clients; the log has the reason.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn store_failed(error: PushStoreError) -> A2aError {
    tracing::error!(%error, "push configurations cannot be served");
    A2aError::Internal("the store of push configurations failed; try again".to_owned())
}

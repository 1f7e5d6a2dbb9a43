//! All push configurations of a server.

use std::sync::Arc;

use url::Url;
use uuid::Uuid;

use super::admit;
use super::store::{PushStore, PushStoreError, Registration};
use crate::error::{A2aError, Violation};
use crate::model::TaskPushNotificationConfig;
use crate::server::agent::Subscription;
use crate::server::log::TaskLog;
use crate::version::ProtocolVersion;

/// How to serve push configurations.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {}

/// Keeps the push configurations of a server's tasks and serves them.
pub struct Pushes {
    store: Arc<dyn PushStore>,
}

impl std::fmt::Debug for Pushes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pushes").finish_non_exhaustive()
    }
}

impl Pushes {
    /// Serves what is in `store`.
    pub fn new(store: Arc<dyn PushStore>, options: PushOptions) -> Arc<Self> {
        let PushOptions {} = options;
        Arc::new(Self { store })
    }

    /// Tells that the events of a task are now found in this log.
    pub fn follow(self: &Arc<Self>, task: &str, log: &Arc<TaskLog>) {
        let _ = (task, log);
    }

    /// Whether anything is left to be delivered for a task.
    pub fn serves(&self, task: &str) -> bool {
        let _ = task;
        false
    }

    /// Whether a configuration can be served. Faults are located below `prefix`.
    pub(in crate::server) fn check(
        &self,
        config: &TaskPushNotificationConfig,
        prefix: &str,
    ) -> Result<(), A2aError> {
        let mut faults = admit::faults(config, prefix);
        if let Err(error) = config.url.parse::<Url>() {
            faults.push(Violation::new(admit::at(prefix, "url"), error.to_string()));
        }
        if faults.is_empty() { Ok(()) } else { Err(A2aError::InvalidParams(faults)) }
    }

    /// Whether a task can have one more configuration.
    pub(in crate::server) async fn has_room(
        &self,
        task: &str,
        config: &TaskPushNotificationConfig,
    ) -> Result<(), A2aError> {
        let known = self.store.of_task(task).await.map_err(told)?;
        let replaces =
            known.iter().any(|known| Some(&known.id) == config.id.as_ref() || known.config.url == config.url);
        if known.len() < admit::MOST_PER_TASK || replaces { Ok(()) } else { Err(admit::too_many(task)) }
    }

    /// A message began a task or went on with one, and may want its updates pushed.
    pub(in crate::server) async fn begun(
        self: &Arc<Self>,
        wish: Option<TaskPushNotificationConfig>,
        version: ProtocolVersion,
        subscription: &Subscription,
    ) -> Result<(), A2aError> {
        let task = subscription.log.task_id();
        self.follow(&task, &subscription.log);
        if let Some(config) = wish {
            self.register(&task, config, version, subscription).await?;
        }
        Ok(())
    }

    /// Keeps a configuration and serves it with what comes after `subscription.after`.
    pub(in crate::server) async fn register(
        self: &Arc<Self>,
        task: &str,
        config: TaskPushNotificationConfig,
        version: ProtocolVersion,
        subscription: &Subscription,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let known = self.store.of_task(task).await.map_err(told)?;
        let id = id_for(&config, task, version, &known);
        if known.len() >= admit::MOST_PER_TASK && known.iter().all(|known| known.id != id) {
            return Err(admit::too_many(task));
        }
        let config =
            TaskPushNotificationConfig { id: Some(id.clone()), task_id: Some(task.to_owned()), ..config };
        let delivered = if has_ended(subscription) { Registration::DONE } else { subscription.after };
        let registration =
            Registration { task: task.to_owned(), id, version, config: config.clone(), delivered };
        self.store.put(registration.clone()).await.map_err(told)?;
        Ok(config)
    }

    /// The configurations of a task, by their ids.
    pub(in crate::server) async fn of_task(
        &self,
        task: &str,
    ) -> Result<Vec<TaskPushNotificationConfig>, A2aError> {
        let known = self.store.of_task(task).await.map_err(told)?;
        Ok(known.into_iter().map(|registration| registration.config).collect())
    }

    /// Forgets a configuration; nothing more is delivered for it.
    pub(in crate::server) async fn remove(&self, task: &str, id: &str) -> Result<(), A2aError> {
        self.store.delete(task, id).await.map_err(told)
    }
}

/// Whether nothing comes after `after`: the task ended by then.
fn has_ended(subscription: &Subscription) -> bool {
    subscription.log.state().is_terminal() && subscription.after >= subscription.log.last_seq()
}

/// The id of a configuration. Without one of its own it takes, in 0.3, the task's, as the official SDKs do. In
/// 1.0, where a client may create several, one is made up; but the same address told again with each message
/// stays one configuration.
fn id_for(
    config: &TaskPushNotificationConfig,
    task: &str,
    version: ProtocolVersion,
    known: &[Registration],
) -> String {
    let named = config.id.clone().filter(|id| !id.is_empty());
    let same = || known.iter().find(|known| known.config.url == config.url).map(|known| known.id.clone());
    named.unwrap_or_else(|| match version {
        ProtocolVersion::V0_3 => task.to_owned(),
        ProtocolVersion::V1_0 => same().unwrap_or_else(|| Uuid::new_v4().to_string()),
    })
}

/// What a client is told when the store fails; why is for the log.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn told(error: PushStoreError) -> A2aError {
    tracing::error!(%error, "push configurations cannot be served");
    A2aError::Internal("the store of push configurations failed; try again".to_owned())
}

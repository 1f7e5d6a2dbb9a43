//! The operations on push configurations. A caller without access to a task gets the error for an unknown task.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Pushes;
use crate::error::A2aError;
use crate::model::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
};
use crate::server::agent::Agent;
use crate::server::call::{CallContext, Subscription};
use crate::server::request::{Outcome, unless_panicked};
use crate::server::state::Server;
use crate::version::ProtocolVersion;

/// How long a message waits for a store that fails to keep its push configuration: otherwise the client would wait for
/// notifications that never arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(250);

/// Registers a configuration for a task, which may have ended.
pub(in crate::server) async fn create(
    server: &Server,
    call: &CallContext,
    config: TaskPushNotificationConfig,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    let prefix = if call.version == ProtocolVersion::V0_3 { "pushNotificationConfig" } else { "" };
    pushes.check(&config, prefix)?;
    let task = config.task_id.clone().unwrap_or_default();
    let (agent, call) = (Arc::clone(&server.agent), call.clone());
    let created = async move {
        agent.admit_pushes(&task, &call).await?;
        let subscription = agent.subscribe(&task, None, &call).await?;
        register(&*agent, &call, &pushes, config, &subscription).await
    };
    // In a task of its own: a client that disconnects must not leave a configuration without a worker.
    unless_panicked(tokio::spawn(created).await).map(|config| Outcome::Push(Box::new(config)))
}

/// Delivers the updates of a task that has received a message, and registers the message's own configuration.
pub(in crate::server) async fn follow_message(
    agent: &dyn Agent,
    call: &CallContext,
    pushes: &Pushes,
    wish: Option<TaskPushNotificationConfig>,
    subscription: &Subscription,
) {
    let task = subscription.log.task_id();
    pushes.follow(&task, &subscription.log);
    let Some(config) = wish else { return };
    let until = Instant::now() + PATIENCE;
    loop {
        match register(agent, call, pushes, config.clone(), subscription).await {
            Ok(_) => return,
            Err(A2aError::Internal(_)) if Instant::now() < until => sleep(AGAIN).await,
            // The configuration was valid before the agent accepted the message. An error now would make the client send
            // the message again.
            Err(error) => {
                tracing::warn!(task, %error, "failed to store a message's push configuration; no notifications are sent to it");
                return;
            }
        }
    }
}

async fn register(
    agent: &dyn Agent,
    call: &CallContext,
    pushes: &Pushes,
    config: TaskPushNotificationConfig,
    subscription: &Subscription,
) -> Result<TaskPushNotificationConfig, A2aError> {
    let task = subscription.log.task_id();
    let stored = pushes.register(&task, config, call.version, subscription).await?;
    // A task that waited may have continued in another log before the configuration was stored.
    if let Ok(now) = agent.subscribe(&task, None, call).await {
        pushes.follow(&task, &now.log);
    }
    Ok(stored)
}

/// A configuration. In 0.3 the id may be missing, which means the task's first one.
pub(in crate::server) async fn get(
    server: &Server,
    call: &CallContext,
    request: GetTaskPushNotificationConfigRequest,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    let GetTaskPushNotificationConfigRequest { task_id, id, .. } = request;
    if id.is_empty() && call.version == ProtocolVersion::V1_0 {
        return Err(A2aError::invalid("id", "is required"));
    }
    server.agent.admit_pushes(&task_id, call).await?;
    let configs = pushes.of_task(&task_id).await?;
    let wanted = |config: &&TaskPushNotificationConfig| {
        id.is_empty() || config.id.as_deref().is_some_and(|known| known == id)
    };
    match configs.iter().find(wanted) {
        Some(config) => Ok(Outcome::Push(Box::new(config.clone()))),
        None => Err(A2aError::TaskNotFound(format!("{task_id} has no such push configuration"))),
    }
}

/// A page of a task's configurations, ordered by id. A page token is the last id of the page before.
pub(in crate::server) async fn list(
    server: &Server,
    call: &CallContext,
    request: ListTaskPushNotificationConfigsRequest,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    server.agent.admit_pushes(&request.task_id, call).await?;
    let configs = pushes.of_task(&request.task_id).await?;
    Ok(Outcome::Pushes(page(configs, &request)))
}

fn page(
    mut configs: Vec<TaskPushNotificationConfig>,
    request: &ListTaskPushNotificationConfigsRequest,
) -> ListTaskPushNotificationConfigsResponse {
    if let Some(last) = &request.page_token {
        configs.retain(|config| config.id.as_ref() > Some(last));
    }
    let size = request.page_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
    let more = configs.len() > size;
    configs.truncate(size);
    let last = configs.last().and_then(|config| config.id.clone());
    let next_page_token = last.filter(|_| more).unwrap_or_default();
    ListTaskPushNotificationConfigsResponse { configs, next_page_token }
}

/// Removes a configuration, if it exists.
pub(in crate::server) async fn delete(
    server: &Server,
    call: &CallContext,
    request: DeleteTaskPushNotificationConfigRequest,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    server.agent.admit_pushes(&request.task_id, call).await?;
    pushes.remove(&request.task_id, &request.id).await?;
    Ok(Outcome::PushDeleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_to_the_end() {
        let config = |id: &str| TaskPushNotificationConfig {
            id: Some(id.to_owned()),
            ..TaskPushNotificationConfig::new("https://h/")
        };
        let all: Vec<_> = ["a", "b", "c", "d", "e"].map(config).into();
        for size in 1..7 {
            let mut request =
                ListTaskPushNotificationConfigsRequest { page_size: Some(size), ..Default::default() };
            let mut read = Vec::new();
            loop {
                let page = page(all.clone(), &request);
                assert!(page.configs.len() <= size as usize);
                read.extend(page.configs);
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = Some(page.next_page_token);
            }
            assert_eq!(read, all, "{size}");
        }
    }
}

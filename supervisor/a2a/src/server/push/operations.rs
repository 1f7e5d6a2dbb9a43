//! The operations on push configurations. A task that the caller may not see has none.

use std::sync::Arc;

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
        let subscription = agent.subscribe(&task, None, &call).await?;
        register(&*agent, &call, &pushes, config, &subscription).await
    };
    // In a task of its own, as a message is: half of it would be a configuration that nobody serves.
    unless_panicked(tokio::spawn(created).await).map(|kept| Outcome::Push(Box::new(kept)))
}

/// A message began a task or went on with one, and may want its updates pushed.
pub(in crate::server) async fn begun(
    agent: &dyn Agent,
    call: &CallContext,
    pushes: &Pushes,
    wish: Option<TaskPushNotificationConfig>,
    subscription: &Subscription,
) {
    let task = subscription.log.task_id();
    pushes.follow(&task, &subscription.log);
    let Some(config) = wish else { return };
    // The configuration was found good before the agent took the message. Now that the task runs, its client is
    // better served with the task than with an error that invites it to send the message again.
    if let Err(error) = register(agent, call, pushes, config, subscription).await {
        tracing::warn!(task, %error, "a message's push configuration could not be kept; nothing is pushed to it");
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
    let kept = pushes.register(&task, config, call.version, subscription).await?;
    // A task that waited may have gone on in another log, which was shown before the configuration was there.
    if let Ok(now) = agent.subscribe(&task, None, call).await {
        pushes.follow(&task, &now.log);
    }
    Ok(kept)
}

/// Finds a configuration; 0.3 may leave out which, and gets the task's first.
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
    server.agent.task(&task_id, Some(0), call).await?;
    let configs = pushes.of_task(&task_id).await?;
    let wanted = |config: &&TaskPushNotificationConfig| {
        id.is_empty() || config.id.as_deref().is_some_and(|known| known == id)
    };
    match configs.iter().find(wanted) {
        Some(config) => Ok(Outcome::Push(Box::new(config.clone()))),
        None => Err(A2aError::TaskNotFound(format!("{task_id} has no such push configuration"))),
    }
}

/// A task's configurations, by their ids. A page token is the id that the last page ended with.
pub(in crate::server) async fn list(
    server: &Server,
    call: &CallContext,
    request: ListTaskPushNotificationConfigsRequest,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    server.agent.task(&request.task_id, Some(0), call).await?;
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

/// Removes a configuration. One that is not there is as good as removed.
pub(in crate::server) async fn delete(
    server: &Server,
    call: &CallContext,
    request: DeleteTaskPushNotificationConfigRequest,
) -> Result<Outcome, A2aError> {
    let pushes = server.pushes()?;
    server.agent.task(&request.task_id, Some(0), call).await?;
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

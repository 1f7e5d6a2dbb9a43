//! The operations of the protocol, the same for all bindings and versions.

use std::sync::Arc;

use super::call::{CallContext, Sent};
use super::push::Pushes;
use super::request::{Outcome, Request, unless_panicked};
use super::state::Server;
use super::{input_media_types, push, stream};
use crate::error::A2aError;
use crate::model::{
    AgentCard, CancelTaskRequest, GetTaskRequest, Reply, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};
use crate::version::ProtocolVersion;

/// Performs a request.
pub(super) async fn perform(
    server: &Server,
    call: &CallContext,
    request: Request,
) -> Result<Outcome, A2aError> {
    let operations = Operations { server, call };
    match request {
        Request::Send(request) => operations.send(request).await.map(Outcome::Reply),
        Request::Stream(request) => operations.stream(request).await.map(Outcome::Stream),
        Request::Get(request) => operations.get(request).await,
        Request::List(request) => server.agent.list(request, call).await.map(Outcome::Tasks),
        Request::Cancel(request) => operations.cancel(request).await,
        Request::Subscribe(request, after) => operations.subscribe(request, after).await,
        Request::ExtendedCard => operations.extended_card().await.map(Outcome::Card),
        Request::CreatePush(config) => push::create(server, call, config).await,
        Request::GetPush(request) => push::get(server, call, request).await,
        Request::ListPushes(request) => push::list(server, call, request).await,
        Request::DeletePush(request) => push::delete(server, call, request).await,
    }
}

struct Operations<'a> {
    server: &'a Server,
    call: &'a CallContext,
}

impl Operations<'_> {
    async fn send(&self, request: SendMessageRequest) -> Result<Reply, A2aError> {
        let history_length = request.history_length();
        let at_once = request.returns_immediately();
        let subscription = match self.send_to_agent(request).await? {
            Sent::Task(subscription) => subscription,
            Sent::Message(message) => return Ok(Reply::Message(message)),
        };
        let mut task =
            if at_once { subscription.log.snapshot() } else { stream::settled(subscription).await };
        task.trim_history(history_length);
        Ok(Reply::Task(Box::new(task)))
    }

    async fn stream(&self, request: SendMessageRequest) -> Result<Sent, A2aError> {
        self.require_streaming()?;
        self.send_to_agent(request).await
    }

    /// Passes the message to the agent, in a task of its own that a disconnecting client does not cancel.
    async fn send_to_agent(&self, request: SendMessageRequest) -> Result<Sent, A2aError> {
        self.check_message(&request)?;
        let (pushes, config) = self.push_request(&request).await?;
        let (agent, call) = (Arc::clone(&self.server.agent), self.call.clone());
        let sent = async move {
            let sent = agent.send(request, &call).await?;
            if let (Some(pushes), Sent::Task(subscription)) = (pushes, &sent) {
                push::follow_message(&*agent, &call, &pushes, config, subscription).await;
            }
            Ok(sent)
        };
        unless_panicked(tokio::spawn(sent).await)
    }

    /// The push notifications and the message's own configuration. An invalid configuration is rejected before the task
    /// starts, so that no client waits for notifications that never arrive.
    async fn push_request(
        &self,
        request: &SendMessageRequest,
    ) -> Result<(Option<Arc<Pushes>>, Option<TaskPushNotificationConfig>), A2aError> {
        let config = request.configuration.as_ref().and_then(|c| c.task_push_notification_config.clone());
        let Some(config) = config else { return Ok((self.server.pushes().ok(), None)) };
        let pushes = self.server.pushes()?;
        pushes.check(&config, push::inline_prefix(self.call.version))?;
        if let Some(task) = &request.message.task_id {
            // Only a caller with access to the task may learn of its configurations.
            self.server.agent.admit_pushes(task, self.call).await?;
            pushes.has_room(task, &config, self.call.version).await?;
        }
        Ok((Some(pushes), Some(config)))
    }

    /// Checks a message before the agent receives it.
    fn check_message(&self, request: &SendMessageRequest) -> Result<(), A2aError> {
        let card = self.server.agent.card();
        let declared = |uri: &String| self.call.declared_extensions.contains(uri);
        let mut required = card.capabilities.extensions.iter().filter(|extension| extension.required);
        if let Some(missing) = required.find(|extension| !declared(&extension.uri)) {
            let hint = "send its URI in the A2A-Extensions header";
            return Err(A2aError::ExtensionSupportRequired(format!("{}; {hint}", missing.uri)));
        }
        if self.server.options.strict_input_modes {
            input_media_types::check(&card, &request.message)?;
        }
        Ok(())
    }

    async fn get(&self, request: GetTaskRequest) -> Result<Outcome, A2aError> {
        let mut task = self.server.agent.task(&request.id, request.history_length, self.call).await?;
        task.trim_history(request.history_length);
        Ok(Outcome::Task(Box::new(task)))
    }

    async fn cancel(&self, request: CancelTaskRequest) -> Result<Outcome, A2aError> {
        let (agent, call) = (Arc::clone(&self.server.agent), self.call.clone());
        let pushes = self.server.pushes().ok().filter(|pushes| pushes.serves(&request.id));
        let canceled = async move {
            let task = agent.cancel(&request.id, &call).await?;
            if let (Some(pushes), Ok(ended)) = (pushes, agent.subscribe(&request.id, None, &call).await) {
                pushes.follow(&request.id, &ended.log);
            }
            Ok(task)
        };
        unless_panicked(tokio::spawn(canceled).await).map(|task| Outcome::Task(Box::new(task)))
    }

    async fn subscribe(
        &self,
        request: SubscribeToTaskRequest,
        after: Option<u64>,
    ) -> Result<Outcome, A2aError> {
        self.require_streaming()?;
        let subscription = self.server.agent.subscribe(&request.id, after, self.call).await?;
        let state = subscription.log.state();
        // A client that was disconnected may read the rest; a new one has nothing to follow (1.0, section 3.1.6).
        if self.call.version == ProtocolVersion::V1_0 && after.is_none() && state.is_terminal() {
            let error = format!("task {} is {state}; use GetTask", request.id);
            return Err(A2aError::UnsupportedOperation(error));
        }
        Ok(Outcome::Stream(Sent::Task(subscription)))
    }

    async fn extended_card(&self) -> Result<Arc<AgentCard>, A2aError> {
        if self.server.agent.card().capabilities.extended_agent_card {
            return self.server.agent.extended_card(self.call).await;
        }
        Err(match self.call.version {
            ProtocolVersion::V0_3 => A2aError::ExtendedAgentCardNotConfigured,
            ProtocolVersion::V1_0 => {
                A2aError::UnsupportedOperation("this agent has no extended card".to_owned())
            }
        })
    }

    fn require_streaming(&self) -> Result<(), A2aError> {
        if self.server.agent.card().capabilities.streaming {
            return Ok(());
        }
        Err(A2aError::UnsupportedOperation(
            "this agent does not stream; read the card's capabilities".to_owned(),
        ))
    }
}

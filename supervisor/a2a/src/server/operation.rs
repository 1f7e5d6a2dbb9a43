//! The operations of the protocol, whatever binding and version they came in by.

use std::sync::Arc;

use super::call::{CallContext, Sent};
use super::push::Pushes;
use super::request::{Outcome, Request, unless_panicked};
use super::state::Server;
use super::{modes, push, stream};
use crate::error::A2aError;
use crate::model::{
    AgentCard, CancelTaskRequest, GetTaskRequest, Reply, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};
use crate::version::ProtocolVersion;

/// Carries out a request.
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
        let subscription = match self.begin(request).await? {
            Sent::Task(subscription) => subscription,
            Sent::Message(message) => return Ok(Reply::Message(message)),
        };
        let mut task =
            if at_once { subscription.log.snapshot() } else { stream::settled(subscription).await };
        task.trim_history(history_length);
        Ok(Reply::Task(Box::new(task)))
    }

    async fn stream(&self, request: SendMessageRequest) -> Result<Sent, A2aError> {
        self.needs_streaming()?;
        self.begin(request).await
    }

    /// In a task of its own: a client that leaves must not cut it in half.
    async fn begin(&self, request: SendMessageRequest) -> Result<Sent, A2aError> {
        self.admits(&request)?;
        let (pushes, wish) = self.push_wish(&request).await?;
        let (agent, call) = (Arc::clone(&self.server.agent), self.call.clone());
        let begun = async move {
            let sent = agent.send(request, &call).await?;
            if let (Some(pushes), Sent::Task(subscription)) = (pushes, &sent) {
                push::begun(&*agent, &call, &pushes, wish, subscription).await;
            }
            Ok(sent)
        };
        unless_panicked(tokio::spawn(begun).await)
    }

    /// Who is to push the task's updates, and where the message itself wants them. A wish that cannot be met
    /// is refused before anything begins: a client that waits for a push that never comes is worse off than
    /// one that is told.
    async fn push_wish(
        &self,
        request: &SendMessageRequest,
    ) -> Result<(Option<Arc<Pushes>>, Option<TaskPushNotificationConfig>), A2aError> {
        let wish = request.configuration.as_ref().and_then(|c| c.task_push_notification_config.clone());
        let Some(config) = wish else { return Ok((self.server.pushes().ok(), None)) };
        let pushes = self.server.pushes()?;
        pushes.check(&config, push::inline_prefix(self.call.version))?;
        if let Some(task) = &request.message.task_id {
            // What a task has is told only to those who may see it.
            self.server.agent.task(task, Some(0), self.call).await?;
            pushes.has_room(task, &config, self.call.version).await?;
        }
        Ok((Some(pushes), Some(config)))
    }

    /// What can be said against a message before the agent sees it.
    fn admits(&self, request: &SendMessageRequest) -> Result<(), A2aError> {
        let card = self.server.agent.card();
        let declared = |uri: &String| self.call.declared_extensions.contains(uri);
        let mut required = card.capabilities.extensions.iter().filter(|extension| extension.required);
        if let Some(missing) = required.find(|extension| !declared(&extension.uri)) {
            let hint = "send its URI in the A2A-Extensions header";
            return Err(A2aError::ExtensionSupportRequired(format!("{}; {hint}", missing.uri)));
        }
        if self.server.options.strict_input_modes {
            modes::check(&card, &request.message)?;
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
        self.needs_streaming()?;
        let subscription = self.server.agent.subscribe(&request.id, after, self.call).await?;
        let state = subscription.log.state();
        // Who was cut off reads the rest; who comes for the first time finds nothing to follow (1.0, 3.1.6).
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

    fn needs_streaming(&self) -> Result<(), A2aError> {
        if self.server.agent.card().capabilities.streaming {
            return Ok(());
        }
        Err(A2aError::UnsupportedOperation(
            "this agent does not stream; read the card's capabilities".to_owned(),
        ))
    }
}

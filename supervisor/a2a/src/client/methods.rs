//! The operations of an agent.

use std::sync::Arc;

use serde_json::json;

use super::cancel::CancelOnDrop;
use super::card::check_trust;
use super::follow::Follower;
use super::response::result;
use super::sse::RawEvents;
use super::stream::EventStream;
use super::{A2aClient, Agreed, ClientError, connect};
use crate::card;
use crate::model::{
    AgentCard, CancelTaskRequest, Event, GetTaskRequest, ListTasksRequest, ListTasksResponse, Reply,
    SendMessageRequest, SubscribeToTaskRequest, Task,
};
use crate::v03;
use crate::version::ProtocolVersion;

impl A2aClient {
    /// Sends a message and waits for the answer: unless `return_immediately` is set, until the task ends or
    /// waits for the client. Tried again only as long as the agent cannot be reached at all.
    pub async fn send(&self, request: SendMessageRequest) -> Result<Reply, ClientError> {
        Follower::message(self.clone(), request).ask().await
    }

    /// Sends a message and follows the task; see [`EventStream`]. Returns once the connection is open.
    pub async fn stream(&self, request: SendMessageRequest) -> Result<EventStream, ClientError> {
        Follower::message(self.clone(), request).opened().await
    }

    /// Sends a message and follows the task in any way that the agent supports: polls an agent that does not stream.
    /// Returns before anything is sent.
    pub fn follow(&self, request: SendMessageRequest) -> EventStream {
        Follower::message(self.clone(), request).lazy()
    }

    /// Follows a running task, after the event `last_event_id` if the agent numbers its events, else from now on. The first
    /// event is the task. An agent may end the stream while the task waits; that is no lost connection.
    pub async fn subscribe(&self, id: &str, last_event_id: Option<u64>) -> Result<EventStream, ClientError> {
        Follower::task(self.clone(), id, last_event_id).opened().await
    }

    /// Follows a running task in any way that the agent supports, as [`Self::subscribe`] does: polls an agent that has no
    /// subscriptions. Returns before anything is sent.
    pub fn follow_task(&self, id: &str, last_event_id: Option<u64>) -> EventStream {
        Follower::task(self.clone(), id, last_event_id).rejoin()
    }

    /// A task with at most `history_length` messages of history (`None`: as many as the agent likes).
    pub async fn get(&self, id: &str, history_length: Option<u32>) -> Result<Task, ClientError> {
        let (agreed, id) = (self.agreed(), id.to_owned());
        let old = v03::TaskQueryParams { id: id.clone(), history_length };
        let new = GetTaskRequest { tenant: agreed.tenant.clone(), id, history_length };
        self.call_in_version::<_, v03::Task>(&agreed, ("GetTask", &new), ("tasks/get", &old)).await
    }

    /// A page of the caller's tasks.
    ///
    /// # Errors
    /// [`ClientError::NotInVersion`] if the agent speaks 0.3 only, whose JSON-RPC cannot list tasks.
    pub async fn list(&self, mut request: ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        let agreed = self.agreed();
        if agreed.version == ProtocolVersion::V0_3 {
            return Err(ClientError::NotInVersion { method: "ListTasks", version: agreed.version });
        }
        agreed.fill_tenant(&mut request.tenant);
        self.call(&agreed, "ListTasks", &request, self.inner.options.timeout).await
    }

    /// Stops a task.
    pub async fn cancel(&self, id: &str) -> Result<Task, ClientError> {
        let (agreed, id) = (self.agreed(), id.to_owned());
        let old = v03::TaskIdParams { id: id.clone(), metadata: None };
        let new = CancelTaskRequest { tenant: agreed.tenant.clone(), id, metadata: None };
        self.call_in_version::<_, v03::Task>(&agreed, ("CancelTask", &new), ("tasks/cancel", &old)).await
    }

    /// A guard that stops a task unless it is disarmed.
    pub fn cancel_on_drop(&self, id: impl Into<String>) -> CancelOnDrop {
        CancelOnDrop::new(self.clone(), id.into())
    }

    /// Asks for the card that authenticated callers get; from now on it takes the place of the public one, for all
    /// clones.
    pub async fn extended_card(&self) -> Result<Arc<AgentCard>, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        let read = |body: &bytes::Bytes| {
            let document = result(body)?.get().as_bytes();
            check_trust(document, &self.inner.options)?;
            Ok(card::parse(document)?)
        };
        let (method, params) = match (agreed.version, &agreed.tenant) {
            (ProtocolVersion::V1_0, Some(tenant)) => ("GetExtendedAgentCard", json!({"tenant": tenant})),
            (ProtocolVersion::V1_0, None) => ("GetExtendedAgentCard", json!({})),
            (ProtocolVersion::V0_3, _) => ("agent/getAuthenticatedExtendedCard", json!({})),
        };
        let card = Arc::new(self.answer(&agreed, method, &params, limit, read).await?);
        self.agree(agreed.extended_by(Arc::clone(&card), self));
        Ok(card)
    }

    pub(super) async fn send_once(&self, mut request: SendMessageRequest) -> Result<Reply, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.answer_timeout);
        match agreed.version {
            ProtocolVersion::V1_0 => {
                agreed.fill_tenant(&mut request.tenant);
                self.call(&agreed, "SendMessage", &request, limit).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::serialize::send_params(&request);
                match self.call::<v03::Event>(&agreed, "message/send", &params, limit).await?.into() {
                    Event::Task(task) => Ok(Reply::Task(task)),
                    Event::Message(message) => Ok(Reply::Message(message)),
                    _ => Err(ClientError::Protocol("the answer is neither a task nor a message".to_owned())),
                }
            }
        }
    }

    pub(super) async fn stream_once(
        &self,
        mut request: SendMessageRequest,
    ) -> Result<RawEvents, ClientError> {
        let agreed = self.agreed();
        match agreed.version {
            ProtocolVersion::V1_0 => {
                agreed.fill_tenant(&mut request.tenant);
                self.open(&agreed, "SendStreamingMessage", &request, None).await
            }
            ProtocolVersion::V0_3 => {
                self.open(&agreed, "message/stream", &v03::serialize::send_params(&request), None).await
            }
        }
    }

    pub(super) async fn subscribe_once(
        &self,
        id: &str,
        last_event_id: Option<u64>,
    ) -> Result<RawEvents, ClientError> {
        let agreed = self.agreed();
        match agreed.version {
            ProtocolVersion::V1_0 => {
                let request = SubscribeToTaskRequest { tenant: agreed.tenant.clone(), id: id.to_owned() };
                self.open(&agreed, "SubscribeToTask", &request, last_event_id).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::TaskIdParams { id: id.to_owned(), metadata: None };
                self.open(&agreed, "tasks/resubscribe", &params, last_event_id).await
            }
        }
    }
}

impl Agreed {
    /// A client repeats the tenant of the interface that it chose.
    pub(super) fn fill_tenant(&self, tenant: &mut Option<String>) {
        if tenant.is_none() {
            tenant.clone_from(&self.tenant);
        }
    }

    /// The same with an extended card, which may offer other interfaces.
    fn extended_by(&self, card: Arc<AgentCard>, client: &A2aClient) -> Self {
        let chosen = connect::choose(&card, &client.inner.base, &client.inner.options);
        let same = |_| connect::Chosen {
            endpoint: self.endpoint.clone(),
            version: self.version,
            tenant: self.tenant.clone(),
        };
        let connect::Chosen { endpoint, version, tenant } = chosen.unwrap_or_else(same);
        Self { known: Arc::clone(&self.known), extended: Some(card), endpoint, version, tenant }
    }
}

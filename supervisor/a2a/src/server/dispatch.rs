//! From a JSON-RPC request to the agent and back.

use std::sync::Arc;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::ServerOptions;
use super::agent::{Agent, CallContext, Subscription};
use super::envelope::{self, Envelope, Id, Refused};
use super::method::{self, Operation};
use super::stream;
use crate::error::A2aError;
use crate::model::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Reply, SendMessageRequest, SubscribeToTaskRequest,
    Task, Validate,
};
use crate::v03;
use crate::version::ProtocolVersion;

/// What a request says besides its body.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The version that the client says it speaks.
    pub(super) version: Option<String>,
    /// Whether the client reads server-sent events.
    pub(super) accepts_stream: bool,
    /// The last event that the client has seen.
    pub(super) last_event_id: Option<u64>,
}

/// What a call comes to.
enum Answer {
    Json(Vec<u8>),
    Stream(Subscription),
}

/// Serves one request; never fails, for a failure is an answer too.
pub(super) async fn serve(
    agent: Arc<dyn Agent>,
    options: &ServerOptions,
    hints: Hints,
    call: CallContext,
    body: &[u8],
) -> Response {
    let asked = hints.version.as_deref().and_then(ProtocolVersion::parse).unwrap_or(ProtocolVersion::V0_3);
    let envelope = match Envelope::read(body) {
        Ok(envelope) => envelope,
        Err(Refused { id, error }) => return json(envelope::failure(&id, &error, asked)),
    };
    let (version, operation) = match method::lookup(&envelope.method) {
        Ok(found) => found,
        Err(error) => return json(envelope::failure(&envelope.id, &error, asked)),
    };
    let call = CallContext { version, ..call };
    match (Dispatch { agent, options, hints: &hints, call, operation }).run(&envelope).await {
        Ok(Answer::Json(result)) => json(envelope::success(&envelope.id, &result)),
        Ok(Answer::Stream(subscription)) => {
            stream::response(subscription, envelope.id, version, options.keep_alive)
        }
        Err(error) if operation.is_stream() && hints.accepts_stream => {
            stream::refusal(&envelope.id, &error, version)
        }
        Err(error) => json(envelope::failure(&envelope.id, &error, version)),
    }
}

/// A JSON-RPC answer; JSON-RPC's own failures come with 200 too.
pub(super) fn json(body: Bytes) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, JSON)], body).into_response()
}

/// A failure before there was a request.
pub(super) fn refuse(error: &A2aError) -> Response {
    json(envelope::failure(&Id::null(), error, ProtocolVersion::V1_0))
}

struct Dispatch<'a> {
    agent: Arc<dyn Agent>,
    options: &'a ServerOptions,
    hints: &'a Hints,
    call: CallContext,
    operation: Operation,
}

impl Dispatch<'_> {
    async fn run(&self, envelope: &Envelope<'_>) -> Result<Answer, A2aError> {
        let asked = self.hints.version.as_deref();
        method::check_version(self.call.version, &envelope.method, asked, self.options.lenient_version)?;
        if !envelope.tagged && (self.options.strict_v0_3 || self.call.version == ProtocolVersion::V1_0) {
            return Err(A2aError::InvalidRequest(r#"jsonrpc must be "2.0""#.to_owned()));
        }
        let params = envelope.params;
        match self.operation {
            Operation::Send => self.send(self.send_request(params)?).await,
            Operation::Stream => self.stream(self.send_request(params)?).await,
            Operation::Get => self.get(self.params::<v03::TaskQueryParams, _>(params)?).await,
            Operation::Cancel => self.cancel(self.params::<v03::TaskIdParams, _>(params)?).await,
            Operation::Subscribe => self.subscribe(self.params::<v03::TaskIdParams, _>(params)?).await,
            Operation::List => self.list(envelope::params::<ListTasksRequest>(params)?.validated()?).await,
            Operation::PushConfig => Err(A2aError::PushNotificationNotSupported),
            Operation::ExtendedCard => Err(self.no_extended_card()),
        }
    }

    /// Decodes parameters in the client's version.
    fn params<Old, New>(&self, params: Option<&RawValue>) -> Result<New, A2aError>
    where
        Old: for<'de> serde::Deserialize<'de>,
        New: for<'de> serde::Deserialize<'de> + From<Old> + Validate,
    {
        match self.call.version {
            ProtocolVersion::V0_3 => New::from(envelope::params::<Old>(params)?),
            ProtocolVersion::V1_0 => envelope::params::<New>(params)?,
        }
        .validated()
    }

    fn send_request(&self, params: Option<&RawValue>) -> Result<SendMessageRequest, A2aError> {
        if self.options.strict_v0_3 && self.call.version == ProtocolVersion::V0_3 {
            let faults = envelope::params::<v03::SendParams>(params)?.strict_faults();
            if !faults.is_empty() {
                return Err(A2aError::InvalidParams(faults));
            }
        }
        let request: SendMessageRequest = self.params::<v03::SendParams, _>(params)?;
        let push = request.configuration.as_ref().and_then(|c| c.task_push_notification_config.as_ref());
        // A client that waits for a push that never comes is worse off than one that is told.
        if push.is_some() && !self.agent.card().capabilities.push_notifications {
            return Err(A2aError::PushNotificationNotSupported);
        }
        Ok(request)
    }

    async fn send(&self, request: SendMessageRequest) -> Result<Answer, A2aError> {
        let history_length = request.history_length();
        let at_once = request.returns_immediately();
        let subscription = self.begin(request).await?;
        let mut task =
            if at_once { subscription.log.snapshot() } else { stream::settled(subscription).await };
        task.trim_history(history_length);
        let result = match self.call.version {
            ProtocolVersion::V0_3 => encode(&v03::Task::from(task)),
            ProtocolVersion::V1_0 => encode(&Reply::Task(Box::new(task))),
        };
        result.map(Answer::Json)
    }

    async fn stream(&self, request: SendMessageRequest) -> Result<Answer, A2aError> {
        self.needs_streaming()?;
        self.begin(request).await.map(Answer::Stream)
    }

    /// In a task of its own: a client that leaves must not cut it in half.
    async fn begin(&self, request: SendMessageRequest) -> Result<Subscription, A2aError> {
        let (agent, call) = (Arc::clone(&self.agent), self.call.clone());
        unless_panicked(tokio::spawn(async move { agent.send(request, &call).await }).await)
    }

    async fn get(&self, request: GetTaskRequest) -> Result<Answer, A2aError> {
        let mut task = self.agent.task(&request.id, request.history_length, &self.call).await?;
        task.trim_history(request.history_length);
        self.task(task)
    }

    async fn cancel(&self, request: CancelTaskRequest) -> Result<Answer, A2aError> {
        let (agent, call) = (Arc::clone(&self.agent), self.call.clone());
        let task = tokio::spawn(async move { agent.cancel(&request.id, &call).await }).await;
        self.task(unless_panicked(task)?)
    }

    fn task(&self, task: Task) -> Result<Answer, A2aError> {
        let result = match self.call.version {
            ProtocolVersion::V0_3 => encode(&v03::Task::from(task)),
            ProtocolVersion::V1_0 => encode(&task),
        };
        result.map(Answer::Json)
    }

    async fn subscribe(&self, request: SubscribeToTaskRequest) -> Result<Answer, A2aError> {
        self.needs_streaming()?;
        let after = self.hints.last_event_id;
        let subscription = self.agent.subscribe(&request.id, after, &self.call).await?;
        let state = subscription.log.state();
        // Who was cut off reads the rest; who comes for the first time finds nothing to follow (1.0, 3.1.6).
        if self.call.version == ProtocolVersion::V1_0 && after.is_none() && state.is_terminal() {
            let error = format!("task {} is {state}; use GetTask", request.id);
            return Err(A2aError::UnsupportedOperation(error));
        }
        Ok(Answer::Stream(subscription))
    }

    async fn list(&self, request: ListTasksRequest) -> Result<Answer, A2aError> {
        encode(&self.agent.list(request, &self.call).await?).map(Answer::Json)
    }

    fn needs_streaming(&self) -> Result<(), A2aError> {
        if self.agent.card().capabilities.streaming {
            return Ok(());
        }
        Err(A2aError::UnsupportedOperation(
            "this agent does not stream; read the card's capabilities".to_owned(),
        ))
    }

    fn no_extended_card(&self) -> A2aError {
        let declared = self.agent.card().capabilities.extended_agent_card;
        if declared || self.call.version == ProtocolVersion::V0_3 {
            return A2aError::ExtendedAgentCardNotConfigured;
        }
        A2aError::UnsupportedOperation("this agent has no extended card".to_owned())
    }
}

fn encode<T: Serialize>(result: &T) -> Result<Vec<u8>, A2aError> {
    serde_json::to_vec(result)
        .map_err(|error| A2aError::Internal(format!("failed to encode the answer: {error}")))
}

fn unless_panicked<T>(result: Result<Result<T, A2aError>, tokio::task::JoinError>) -> Result<T, A2aError> {
    result.unwrap_or_else(|error| {
        tracing::error!(%error, "the agent did not answer");
        Err(A2aError::Internal("the agent failed to answer; its log says why".to_owned()))
    })
}

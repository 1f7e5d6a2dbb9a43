//! Converts the parameters of a method to a request in the canonical model.

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::envelope::{Envelope, params};
use super::method::{self, Operation};
use crate::error::A2aError;
use crate::model::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use crate::server::ServerOptions;
use crate::server::headers::Hints;
use crate::server::json_limits;
use crate::server::request::Request;
use crate::v03;
use crate::validate::Validate;
use crate::version::ProtocolVersion;

/// Reads parameters in the client's version.
pub(in crate::server) struct Decoder<'a> {
    pub(in crate::server) options: &'a ServerOptions,
    pub(in crate::server) hints: &'a Hints,
    pub(in crate::server) version: ProtocolVersion,
}

/// The ids of a message's task and context, which some clients of 1.0 send beside the message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageAliases {
    #[serde(alias = "task_id")]
    task_id: Option<String>,
    #[serde(alias = "context_id")]
    context_id: Option<String>,
}

/// The id of the task under the name that upstream's web UI sends in 0.3 when it recovers from a crash.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskAlias {
    task_id: Option<String>,
}

impl TaskAlias {
    /// The id of the task, which the parameter `name` has as `id`. If both are present they must agree.
    fn resolve(self, name: &str, id: Option<String>) -> Result<Option<String>, A2aError> {
        let present = |id: Option<String>| id.filter(|id| !id.is_empty());
        match (present(id), present(self.task_id)) {
            (Some(id), Some(alias)) if id != alias => {
                Err(A2aError::invalid("taskId", format!("must be equal to {name}")))
            }
            (id, alias) => Ok(id.or(alias)),
        }
    }
}

impl Decoder<'_> {
    pub(super) fn request(&self, operation: Operation, envelope: &Envelope<'_>) -> Result<Request, A2aError> {
        let asked = self.hints.version.as_deref();
        method::check_version(self.version, &envelope.method, asked, self.options.lenient_version)?;
        if !envelope.tagged && (self.options.strict_v0_3 || self.version == ProtocolVersion::V1_0) {
            return Err(A2aError::InvalidRequest(r#"jsonrpc must be "2.0""#.to_owned()));
        }
        let raw = envelope.params;
        json_limits::check(raw.map_or(&[], |raw| raw.get().as_bytes()), "params")?;
        Ok(match operation {
            Operation::Send => Request::Send(self.send(raw)?),
            Operation::Stream => Request::Stream(self.send(raw)?),
            Operation::Get => {
                Request::Get(self.task_request::<v03::TaskQueryParams, GetTaskRequest>(raw, |r| &mut r.id)?)
            }
            Operation::Cancel => Request::Cancel(
                self.task_request::<v03::TaskIdParams, CancelTaskRequest>(raw, |r| &mut r.id)?,
            ),
            Operation::Subscribe => Request::Subscribe(
                self.task_request::<v03::TaskIdParams, SubscribeToTaskRequest>(raw, |r| &mut r.id)?,
                self.hints.last_event_id,
            ),
            Operation::List => Request::List(params::<ListTasksRequest>(raw)?.validated()?),
            Operation::ExtendedCard => Request::ExtendedCard,
            Operation::CreatePush => Request::CreatePush(self.either::<v03::TaskPushConfig, _>(raw)?),
            Operation::GetPush => Request::GetPush(self.either::<v03::PushConfigParams, _>(raw)?),
            Operation::ListPushes => Request::ListPushes(self.either::<v03::PushConfigParams, _>(raw)?),
            Operation::DeletePush => Request::DeletePush(self.either::<v03::PushConfigParams, _>(raw)?),
        })
    }

    fn either<Old, New>(&self, raw: Option<&RawValue>) -> Result<New, A2aError>
    where
        Old: for<'de> Deserialize<'de>,
        New: for<'de> Deserialize<'de> + From<Old> + Validate,
    {
        match self.version {
            ProtocolVersion::V0_3 => New::from(params::<Old>(raw)?),
            ProtocolVersion::V1_0 => params::<New>(raw)?,
        }
        .validated()
    }

    /// A request that names a task, in 0.3 by `id` or `taskId`.
    fn task_request<Old, New>(
        &self,
        raw: Option<&RawValue>,
        id: impl Fn(&mut New) -> &mut String,
    ) -> Result<New, A2aError>
    where
        Old: for<'de> Deserialize<'de>,
        New: for<'de> Deserialize<'de> + From<Old> + Validate,
    {
        if self.version == ProtocolVersion::V1_0 {
            return params::<New>(raw)?.validated();
        }
        let mut request = New::from(params::<Old>(raw)?);
        let id = id(&mut request);
        *id = params::<TaskAlias>(raw)?.resolve("id", Some(id.clone()))?.unwrap_or_default();
        request.validated()
    }

    fn send(&self, raw: Option<&RawValue>) -> Result<SendMessageRequest, A2aError> {
        match self.version {
            ProtocolVersion::V0_3 => self.send_v0_3(raw),
            ProtocolVersion::V1_0 => self.send_v1_0(raw),
        }
    }

    fn send_v0_3(&self, raw: Option<&RawValue>) -> Result<SendMessageRequest, A2aError> {
        let mut request: v03::SendParams = params(raw)?;
        let faults = if self.options.strict_v0_3 { request.strict_faults() } else { Vec::new() };
        if !faults.is_empty() {
            return Err(A2aError::InvalidParams(faults));
        }
        let message = &mut request.message;
        message.task_id = params::<TaskAlias>(raw)?.resolve("message.taskId", message.task_id.take())?;
        SendMessageRequest::from(request).validated()
    }

    pub(in crate::server) fn send_v1_0(
        &self,
        raw: Option<&RawValue>,
    ) -> Result<SendMessageRequest, A2aError> {
        let mut request: SendMessageRequest = params(raw)?;
        if self.options.lenient_messages {
            complete(&mut request, params(raw)?);
        }
        request.validated()
    }
}

/// Adds required members that the client omitted.
fn complete(request: &mut SendMessageRequest, aliases: MessageAliases) {
    let message = &mut request.message;
    if message.message_id.is_empty() {
        message.message_id = Uuid::new_v4().to_string();
    }
    message.task_id = message.task_id.take().or(aliases.task_id);
    message.context_id = message.context_id.take().or(aliases.context_id);
}

//! Converts the parameters of a method to a request in the canonical model.

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::envelope::{Envelope, params};
use super::method::{self, Operation};
use crate::error::A2aError;
use crate::model::{ListTasksRequest, SendMessageRequest, Validate};
use crate::server::ServerOptions;
use crate::server::headers::Hints;
use crate::server::operation::Request;
use crate::v03;
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

impl Decoder<'_> {
    pub(super) fn request(&self, operation: Operation, envelope: &Envelope<'_>) -> Result<Request, A2aError> {
        let asked = self.hints.version.as_deref();
        method::check_version(self.version, &envelope.method, asked, self.options.lenient_version)?;
        if !envelope.tagged && (self.options.strict_v0_3 || self.version == ProtocolVersion::V1_0) {
            return Err(A2aError::InvalidRequest(r#"jsonrpc must be "2.0""#.to_owned()));
        }
        let raw = envelope.params;
        Ok(match operation {
            Operation::Send => Request::Send(self.send(raw)?),
            Operation::Stream => Request::Stream(self.send(raw)?),
            Operation::Get => Request::Get(self.either::<v03::TaskQueryParams, _>(raw)?),
            Operation::Cancel => Request::Cancel(self.either::<v03::TaskIdParams, _>(raw)?),
            Operation::Subscribe => {
                Request::Subscribe(self.either::<v03::TaskIdParams, _>(raw)?, self.hints.last_event_id)
            }
            Operation::List => Request::List(params::<ListTasksRequest>(raw)?.validated()?),
            Operation::ExtendedCard => Request::ExtendedCard,
            Operation::CreatePush => Request::CreatePush(self.either::<v03::TaskPushConfig, _>(raw)?),
            Operation::GetPush => Request::GetPush(self.either::<v03::PushConfigParams, _>(raw)?),
            Operation::ListPushes => Request::ListPushes(self.either::<v03::TaskIdParams, _>(raw)?),
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

    fn send(&self, raw: Option<&RawValue>) -> Result<SendMessageRequest, A2aError> {
        match self.version {
            ProtocolVersion::V0_3 => self.send_v0_3(raw),
            ProtocolVersion::V1_0 => self.send_v1_0(raw),
        }
    }

    fn send_v0_3(&self, raw: Option<&RawValue>) -> Result<SendMessageRequest, A2aError> {
        let request: v03::SendParams = params(raw)?;
        let faults = if self.options.strict_v0_3 { request.strict_faults() } else { Vec::new() };
        if faults.is_empty() {
            return SendMessageRequest::from(request).validated();
        }
        Err(A2aError::InvalidParams(faults))
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

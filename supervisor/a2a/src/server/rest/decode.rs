//! Decodes a path, a query and a body to a request in the canonical model.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::path::{Operation, Target};
use super::query;
use crate::error::{A2aError, Violation};
use crate::model::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTasksRequest, Metadata, SendMessageRequest,
    SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use crate::server::jsonrpc::{Decoder, params};
use crate::server::request::Request;
use crate::v03::rest;
use crate::validate::Validate;
use crate::version::ProtocolVersion::{self, V0_3, V1_0};

/// The body of a cancel request; the path names the task.
#[derive(Default, Deserialize)]
struct CancelBody {
    metadata: Option<Metadata>,
}

/// Checks that `A2A-Version` fits a path of `version`. A missing header means 0.3 unless `lenient`.
pub(super) fn check_version(
    version: ProtocolVersion,
    asked: Option<&str>,
    lenient: bool,
) -> Result<(), A2aError> {
    let text = asked.unwrap_or_default().trim();
    match (version, ProtocolVersion::parse(text)) {
        (V1_0, Some(V1_0)) | (V0_3, Some(V0_3)) => Ok(()),
        (V1_0, Some(V0_3)) if text.is_empty() && lenient => Ok(()),
        _ => {
            let requested = text.chars().take(80).collect();
            Err(A2aError::VersionNotSupported { requested, expected: version })
        }
    }
}

/// Reads a request whose version has been checked.
pub(super) fn request(
    decoder: &Decoder<'_>,
    target: Target,
    query: Option<&str>,
    body: &[u8],
) -> Result<Request, A2aError> {
    let Target { version, tenant, operation } = target;
    Ok(match operation {
        Operation::Send => Request::Send(send(decoder, version, tenant, body)?),
        Operation::Stream => Request::Stream(send(decoder, version, tenant, body)?),
        Operation::Get { task } => Request::Get(get(tenant, task, query)?),
        Operation::List => Request::List(list(version, tenant, query)?),
        Operation::Cancel { task } => {
            let CancelBody { metadata } = if body.is_empty() { CancelBody::default() } else { object(body)? };
            Request::Cancel(CancelTaskRequest { tenant, id: task, metadata }.validated()?)
        }
        Operation::Subscribe { task } => {
            let request = SubscribeToTaskRequest { tenant, id: task }.validated()?;
            Request::Subscribe(request, decoder.hints.last_event_id)
        }
        Operation::ExtendedCard => Request::ExtendedCard,
        Operation::CreatePush { task } => Request::CreatePush(create_push(version, tenant, task, body)?),
        Operation::ListPush { task } => Request::ListPushes(list_push(tenant, task, query)?),
        Operation::GetPush { task, config } => {
            let request = GetTaskPushNotificationConfigRequest { tenant, task_id: task, id: config };
            Request::GetPush(request.validated()?)
        }
        Operation::DeletePush { task, config } => {
            let request = DeleteTaskPushNotificationConfigRequest { tenant, task_id: task, id: config };
            Request::DeletePush(request.validated()?)
        }
    })
}

fn send(
    decoder: &Decoder<'_>,
    version: ProtocolVersion,
    tenant: Option<String>,
    body: &[u8],
) -> Result<SendMessageRequest, A2aError> {
    let request = match version {
        V1_0 => decoder.send_v1_0(Some(raw(body)?))?,
        V0_3 => {
            let body = rest::send_request_to_1_0(object(body)?);
            from_value::<SendMessageRequest>(&body).and_then(Validate::validated).map_err(in_old_names)?
        }
    };
    Ok(SendMessageRequest { tenant: tenant.or(request.tenant), ..request })
}

fn get(tenant: Option<String>, task: String, query: Option<&str>) -> Result<GetTaskRequest, A2aError> {
    let request = from_value::<GetTaskRequest>(&query::object(query))?;
    GetTaskRequest { tenant: tenant.or(request.tenant), id: task, ..request }.validated()
}

fn list(
    version: ProtocolVersion,
    tenant: Option<String>,
    query: Option<&str>,
) -> Result<ListTasksRequest, A2aError> {
    let mut members = query::object(query);
    if version == V0_3 {
        new_state(&mut members);
    }
    let request = from_value::<ListTasksRequest>(&members)?.validated()?;
    Ok(ListTasksRequest { tenant: tenant.or(request.tenant), ..request })
}

fn create_push(
    version: ProtocolVersion,
    tenant: Option<String>,
    task: String,
    body: &[u8],
) -> Result<TaskPushNotificationConfig, A2aError> {
    let config = match version {
        V1_0 => object::<TaskPushNotificationConfig>(body)?,
        V0_3 => {
            let config = rest::create_push_config_to_1_0(object(body)?);
            from_value(&config.ok_or_else(|| A2aError::invalid("pushNotificationConfig", "is required"))?)?
        }
    };
    let tenant = tenant.or(config.tenant);
    TaskPushNotificationConfig { tenant, task_id: Some(task), ..config }.validated()
}

fn list_push(
    tenant: Option<String>,
    task: String,
    query: Option<&str>,
) -> Result<ListTaskPushNotificationConfigsRequest, A2aError> {
    let request = from_value::<ListTaskPushNotificationConfigsRequest>(&query::object(query))?;
    ListTaskPushNotificationConfigsRequest { tenant: tenant.or(request.tenant), task_id: task, ..request }
        .validated()
}

/// Renames `parts` of the canonical model to `content`.
fn in_old_names(error: A2aError) -> A2aError {
    let A2aError::InvalidParams(violations) = error else { return error };
    let renamed = |violation: Violation| match violation.field.strip_prefix("message.parts") {
        Some(rest) => Violation { field: format!("message.content{rest}"), ..violation },
        None => violation,
    };
    A2aError::InvalidParams(violations.into_iter().map(renamed).collect())
}

/// Renames the state that 0.3 spells differently.
fn new_state(members: &mut serde_json::Map<String, Value>) {
    if let Some(status) = members.get_mut("status").filter(|status| *status == "TASK_STATE_CANCELLED") {
        *status = Value::from("TASK_STATE_CANCELED");
    }
}

/// A body, which must be an object.
fn raw(body: &[u8]) -> Result<&RawValue, A2aError> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|error| A2aError::Parse(error.to_string()))?;
    if raw.get().starts_with('{') { Ok(raw) } else { Err(A2aError::invalid("body", "must be an object")) }
}

fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, A2aError> {
    params(Some(raw(body)?))
}

fn from_value<T: for<'de> Deserialize<'de>>(members: &impl Serialize) -> Result<T, A2aError> {
    let raw = serde_json::value::to_raw_value(members)
        .map_err(|error| A2aError::Internal(format!("failed to read the request: {error}")))?;
    params(Some(&raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_one_version() {
        for (version, asked, lenient, taken) in [
            (V1_0, Some("1.0"), false, true),
            (V1_0, Some(" 1.1 "), false, true),
            (V1_0, None, false, false),
            (V1_0, Some(""), false, false),
            (V1_0, None, true, true),
            (V1_0, Some("0.3"), true, false),
            (V1_0, Some("99.0"), true, false),
            (V0_3, None, false, true),
            (V0_3, Some("0.3"), false, true),
            (V0_3, Some("1.0"), true, false),
        ] {
            assert_eq!(
                check_version(version, asked, lenient).is_ok(),
                taken,
                "{version} {asked:?} {lenient}"
            );
        }
    }

    #[test]
    fn a_push_config_is_read_from_every_body_that_clients_send() {
        let config = r#"{"id": "c", "url": "https://h/", "authentication": {"schemes": ["Bearer"]}}"#;
        for (version, body) in [
            (V1_0, r#"{"id": "c", "taskId": "other", "url": "https://h/", "authentication": {"scheme": "Bearer"}}"#
                .to_owned()),
            (V0_3, format!(r#"{{"name": "tasks/other/pushNotificationConfigs/c", "pushNotificationConfig": {config}}}"#)),
            (V0_3, format!(r#"{{"parent": "tasks/t", "configId": "c", "config": {{"pushNotificationConfig": {config}}}}}"#)),
            (V0_3, r#"{"config_id": "c", "config": {"push_notification_config": {"url": "https://h/",
                "authentication": {"schemes": ["Bearer"]}}}}"#.to_owned()),
        ] {
            let read = create_push(version, Some("acme".to_owned()), "t".to_owned(), body.as_bytes()).unwrap();
            let scheme = read.authentication.map(|authentication| authentication.scheme);
            assert_eq!((read.task_id.as_deref(), read.id.as_deref()), (Some("t"), Some("c")), "{body}");
            assert_eq!((&*read.url, scheme.as_deref()), ("https://h/", Some("Bearer")), "{body}");
            assert_eq!(read.tenant.as_deref(), Some("acme"));
        }
    }
}

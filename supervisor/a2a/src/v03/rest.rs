//! The JSON of 0.3's HTTP+JSON binding: `ProtoJSON` of the package `a2a.v1`, not the tagged objects of JSON-RPC.
//!
//! The REST transports of the official Python (`a2a-sdk` 0.3) and JavaScript clients speak nothing else; the `interop`
//! tests run both. Both reject a response with a member that the package does not have.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::convert::{unwrapped, wrapped};
use crate::model::{
    Artifact, Content, Event, ListTaskPushNotificationConfigsResponse, ListTasksResponse, Message, Part,
    Reply, Task, TaskPushNotificationConfig, TaskState, TaskStatus,
};
use crate::v03::PushConfig;

/// An event of a stream. `ends` as in [`event_of`](super::serialize::event_of).
pub fn event(event: &Event, ends: bool) -> Value {
    match event {
        Event::Task(task_) => json!({"task": task(task_)}),
        Event::Message(message_) => json!({"message": message(message_)}),
        Event::StatusUpdate(update) => {
            let state = update.status.state;
            json!({"statusUpdate": present(json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": status(&update.status),
                "final": state.is_terminal() || ends && state.is_interrupted(),
                "metadata": update.metadata,
            }))})
        }
        Event::ArtifactUpdate(update) => json!({"artifactUpdate": present(json!({
            "taskId": update.task_id,
            "contextId": update.context_id,
            "artifact": artifact(&update.artifact),
            "append": update.append,
            "lastChunk": update.last_chunk,
            "metadata": update.metadata,
        }))}),
    }
}

/// The response to a message.
pub fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Task(task_) => json!({"task": task(task_)}),
        Reply::Message(message_) => json!({"message": message(message_)}),
    }
}

/// A page of tasks. The package has none; this is the page of 1.0 with tasks of 0.3.
pub fn tasks(page: &ListTasksResponse) -> Value {
    json!({
        "tasks": page.tasks.iter().map(task).collect::<Vec<_>>(),
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
        "totalSize": page.total_size,
    })
}

pub fn task(task: &Task) -> Value {
    present(json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": status(&task.status),
        "artifacts": task.artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "history": task.history.iter().map(message).collect::<Vec<_>>(),
        "metadata": task.metadata,
    }))
}

/// A push configuration.
pub fn push_config(config: &TaskPushNotificationConfig) -> Value {
    let task = config.task_id.as_deref().unwrap_or_default();
    let id = config.id.as_deref().unwrap_or_default();
    json!({
        "name": format!("tasks/{task}/pushNotificationConfigs/{id}"),
        "pushNotificationConfig": PushConfig::from(config.clone()),
    })
}

/// A page of push configurations.
pub fn push_configs(page: &ListTaskPushNotificationConfigsResponse) -> Value {
    let configs = page.configs.iter().map(push_config).collect::<Vec<_>>();
    let token = Some(&page.next_page_token).filter(|token| !token.is_empty());
    let mut page = json!({"configs": configs});
    if let Some(token) = token {
        page["nextPageToken"] = json!(token);
    }
    page
}

/// The object without members that are `null` or an empty list.
fn present(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    }
    object
}

fn status(status: &TaskStatus) -> Value {
    // 0.3 spells it with two L.
    let state = match status.state {
        TaskState::Canceled => json!("TASK_STATE_CANCELLED"),
        state => json!(state),
    };
    let time = |time: Timestamp| format!("{time:.3}");
    let message = status.message.as_ref().map(message);
    present(json!({"state": state, "message": message, "timestamp": status.timestamp.map(time)}))
}

fn artifact(artifact: &Artifact) -> Value {
    present(json!({
        "artifactId": artifact.artifact_id,
        "name": artifact.name,
        "description": artifact.description,
        "parts": parts(&artifact.parts),
        "metadata": artifact.metadata,
        "extensions": artifact.extensions,
    }))
}

fn message(message: &Message) -> Value {
    present(json!({
        "messageId": Some(&message.message_id).filter(|id| !id.is_empty()),
        "contextId": message.context_id,
        "taskId": message.task_id,
        "role": message.role,
        "content": parts(&message.parts),
        "metadata": message.metadata,
        "extensions": message.extensions,
    }))
}

fn parts(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(part).collect()
}

/// A part; `None` for a part without content.
fn part(part: &Part) -> Option<Value> {
    let file = |name: &str, content: &str| {
        let mut file = json!({"mimeType": part.media_type, "name": part.filename});
        file[name] = json!(content);
        present(file)
    };
    let metadata = &part.metadata;
    Some(present(match &part.content {
        Content::Text(text) => json!({"text": text, "metadata": metadata}),
        Content::Raw(bytes) => json!({"file": file("fileWithBytes", bytes), "metadata": metadata}),
        Content::Url(url) => json!({"file": file("fileWithUri", url), "metadata": metadata}),
        Content::Data(value) => {
            let (data, metadata) = wrapped(value.clone(), metadata.clone());
            json!({"data": {"data": data}, "metadata": metadata})
        }
        Content::Unknown => return None,
    }))
}

/// Converts the body of a request with a message to the form of 1.0.
pub fn send_request_to_1_0(mut body: Value) -> Value {
    let Some(members) = body.as_object_mut() else { return body };
    rename(members, &["request"], "message");
    if let Some(message) = members.get_mut("message").and_then(Value::as_object_mut) {
        message_to_1_0(message);
    }
    if let Some(configuration) = members.get_mut("configuration").and_then(Value::as_object_mut) {
        // Clients omit `false`, like every default.
        let blocking = configuration.remove("blocking").filter(|value| !value.is_null());
        let at_once = match blocking.unwrap_or(Value::Bool(false)) {
            Value::Bool(blocking) => Value::Bool(!blocking),
            invalid => invalid,
        };
        configuration.insert("returnImmediately".to_owned(), at_once);
        let push = ["pushNotification", "push_notification"];
        rename(configuration, &push, "taskPushNotificationConfig");
        if let Some(push) = configuration.get_mut("taskPushNotificationConfig") {
            push_config_to_1_0(push);
        }
    }
    body
}

/// Converts the body of a request that creates a push configuration to the form of 1.0; `None` if it has none. The
/// package wants the configuration alone, which the JavaScript client sends; the Python clients send the whole request,
/// with the configuration as its member `config`.
pub fn create_push_config_to_1_0(mut body: Value) -> Option<Value> {
    let members = body.as_object_mut()?;
    let id = take(members, &["configId", "config_id"]);
    let mut outer = take(members, &["config"]);
    let outer = outer.as_mut().and_then(Value::as_object_mut).unwrap_or(members);
    let mut config = take(outer, &["pushNotificationConfig", "push_notification_config"])?;
    push_config_to_1_0(&mut config);
    if let (Some(members), Some(id)) = (config.as_object_mut(), id)
        && members.get("id").is_none_or(|id| id.is_null() || *id == "")
    {
        members.insert("id".to_owned(), id);
    }
    Some(config)
}

fn push_config_to_1_0(config: &mut Value) {
    let authentication = config.get_mut("authentication").and_then(Value::as_object_mut);
    let Some(authentication) = authentication else { return };
    let schemes = authentication.remove("schemes");
    match schemes.as_ref().and_then(|schemes| schemes.get(0)).cloned() {
        Some(scheme) => drop(authentication.insert("scheme".to_owned(), scheme)),
        None => config["authentication"] = Value::Null,
    }
}

fn message_to_1_0(message: &mut Map<String, Value>) {
    rename(message, &["content"], "parts");
    for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            part_to_1_0(part);
        }
    }
}

fn part_to_1_0(part: &mut Map<String, Value>) {
    if let Some(Value::Object(mut file)) = take(part, &["file"]) {
        for (names, name) in [
            (["fileWithBytes", "file_with_bytes"], "raw"),
            (["fileWithUri", "file_with_uri"], "url"),
            (["mimeType", "mime_type"], "mediaType"),
            (["name", "name"], "filename"),
        ] {
            let value = take(&mut file, &names).filter(|value| name == "raw" || *value != "");
            part.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    let Some(Value::Object(mut data)) = take(part, &["data"]) else { return };
    let Value::Object(data) = take(&mut data, &["data"]).unwrap_or_else(|| json!({})) else { return };
    let mut metadata = part.shift_remove("metadata");
    let data = unwrapped(data, metadata.as_mut().and_then(Value::as_object_mut));
    part.insert("data".to_owned(), data);
    let metadata = metadata.filter(|metadata| *metadata != json!({}));
    part.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
}

/// Removes the member that has one of the names; `null` is absence.
fn take(members: &mut Map<String, Value>, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| members.shift_remove(*name)).filter(|value| !value.is_null())
}

fn rename(members: &mut Map<String, Value>, names: &[&str], name: &str) {
    if let Some(value) = take(members, names) {
        members.insert(name.to_owned(), value);
    }
}

//! The operations of the tests, as requests of a binding.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// An HTTP request, to be sent below the base URL of the binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: reqwest::Method,
    /// The path, with a slash at the start.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// The body, as JSON.
    pub body: Option<Value>,
}

/// An operation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sends a message.
    Send,
    /// Sends a message and streams the answer.
    Stream,
    /// Reads a task.
    Get,
    /// Reads a page of tasks.
    List,
    /// Stops a task.
    Cancel,
    /// Follows a task.
    Subscribe,
    /// Reads the public card.
    Card,
    /// Reads the extended card.
    ExtendedCard,
    /// Stores where to push to.
    CreatePush,
    /// Reads where to push to.
    GetPush,
    /// Reads all addresses to push to.
    ListPush,
    /// Forgets where to push to.
    DeletePush,
}

impl Operation {
    /// The operation of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(name: &str, params: &Value) -> Result<Self> {
        Ok(match name {
            "send_message" => Self::Send,
            "send_streaming_message" => Self::Stream,
            "get_task" => Self::Get,
            "list_tasks" => Self::List,
            "cancel_task" => Self::Cancel,
            "subscribe_to_task" => Self::Subscribe,
            "get_agent_card" if params["extended"] == true => Self::ExtendedCard,
            "get_agent_card" => Self::Card,
            "get_extended_agent_card" => Self::ExtendedCard,
            "set_push_notification_config" | "create_push_config" => Self::CreatePush,
            "get_push_notification_config" | "get_push_config" => Self::GetPush,
            "list_push_notification_configs" | "list_push_configs" => Self::ListPush,
            "delete_push_notification_config" | "delete_push_config" => Self::DeletePush,
            other => bail!("there is no operation {other}"),
        })
    }

    /// The JSON-RPC method; none for the public card.
    const fn method(self) -> &'static str {
        match self {
            Self::Send => "SendMessage",
            Self::Stream => "SendStreamingMessage",
            Self::Get => "GetTask",
            Self::List => "ListTasks",
            Self::Cancel => "CancelTask",
            Self::Subscribe => "SubscribeToTask",
            Self::Card | Self::ExtendedCard => "GetExtendedAgentCard",
            Self::CreatePush => "CreateTaskPushNotificationConfig",
            Self::GetPush => "GetTaskPushNotificationConfig",
            Self::ListPush => "ListTaskPushNotificationConfigs",
            Self::DeletePush => "DeleteTaskPushNotificationConfig",
        }
    }

    /// Whether the answer is a stream.
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

/// The parameters as the specification has them: ids inside the message, which has an id of its own; a push
/// config flat.
pub fn prepare(params: &Value) -> Value {
    let mut params = params.as_object().cloned().unwrap_or_default();
    params.remove("extended");
    if params.contains_key("message") {
        let ids: Vec<_> =
            ["taskId", "contextId"].iter().filter_map(|name| params.remove_entry(*name)).collect();
        if let Some(Value::Object(message)) = params.get_mut("message") {
            message.extend(ids);
            message.entry("messageId").or_insert_with(|| Uuid::new_v4().to_string().into());
        }
    }
    if let Some(Value::Object(config)) = params.remove("pushNotificationConfig") {
        params.extend(config);
    }
    Value::Object(params)
}

/// The request over JSON-RPC.
pub fn jsonrpc(operation: Operation, params: &Value) -> Request {
    if operation == Operation::Card {
        return card();
    }
    let id = Uuid::new_v4().to_string();
    let body = json!({"jsonrpc": "2.0", "id": id, "method": operation.method(), "params": params});
    Request { method: reqwest::Method::POST, path: "/".to_owned(), query: Vec::new(), body: Some(body) }
}

/// The request over REST.
///
/// # Errors
/// When a member is missing that belongs into the path.
pub fn rest(operation: Operation, params: &Value) -> Result<Request> {
    let mut rest = params.as_object().cloned().unwrap_or_default();
    let mut id = |name: &str| {
        let value = rest.remove(name).with_context(|| format!("the parameters lack {name}"))?;
        value.as_str().map(str::to_owned).with_context(|| format!("{name} is no text"))
    };
    let (get, post, delete) = (reqwest::Method::GET, reqwest::Method::POST, reqwest::Method::DELETE);
    let (method, path) = match operation {
        Operation::Card => return Ok(card()),
        Operation::Send => (post, "/message:send".to_owned()),
        Operation::Stream => (post, "/message:stream".to_owned()),
        Operation::Get => (get, format!("/tasks/{}", id("id")?)),
        Operation::List => (get, "/tasks".to_owned()),
        Operation::Cancel => (post, format!("/tasks/{}:cancel", id("id")?)),
        Operation::Subscribe => (post, format!("/tasks/{}:subscribe", id("id")?)),
        Operation::ExtendedCard => (get, "/extendedAgentCard".to_owned()),
        Operation::CreatePush => (post, format!("/tasks/{}/pushNotificationConfigs", id("taskId")?)),
        Operation::ListPush => (get, format!("/tasks/{}/pushNotificationConfigs", id("taskId")?)),
        Operation::GetPush | Operation::DeletePush => {
            let path = format!("/tasks/{}/pushNotificationConfigs/{}", id("taskId")?, id("id")?);
            (if operation == Operation::GetPush { get } else { delete }, path)
        }
    };
    let posts = method == reqwest::Method::POST;
    let query = if posts { Vec::new() } else { query(&rest) };
    Ok(Request { method, path, query, body: posts.then_some(Value::Object(rest)) })
}

fn card() -> Request {
    let path = "/.well-known/agent-card.json".to_owned();
    Request { method: reqwest::Method::GET, path, query: Vec::new(), body: None }
}

fn query(params: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    params.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_put_where_the_specification_has_them() {
        let params = prepare(&json!({"taskId": "t", "contextId": "c", "message": {"messageId": "m"}}));
        assert_eq!(params, json!({"message": {"messageId": "m", "taskId": "t", "contextId": "c"}}));
        let params =
            prepare(&json!({"message": {"role": "ROLE_USER"}, "configuration": {"historyLength": 0}}));
        assert_eq!(params["message"]["messageId"].as_str().map(str::len), Some(36));
        assert_eq!(params["configuration"], json!({"historyLength": 0}));
        let params = prepare(&json!({"taskId": "t", "pushNotificationConfig": {"url": "u"}}));
        assert_eq!(params, json!({"taskId": "t", "url": "u"}));
        assert_eq!(prepare(&json!({"contextId": "c"})), json!({"contextId": "c"}));
        assert_eq!(prepare(&Value::Null), json!({}));
    }

    #[test]
    fn each_operation_has_a_place_in_rest() {
        for (name, params, method, path, rest_of_it) in [
            ("send_message", json!({"message": {}}), "POST", "/message:send", json!({"message": {}})),
            (
                "get_task",
                json!({"id": "t", "historyLength": 0}),
                "GET",
                "/tasks/t",
                json!(["historyLength=0"]),
            ),
            ("list_tasks", json!({"contextId": "c"}), "GET", "/tasks", json!(["contextId=c"])),
            ("cancel_task", json!({"id": "t"}), "POST", "/tasks/t:cancel", json!({})),
            ("subscribe_to_task", json!({"id": "t"}), "POST", "/tasks/t:subscribe", json!({})),
            ("get_agent_card", json!({"extended": true}), "GET", "/extendedAgentCard", json!([])),
            ("get_agent_card", json!({}), "GET", "/.well-known/agent-card.json", json!([])),
            (
                "create_push_config",
                json!({"taskId": "t", "url": "u"}),
                "POST",
                "/tasks/t/pushNotificationConfigs",
                json!({"url": "u"}),
            ),
            (
                "delete_push_config",
                json!({"taskId": "t", "id": "p"}),
                "DELETE",
                "/tasks/t/pushNotificationConfigs/p",
                json!([]),
            ),
        ] {
            let operation = Operation::of(name, &params).unwrap();
            let request = rest(operation, &prepare(&params)).unwrap();
            assert_eq!((request.method.as_str(), &*request.path), (method, path), "{name}");
            let query: Vec<_> = request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let sent = request.body.unwrap_or_else(|| json!(query));
            let sent = if name == "send_message" { json!({"message": {}}) } else { sent };
            assert_eq!(sent, rest_of_it, "{name}");
        }
        assert!(rest(Operation::Get, &json!({})).is_err());
        assert!(Operation::of("frobnicate", &json!({})).is_err());
    }

    #[test]
    fn jsonrpc_wraps_all_but_the_public_card() {
        let request = jsonrpc(Operation::Get, &json!({"id": "t"}));
        let body = request.body.unwrap();
        assert_eq!((&body["method"], &body["params"]), (&json!("GetTask"), &json!({"id": "t"})));
        assert_eq!(jsonrpc(Operation::Card, &json!({})).method, reqwest::Method::GET);
        assert_eq!(
            jsonrpc(Operation::ExtendedCard, &json!({})).body.unwrap()["method"],
            "GetExtendedAgentCard"
        );
    }
}

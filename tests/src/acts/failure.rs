//! How an operation failed, and the names that tests have for it.

use serde_json::{Value, json};

/// An operation's failure, whatever the binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// The JSON-RPC code; nothing over REST.
    pub code: Option<i64>,
    /// What the server says.
    pub message: Value,
    /// Its details: `data` of JSON-RPC, `details` of REST.
    pub data: Value,
}

/// A name of an error: the specification's, the `reason` of its details, JSON-RPC code, HTTP status (1.0.1,
/// section 5.4).
struct Name {
    text: &'static str,
    reason: &'static str,
    code: i64,
    status: u16,
}

const NAMES: [Name; 9] = [
    name("TaskNotFoundError", "TASK_NOT_FOUND", -32001, 404),
    name("TaskNotCancelableError", "TASK_NOT_CANCELABLE", -32002, 400),
    name("PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400),
    name("UnsupportedOperationError", "UNSUPPORTED_OPERATION", -32004, 400),
    name("ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED", -32005, 400),
    name("InvalidAgentResponseError", "INVALID_AGENT_RESPONSE", -32006, 500),
    name("ExtendedAgentCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400),
    name("ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED", -32008, 400),
    name("VersionNotSupportedError", "VERSION_NOT_SUPPORTED", -32009, 400),
];

const fn name(text: &'static str, reason: &'static str, code: i64, status: u16) -> Name {
    Name { text, reason, code, status }
}

impl Failure {
    /// The `error` member of a JSON-RPC answer.
    pub fn of_jsonrpc(status: u16, error: &Value) -> Self {
        let member = |name: &str| error.get(name).cloned().unwrap_or_default();
        Self { status, code: error["code"].as_i64(), message: member("message"), data: member("data") }
    }

    /// The body of a REST answer that is no success.
    pub fn of_rest(status: u16, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let member = |name: &str| error.get(name).cloned().unwrap_or_default();
        Self { status, code: None, message: member("message"), data: member("details") }
    }

    /// Whether it is the error of this name. An unknown name is no error's.
    pub fn is(&self, name: &str) -> bool {
        let Some(known) = NAMES.iter().find(|known| known.text == name) else { return false };
        match self.code {
            Some(code) => code == known.code,
            None => self.status == known.status && self.reason().is_none_or(|reason| reason == known.reason),
        }
    }

    /// The `reason` of a `google.rpc.ErrorInfo` among the details.
    pub fn reason(&self) -> Option<&str> {
        let details = self.data.as_array().into_iter().flatten();
        let mut info = details.filter(|one| one["@type"].as_str().is_some_and(|t| t.ends_with(".ErrorInfo")));
        info.next()?["reason"].as_str()
    }

    /// What patterns look at: `{error: {code, message, data}}`.
    pub fn root(&self) -> Value {
        let mut error = json!({"message": self.message});
        error["code"] = self.code.map_or_else(|| json!(self.status), |code| json!(code));
        if !self.data.is_null() {
            error["data"] = self.data.clone();
        }
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_codes_or_statuses() {
        let rpc = |code: i64| Failure::of_jsonrpc(200, &json!({"code": code, "message": "m"}));
        assert!(rpc(-32001).is("TaskNotFoundError"));
        assert!(!rpc(-32001).is("TaskNotCancelableError"));
        assert!(!rpc(-32001).is("Frobnicated"));
        let rest = |status: u16, reason: &str| {
            let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason});
            Failure::of_rest(status, &json!({"error": {"code": status, "message": "m", "details": [info]}}))
        };
        assert!(rest(404, "TASK_NOT_FOUND").is("TaskNotFoundError"));
        assert!(rest(400, "UNSUPPORTED_OPERATION").is("UnsupportedOperationError"));
        // The status alone tells these two not apart.
        assert!(!rest(400, "UNSUPPORTED_OPERATION").is("TaskNotCancelableError"));
        assert!(Failure::of_rest(404, &Value::Null).is("TaskNotFoundError"));
    }

    #[test]
    fn the_root_has_what_there_is() {
        let error = json!({"code": -32001, "message": "gone", "data": {"any": 1}});
        assert_eq!(Failure::of_jsonrpc(200, &error).root(), json!({ "error": error }));
        let rest = Failure::of_rest(404, &json!({"error": {"code": 404, "message": "gone"}}));
        assert_eq!(rest.root(), json!({"error": {"code": 404, "message": "gone"}}));
    }
}

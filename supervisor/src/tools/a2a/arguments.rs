//! The arguments of the tools, parsed.

use serde_json::{Map, Value};

use super::{CALL, CALL_STREAMING, DISCOVER, LIST};
use crate::builtin::text;

/// A call of one of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    List,
    Discover {
        /// A registered name or a URL.
        agent: String,
    },
    Call(AgentCall),
}

/// A message to an agent, or a request for the result of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentCall {
    /// A registered name or a URL.
    pub(super) agent: String,
    pub(super) action: Action,
    /// Whether the call waits for the answer.
    pub(super) blocking: bool,
    /// Whether the user sees progress.
    pub(super) streaming: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Starts a task.
    Begin { message: String },
    /// Returns the result of a task.
    Result { task: String },
    /// Answers the question of a task.
    Answer { task: String, message: String },
}

impl Action {
    pub(super) fn task(&self) -> Option<&str> {
        match self {
            Self::Begin { .. } => None,
            Self::Result { task } | Self::Answer { task, .. } => Some(task),
        }
    }
}

impl Request {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The fault, for the model.
    pub(super) fn read(tool: &str, arguments: &Map<String, Value>) -> Result<Self, String> {
        match tool {
            LIST => Ok(Self::List),
            DISCOVER => Ok(Self::Discover { agent: agent(tool, arguments)? }),
            CALL | CALL_STREAMING => Ok(Self::Call(AgentCall {
                agent: agent(tool, arguments)?,
                action: action(tool, arguments)?,
                blocking: blocking(arguments)?,
                streaming: tool == CALL_STREAMING,
            })),
            _ => Err(format!("There is no tool {tool}.")),
        }
    }
}

fn agent(tool: &str, arguments: &Map<String, Value>) -> Result<String, String> {
    let given = text(arguments, "url")?;
    let missing = || format!("failed to call {tool}: give \"url\", the name of a registered agent or a URL.");
    given.map(str::to_owned).ok_or_else(missing)
}

fn action(tool: &str, arguments: &Map<String, Value>) -> Result<Action, String> {
    let message = text(arguments, "message")?.map(str::to_owned);
    let task = text(arguments, "task_id")?.map(str::to_owned);
    match (task, message) {
        (None, Some(message)) => Ok(Action::Begin { message }),
        (Some(task), None) => Ok(Action::Result { task }),
        (Some(task), Some(message)) => Ok(Action::Answer { task, message }),
        (None, None) => Err(format!(
            "failed to call {tool}: give \"message\", what to say, or \"task_id\", a task to ask about."
        )),
    }
}

fn blocking(arguments: &Map<String, Value>) -> Result<bool, String> {
    match arguments.get("blocking") {
        None | Some(Value::Null) => Ok(true),
        Some(Value::Bool(blocking)) => Ok(*blocking),
        // Some models write it as Python does, or as text.
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err("The argument `blocking` must be true or false.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(tool: &str, arguments: &Value) -> Result<Request, String> {
        Request::read(tool, arguments.as_object().unwrap())
    }

    fn ask(action: Action, blocking: bool, streaming: bool) -> Request {
        Request::Call(AgentCall { agent: "a".to_owned(), action, blocking, streaming })
    }

    #[test]
    fn arguments_say_what_is_wanted() {
        let (task, message) = ("t".to_owned(), "hi".to_owned());
        let begin = Action::Begin { message: message.clone() };
        for (tool, arguments, expected) in [
            (LIST, json!({}), Request::List),
            (DISCOVER, json!({"url": " a "}), Request::Discover { agent: "a".to_owned() }),
            (CALL, json!({"url": "a", "message": "hi"}), ask(begin.clone(), true, false)),
            (CALL, json!({"url": "a", "message": "hi", "blocking": false}), ask(begin.clone(), false, false)),
            (
                CALL,
                json!({"url": "a", "message": "hi", "blocking": "False"}),
                ask(begin.clone(), false, false),
            ),
            (CALL_STREAMING, json!({"url": "a", "message": "hi", "task_id": ""}), ask(begin, true, true)),
            (
                CALL,
                json!({"url": "a", "task_id": "t"}),
                ask(Action::Result { task: task.clone() }, true, false),
            ),
            (
                CALL,
                json!({"url": "a", "task_id": "t", "message": "hi"}),
                ask(Action::Answer { task, message }, true, false),
            ),
        ] {
            assert_eq!(read(tool, &arguments), Ok(expected), "{tool} {arguments}");
        }
    }

    #[test]
    fn missing_and_odd_arguments_are_reported() {
        for (tool, arguments, part) in [
            (DISCOVER, json!({}), "give \"url\""),
            (CALL, json!({"message": "hi"}), "give \"url\""),
            (CALL, json!({"url": "a"}), "give \"message\""),
            (CALL, json!({"url": 7, "message": "hi"}), "`url` must be text"),
            (CALL, json!({"url": "a", "message": "hi", "blocking": 1}), "`blocking` must be true or false"),
        ] {
            let fault = read(tool, &arguments).unwrap_err();
            assert!(fault.contains(part), "{tool} {arguments}: {fault}");
        }
    }
}

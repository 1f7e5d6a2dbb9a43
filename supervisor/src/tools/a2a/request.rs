//! What a model asks for, from the arguments of its call. Pure.

use serde_json::{Map, Value};

use super::{CALL, CALL_STREAMING, DISCOVER, LIST};
use crate::tools::text;

/// A call of one of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// Who is registered.
    List,
    /// What an agent says of itself.
    Discover {
        /// A registered name or a URL.
        agent: String,
    },
    /// A message to an agent, or a look at what became of one.
    Ask(Ask),
}

/// A message to an agent, or a look at what became of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// A registered name or a URL.
    pub(super) agent: String,
    /// What is wanted.
    pub(super) what: What,
    /// Whether the answer is waited for.
    pub(super) blocking: bool,
    /// Whether the user sees progress.
    pub(super) streaming: bool,
}

/// What is wanted of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A new task.
    Begin {
        /// What to do.
        message: String,
    },
    /// The result of a task.
    Result {
        /// The task.
        task: String,
    },
    /// A task that continues.
    Answer {
        /// The task.
        task: String,
        /// The answer to what it asks.
        message: String,
    },
}

impl What {
    /// The task that it is about.
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
    /// What is wrong with them, for the model.
    pub(super) fn read(tool: &str, arguments: &Map<String, Value>) -> Result<Self, String> {
        match tool {
            LIST => Ok(Self::List),
            DISCOVER => Ok(Self::Discover { agent: agent(tool, arguments)? }),
            CALL | CALL_STREAMING => Ok(Self::Ask(Ask {
                agent: agent(tool, arguments)?,
                what: what(tool, arguments)?,
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

fn what(tool: &str, arguments: &Map<String, Value>) -> Result<What, String> {
    let message = text(arguments, "message")?.map(str::to_owned);
    let task = text(arguments, "task_id")?.map(str::to_owned);
    match (task, message) {
        (None, Some(message)) => Ok(What::Begin { message }),
        (Some(task), None) => Ok(What::Result { task }),
        (Some(task), Some(message)) => Ok(What::Answer { task, message }),
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

    fn ask(what: What, blocking: bool, streaming: bool) -> Request {
        Request::Ask(Ask { agent: "a".to_owned(), what, blocking, streaming })
    }

    #[test]
    fn arguments_say_what_is_wanted() {
        let (task, message) = ("t".to_owned(), "hi".to_owned());
        let begin = What::Begin { message: message.clone() };
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
                ask(What::Result { task: task.clone() }, true, false),
            ),
            (
                CALL,
                json!({"url": "a", "task_id": "t", "message": "hi"}),
                ask(What::Answer { task, message }, true, false),
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

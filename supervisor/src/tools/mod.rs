//! The built-in tools: `get_current_date`, `wait` and `jq` for every agent, which the engine crate declares for the model; and the
//! optional tools of the supervisor that call third-party A2A agents ([`A2aTools`]).

mod a2a;
mod date;
mod jq;
mod jq_eval;
mod source;
mod wait;

use caipe_engine::ToolOutput;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use a2a::{A2aTools, A2aToolsError, Caller, Progress};
pub(crate) use jq::executable;
pub use jq_eval::{JQ_EVAL_COMMAND, jq_eval_main};
pub use source::{ToolSource, source_of};

/// Runs a built-in tool. Failures are reported to the model. Cancelling ends the tool, and its child process, at once.
pub async fn call_builtin(
    tool: &str,
    arguments: &Map<String, Value>,
    cancel: CancellationToken,
) -> ToolOutput {
    output(match tool {
        "get_current_date" => date::call(arguments),
        "wait" => wait::call(arguments, &cancel).await,
        "jq" => jq::call(arguments, &cancel).await,
        _ => Err(format!("There is no tool `{tool}`.")),
    })
}

/// The result of a tool as its output. The model reads an error too.
fn output(result: Result<String, String>) -> ToolOutput {
    let is_error = result.is_err();
    let (Ok(content) | Err(content)) = result;
    ToolOutput { content, is_error }
}

/// A text argument; `None` if it is absent, null or blank.
fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("The argument `{name}` must be text.")),
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

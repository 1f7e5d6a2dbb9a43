//! The tools that the supervisor runs itself: for every agent the date, a pause, and `jq`; for the supervisor, where
//! they are wanted, those that ask agents of others ([`A2aTools`]).
//!
//! The engine crate declares the former for the model; this module runs them.

mod a2a;
mod date;
mod jq;
mod jq_eval;
mod wait;

use caipe_engine::ToolOutput;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use a2a::{A2aTools, A2aToolsError, Caller, Progress};
pub use jq_eval::{JQ_EVAL_COMMAND, jq_eval_main};

/// Runs a tool of the edge; `None` if there is none of this name.
///
/// Failures are reported to the model. Cancelling ends the tool at once, a child process with it.
pub async fn call(
    tool: &str,
    arguments: &Map<String, Value>,
    cancel: CancellationToken,
) -> Option<ToolOutput> {
    let outcome = match tool {
        "get_current_date" => date::call(arguments),
        "wait" => wait::call(arguments, &cancel).await,
        "jq" => jq::call(arguments, &cancel).await,
        _ => return None,
    };
    Some(match outcome {
        Ok(content) => ToolOutput { content, is_error: false },
        Err(content) => ToolOutput { content, is_error: true },
    })
}

/// A text argument; absent, null and blank count as not given.
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

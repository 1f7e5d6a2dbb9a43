//! The tools that the edge runs, each offered by a [`ToolSource`]: the built-in ones of every agent (`get_current_date`, `wait`,
//! `jq`), those that call third-party A2A agents ([`A2aTools`]), and those of the MCP servers.

mod a2a;
mod builtin;
mod date;
mod jq;
mod jq_eval;
mod offered_tool;
mod source;
mod wait;

use caipe_engine::ToolOutput;
use serde_json::{Map, Value};

pub use a2a::{A2aTools, A2aToolsError, Caller, Progress};
pub use builtin::{builtin_tools, call_builtin, is_builtin};
pub(crate) use jq::executable;
pub use jq_eval::{JQ_EVAL_COMMAND, jq_eval_main};
pub use offered_tool::{OfferedTool, OfferedTools, ToolClass};
pub use source::{ToolSource, ToolSources};

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

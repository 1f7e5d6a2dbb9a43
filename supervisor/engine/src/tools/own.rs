//! The tools that need nothing but the state.

use caipe_model::{Message, Part, ToolResult};
use serde_json::{Map, Value};

use crate::state::RunState;

use super::files::{self, FileResult};

/// Runs one of [`FILE_TOOLS`](super::FILE_TOOLS); says what to tell the model.
pub(crate) fn run_file_tool(state: &mut RunState, name: &str, arguments: &Map<String, Value>) -> FileResult {
    let most = state.abilities.limits.files;
    match name {
        "ls" => files::ls(&state.files, arguments),
        "read_file" => files::read(&state.files, arguments),
        "write_file" => files::write(&mut state.files, arguments, most),
        "edit_file" => files::edit(&mut state.files, arguments, most),
        "glob" => files::glob(&state.files, arguments),
        "grep" => files::grep(&state.files, arguments),
        _ => keep_result(state, arguments),
    }
}

/// `tool_result_to_file`.
fn keep_result(state: &mut RunState, arguments: &Map<String, Value>) -> FileResult {
    let path = files::normalise(files::required(arguments, &["file_path", "path"])?)?;
    let given = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (id, tool) = (given("tool_call_id"), given("tool_name"));
    let result = newest_result(state, id, tool).ok_or_else(|| {
        "failed to find the tool result: no earlier call in this conversation fits. Call the tool first, and store its \
         result in a later turn."
            .to_owned()
    })?;
    let content = result.content.clone();
    files::store(&mut state.files, path, content, state.abilities.limits.files)
}

/// The newest result that is of this call, if one is named, and of this tool, if one is named.
fn newest_result<'a>(state: &'a RunState, id: Option<&str>, tool: Option<&str>) -> Option<&'a ToolResult> {
    let mut results =
        state.messages.iter().rev().flat_map(|message| message.parts.iter().rev()).filter_map(|part| {
            match part {
                Part::ToolResult(result) => Some(result),
                _ => None,
            }
        });
    results.find(|result| {
        id.is_none_or(|id| result.call_id == id)
            && tool.is_none_or(|tool| {
                tool_of(state.messages.iter().map(AsRef::as_ref), &result.call_id) == Some(tool)
            })
    })
}

/// The tool that a call was for.
fn tool_of<'a>(mut messages: impl Iterator<Item = &'a Message>, id: &str) -> Option<&'a str> {
    messages
        .find_map(|message| message.tool_calls().find(|call| call.id == id))
        .map(|call| call.name.as_str())
}

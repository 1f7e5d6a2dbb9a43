//! `find_tools`: the search for tools whose descriptions the model does not read at once. Pure.

use caipe_model::ToolSpec;
use serde_json::{Map, Value, json};

use crate::state::RunState;
use crate::tool_index::ToolIndex;

/// The tool by which a model searches for tools.
pub(crate) const FIND_TOOL: &str = "find_tools";

/// Most characters of all names in the description of `find_tools`.
const NAMES_CHARS: usize = 4000;

/// The description of `find_tools`, which names the tools as far as they fit.
pub(super) fn spec(index: &ToolIndex) -> ToolSpec {
    let mut names = String::new();
    let mut left = index.names().len();
    for name in index.names() {
        if names.len() + name.len() > NAMES_CHARS {
            break;
        }
        let comma = if names.is_empty() { "" } else { ", " };
        names.extend([comma, name]);
        left -= 1;
    }
    let more = if left == 0 { String::new() } else { format!(", and {left} more") };
    ToolSpec {
        name: FIND_TOOL.to_owned(),
        description: format!(
            "Find the tools for a task before you use them: you know the parameters of a tool only once you have found it. Found \
             tools stay available. Search by what you want to do or by names; several searches in one turn are fine. The tools: \
             {names}{more}."
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words for what the tool does, or names of tools."}
            },
            "required": ["query"]
        }),
    }
}

/// Searches, and notes what was found for the turns to come.
pub(crate) fn find(state: &mut RunState, arguments: &Map<String, Value>) -> Result<String, String> {
    let query = arguments.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if query.is_empty() {
        return Err("`query` is missing: say in words what the tool must do.".to_owned());
    }
    let Some(index) = state.abilities.searched.clone() else {
        return Err("All tools are available already.".to_owned());
    };
    let found = index.search(query);
    if found.is_empty() {
        return Ok(
            "No tool matches. Try other words, or names from the description of `find_tools`.".to_owned()
        );
    }
    let line = |name: &&str| format!("- `{name}`: {}", index.summary(name));
    let lines: Vec<String> = found.iter().map(line).collect();
    for name in found {
        state.note_found(name);
    }
    Ok(format!("You can call these tools now:\n{}", lines.join("\n")))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

//! The built-in tools that need a clock or a process: `get_current_date`, `wait` and `jq`. Also how any source describes a tool.

mod date;
mod jq;
mod jq_eval;
mod offered_tool;
mod wait;

use std::sync::{Arc, LazyLock};

use caipe_engine::{ToolOutput, ToolTraits};
use caipe_model::ToolSpec;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use jq::executable;
pub use jq_eval::{JQ_EVAL_COMMAND, jq_eval_main};
pub use offered_tool::{OfferedTool, OfferedTools, ToolClass};

const DATE: &str = "get_current_date";
const WAIT: &str = "wait";
const JQ: &str = "jq";
/// The tools of `crate::skills`.
pub(crate) const FIND_SKILLS: &str = "find_skills";
pub(crate) const USE_SKILL: &str = "use_skill";
pub(crate) const READ_SKILL_FILE: &str = "read_skill_file";

/// The tool of `crate::tools::ShellTools`.
pub(crate) const SHELL_EXEC: &str = "shell_exec";
/// The tool of `crate::tools::WebTools`.
pub(crate) const WEB_FETCH: &str = "web_fetch";
/// The tool of `crate::tools::Introspection`.
pub(crate) const DESCRIBE_SELF: &str = "describe_self";
/// The tools of `crate::tools::ModelTools`.
pub(crate) const LIST_MODELS: &str = "list_models";
pub(crate) const ASK_MODEL: &str = "ask_model";
/// The tools of `crate::tools::TaskTools`.
pub(crate) const TASKS_LIST: &str = "tasks_list";
pub(crate) const TASKS_GET: &str = "tasks_get";

/// The tools of `crate::tools::MemoryTools`.
pub(crate) const MEMORY_SAVE: &str = "memory_save";
pub(crate) const MEMORY_SEARCH: &str = "memory_search";
pub(crate) const MEMORY_FORGET: &str = "memory_forget";

/// The names of the tools of other modules.
const RESERVED: [&str; 13] = [
    FIND_SKILLS,
    USE_SKILL,
    READ_SKILL_FILE,
    SHELL_EXEC,
    WEB_FETCH,
    DESCRIBE_SELF,
    LIST_MODELS,
    ASK_MODEL,
    TASKS_LIST,
    TASKS_GET,
    MEMORY_SAVE,
    MEMORY_SEARCH,
    MEMORY_FORGET,
];

/// Whether a name is that of a built-in tool or of one of the engine, in any case. A server's tool must not have it.
pub fn is_builtin(name: &str) -> bool {
    let mut own = [DATE, WAIT, JQ].into_iter().chain(RESERVED);
    caipe_engine::is_builtin(name) || own.any(|own| own.eq_ignore_ascii_case(name))
}

/// The built-in tools.
pub fn builtin_tools() -> Arc<[OfferedTool]> {
    static TOOLS: LazyLock<Arc<[OfferedTool]>> = LazyLock::new(|| specs().into_iter().map(offered).collect());
    TOOLS.clone()
}

fn offered(spec: ToolSpec) -> OfferedTool {
    let is_pause = spec.name == WAIT;
    let traits = ToolTraits { is_pause, is_repeatable: !is_pause, ..ToolTraits::default() };
    OfferedTool { traits, ..OfferedTool::new(spec, ToolClass::Read) }
}

/// Runs a built-in tool. Failures are reported to the model. Cancelling ends the tool, and its child process, at once.
pub async fn call_builtin(
    tool: &str,
    arguments: &Map<String, Value>,
    cancel: CancellationToken,
) -> ToolOutput {
    output(match tool {
        DATE => date::call(arguments),
        WAIT => wait::call(arguments, &cancel).await,
        JQ => jq::call(arguments, &cancel).await,
        _ => Err(format!("There is no tool `{tool}`.")),
    })
}

fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), schema }
}

fn specs() -> [ToolSpec; 3] {
    [
        spec(
            DATE,
            "Get the current date, time and day of the week.",
            &json!({ "timezone": {
                "type": "string", "description": "An IANA time zone such as Europe/Berlin; UTC if left out."
            } }),
            &[],
        ),
        spec(
            WAIT,
            "Wait before the next step, for example until a job is done.",
            &json!({
                "seconds": { "type": "integer", "minimum": 1, "maximum": 300, "description": "How long." },
                "reason": { "type": "string", "description": "What is waited for." },
            }),
            &["seconds"],
        ),
        spec(
            JQ,
            "Run a jq program over JSON.",
            &json!({
                "program": { "type": "string", "description": "The jq program, for example .items[] | .name." },
                "input": { "description": "The JSON, as text or as a value." },
            }),
            &["program", "input"],
        ),
    ]
}

/// The result of a tool as its output. The model reads an error too.
pub(crate) fn output(result: Result<String, String>) -> ToolOutput {
    result.map_or_else(ToolOutput::error, ToolOutput::ok)
}

/// The output of an answer, or that the call was stopped.
pub(crate) async fn stoppable(
    answer: impl Future<Output = Result<String, String>>,
    cancel: &CancellationToken,
) -> ToolOutput {
    tokio::select! {
        () = cancel.cancelled() => ToolOutput::error("The call was stopped."),
        answer = answer => output(answer),
    }
}

/// The argument `limit`: a number above 0, cut to `most`.
pub(crate) fn limit(arguments: &Map<String, Value>, default: usize, most: usize) -> Result<usize, String> {
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => default,
        Some(limit) => {
            let limit = limit.as_u64().filter(|limit| *limit > 0);
            let limit = limit.ok_or("The argument `limit` must be a whole number above 0.")?;
            usize::try_from(limit).unwrap_or(usize::MAX)
        }
    };
    Ok(limit.min(most))
}

/// A text argument; `None` if it is absent, null or blank.
pub(crate) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("The argument `{name}` must be text.")),
    }
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;

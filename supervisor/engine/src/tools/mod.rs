//! The built-in tools: their names and descriptions, and those that the engine runs itself.

use crate::form::{ASK_TOOL, REQUEST_INPUT_TOOL};

mod approval;
mod files;
mod form_fields;
pub(crate) mod form_tool;
pub(crate) mod glob;
pub(crate) mod overflow;
pub(crate) mod response;
pub(crate) mod search;
mod specs;
pub(crate) mod todos;
pub(crate) mod workflow_tools;

pub use approval::ApprovalPattern;
pub use files::{FileResult, FileTree, missing_file, run_file_tool_on};
pub(crate) use files::{
    apply_changes, apply_output, in_folder, note_use, permit, run_file_tool, store_file, with_result,
};
pub(crate) use search::FIND_TOOL;
pub use specs::builtin_tools;
pub(crate) use specs::{offers_file_tool, offers_files};
pub use workflow_tools::WORKFLOW_TOOLS;

/// The tool by which a model gives its final answer; `ResponseFormat` is its other name.
pub const RESPONSE_TOOL: &str = "PlatformEngineerResponse";

/// The tool by which a model delegates a task.
pub(crate) const TASK_TOOL: &str = "task";

/// The tool by which a model writes its plan.
pub(crate) const TODO_TOOL: &str = "write_todos";

/// The tool that stores the result of another one as a file.
pub(crate) const RESULT_TOOL: &str = "tool_result_to_file";

/// The tools that work on files.
pub const FILE_TOOLS: [&str; 7] = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", RESULT_TOOL];

/// Those of them that write.
pub const WRITE_TOOLS: [&str; 3] = ["write_file", "edit_file", RESULT_TOOL];

/// Whether a name is that of a tool of the engine or of a final answer, in any case. No other tool must have it.
pub fn is_builtin(name: &str) -> bool {
    let own = [TODO_TOOL, TASK_TOOL, ASK_TOOL, REQUEST_INPUT_TOOL, FIND_TOOL];
    let mut names = own.iter().chain(&FILE_TOOLS).chain(&WORKFLOW_TOOLS);
    is_response(name) || names.any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether a tool is the one for the final answer.
pub(crate) fn is_response(name: &str) -> bool {
    name.eq_ignore_ascii_case(RESPONSE_TOOL) || name.eq_ignore_ascii_case("ResponseFormat")
}

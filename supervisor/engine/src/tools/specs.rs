//! The engine's tools as the model sees them.

use caipe_model::ToolSpec;
use serde_json::{Value, json};

use crate::abilities::{Abilities, AnswerMode};
use crate::file_rights::{FileWrites, SCRATCHPAD};
use crate::form::{ASK_TOOL, FieldType, REQUEST_INPUT_TOOL};

use super::{FILE_TOOLS, RESPONSE_TOOL, TASK_TOOL, TODO_TOOL, WRITE_TOOLS, search, workflow_tools};

/// The engine's tools that an agent's abilities allow, in a stable order.
///
/// If a tool of [`Abilities::tools`] has the name of one for virtual files, no tool for virtual files is offered, so that a
/// model never mixes virtual and real files.
pub fn builtin_tools(abilities: &Abilities) -> Vec<ToolSpec> {
    let mut specs = vec![write_todos()];
    if !abilities.agents.is_empty() {
        specs.push(task());
    }
    specs.extend(workflow_tools::specs(abilities));
    specs.extend(abilities.searched.as_deref().map(search::spec));
    if offers_files(abilities) {
        specs.extend(files(abilities.writes));
    }
    if abilities.forms {
        specs.push(request_input());
        // A sub-agent needs no second name for the same tool.
        if abilities.answer != AnswerMode::Plain {
            specs.push(ask());
        }
    }
    if abilities.answer == AnswerMode::Structured {
        specs.push(response());
    }
    specs
}

/// Whether an engine's tool for virtual files is offered.
pub(crate) fn offers_file_tool(abilities: &Abilities, name: &str) -> bool {
    let is_read_only = abilities.writes == FileWrites::Nowhere;
    FILE_TOOLS.contains(&name) && offers_files(abilities) && !(is_read_only && WRITE_TOOLS.contains(&name))
}

/// Whether the tools for virtual files are offered.
pub(crate) fn offers_files(abilities: &Abilities) -> bool {
    !FILE_TOOLS.iter().any(|name| abilities.tools.contains(*name))
}

fn spec(name: &str, description: &str, schema: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.to_owned(), schema }
}

/// The schema of an object with these properties, of which some are required.
fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn write_todos() -> ToolSpec {
    let todo = object(
        &json!({
            "id": text("Stays the same from call to call; the place in the list if left out."),
            "content": text("What is to be done, in the form \"[Agent] What to do\"."),
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "failed"] },
        }),
        &["content", "status"],
    );
    spec(
        TODO_TOOL,
        "Write the plan that the user sees. Every call replaces the whole list. Mark a step in_progress before you \
         work on it and completed as soon as it is done.",
        object(&json!({ "todos": { "type": "array", "items": todo } }), &["todos"]),
    )
}

fn task() -> ToolSpec {
    spec(
        TASK_TOOL,
        "Hand a task to another agent and get its answer. Several calls in one turn run at the same time. The agent \
         knows nothing of this conversation: say everything that it needs.",
        object(
            &json!({
                "subagent_type": text("The agent's name."),
                "description": text("The task, complete, with what the answer shall contain."),
            }),
            &["subagent_type", "description"],
        ),
    )
}

fn files(writes: FileWrites) -> Vec<ToolSpec> {
    let path = text("An absolute path such as /notes/plan.md.");
    let path_to_write = match writes {
        FileWrites::Everywhere => path.clone(),
        FileWrites::Scratchpad => text(&format!("An absolute path below {SCRATCHPAD}/.")),
        FileWrites::Nowhere => return reading(&path),
    };
    [reading(&path), writing(&path_to_write)].concat()
}

fn reading(path: &Value) -> Vec<ToolSpec> {
    vec![
        spec(
            "ls",
            "List the virtual files of this conversation with their sizes.",
            object(&json!({ "path": text("Only files in this folder.") }), &[]),
        ),
        spec(
            "read_file",
            "Read a virtual file; lines come numbered.",
            object(
                &json!({
                    "file_path": path,
                    "offset": number("Lines to skip; 0 if left out."),
                    "limit": number("Most lines to return; 2000 if left out."),
                }),
                &["file_path"],
            ),
        ),
        spec(
            "glob",
            "List the virtual files whose path matches a pattern: * within a folder, ** for folders, ? one character, [ab] one of some, {a,b} either text.",
            object(&json!({ "pattern": text("For example /reports/**/*.md.") }), &["pattern"]),
        ),
        spec(
            "grep",
            "Find the lines of virtual files that contain a text, literally.",
            object(
                &json!({
                    "pattern": text("The text to look for."),
                    "path": text("Only files in this folder, or this file."),
                    "glob": text("Only files whose path matches this pattern."),
                    "limit": number("Most lines to return."),
                }),
                &["pattern"],
            ),
        ),
    ]
}

fn writing(path: &Value) -> Vec<ToolSpec> {
    vec![
        spec(
            "write_file",
            "Write a virtual file, whole. It lives as long as the conversation.",
            object(
                &json!({ "file_path": path, "content": text("The file's text.") }),
                &["file_path", "content"],
            ),
        ),
        spec(
            "edit_file",
            "Replace text in a virtual file. The old text must occur exactly once, unless replace_all is true.",
            object(
                &json!({
                    "file_path": path,
                    "old_string": text("The text to replace, exactly as it stands in the file."),
                    "new_string": text("The text to put there."),
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence." },
                }),
                &["file_path", "old_string", "new_string"],
            ),
        ),
        spec(
            "tool_result_to_file",
            "Store the result of an earlier tool call as a virtual file, without repeating it.",
            object(
                &json!({
                    "file_path": path,
                    "tool_name": text("The newest result of this tool; of any tool if left out."),
                    "tool_call_id": text("The result of exactly this call."),
                }),
                &["file_path"],
            ),
        ),
    ]
}

fn fields() -> Value {
    let field = object(
        &json!({
            "field_name": text("The key of the answer."),
            "field_description": text("What is asked."),
            "field_type": {
                "type": "string",
                "enum": FieldType::NAMES,
                "description": "text if left out; select with field_values.",
            },
            "field_values": { "type": "array", "items": { "type": "string" }, "description": "The choices of a select or multiselect." },
            "default_value": { "description": "What holds if nothing is given." },
            "required": { "type": "boolean", "description": "True if left out." },
            "min": { "type": "number", "description": "The least number, or characters or choices." },
            "max": { "type": "number" },
        }),
        &["field_name", "field_description"],
    );
    json!({ "type": "array", "items": field })
}

/// As [`fields`], without repeating the schema for the model.
fn same_fields() -> Value {
    let description = "As `fields` of request_user_input.";
    json!({ "type": "array", "items": { "type": "object" }, "description": description })
}

fn request_input() -> ToolSpec {
    spec(
        REQUEST_INPUT_TOOL,
        "Ask the user to fill in a form, and wait for the answers.",
        object(
            &json!({
                "title": text("A heading for the form."),
                "description": text("What is asked and why, for the user."),
                "fields": fields(),
            }),
            &["description", "fields"],
        ),
    )
}

fn ask() -> ToolSpec {
    let metadata = object(&json!({ "input_fields": same_fields() }), &["input_fields"]);
    spec(
        ASK_TOOL,
        "The same as request_user_input, with other names; a field is not required unless it says so.",
        object(
            &json!({
                "response": text("What is asked and why, for the user."),
                "input_title": text("A heading for the form."),
                "metadata": metadata,
            }),
            &["response", "metadata"],
        ),
    )
}

fn response() -> ToolSpec {
    let metadata =
        object(&json!({ "user_input": { "type": "boolean" }, "input_fields": same_fields() }), &[]);
    spec(
        RESPONSE_TOOL,
        "Give the final answer to the user. Call it alone, once everything else is done.",
        object(
            &json!({
                "content": text("The whole answer, in Markdown."),
                "is_task_complete": { "type": "boolean", "description": "True unless the task could not be finished." },
                "require_user_input": { "type": "boolean", "description": "True if the user must answer before you can go on." },
                "was_task_successful": { "type": "boolean" },
                "metadata": metadata,
            }),
            &["content", "is_task_complete", "require_user_input"],
        ),
    )
}

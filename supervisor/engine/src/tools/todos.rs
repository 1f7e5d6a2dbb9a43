//! `write_todos`: the model's plan.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::plan::Todo;
use crate::plan_step::StepStatus;

/// Most entries of a to-do list.
const MOST_TODOS: usize = 100;

/// Most characters of an entry.
const CONTENT_CHARS: usize = 500;

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    id: Value,
    content: String,
    #[serde(default)]
    status: String,
}

/// The to-do list in a call's arguments. The error is for the model.
pub(crate) fn parse(arguments: &Map<String, Value>) -> Result<Vec<Todo>, String> {
    let todos = arguments.get("todos").cloned().unwrap_or_default();
    let entries: Vec<Entry> = serde_json::from_value(todos).map_err(|error| {
        format!("failed to read the to-do list: {error}. Give \"todos\" as an array of objects with \"content\" and \"status\".")
    })?;
    if entries.len() > MOST_TODOS {
        return Err(format!(
            "failed to read the to-do list: it has {} entries, at most {MOST_TODOS} are allowed.",
            entries.len()
        ));
    }
    entries.into_iter().enumerate().map(todo).collect()
}

fn todo((index, entry): (usize, Entry)) -> Result<Todo, String> {
    let content: String =
        entry.content.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(CONTENT_CHARS).collect();
    if content.is_empty() {
        return Err(format!("failed to read the to-do list: entry {index} has no content."));
    }
    Ok(Todo { id: id(&entry.id, index), content, status: status(&entry.status), skipped: false })
}

fn id(id: &Value, index: usize) -> String {
    match id {
        Value::String(id) if !id.trim().is_empty() => id.trim().to_owned(),
        Value::Number(id) => id.to_string(),
        _ => index.to_string(),
    }
}

fn status(status: &str) -> StepStatus {
    match status {
        "in_progress" => StepStatus::InProgress,
        "completed" | "done" => StepStatus::Completed,
        "failed" | "cancelled" | "canceled" => StepStatus::Failed,
        _ => StepStatus::Pending,
    }
}

/// The result of a call.
pub(crate) fn summary(todos: &[Todo]) -> String {
    let open = todos.iter().filter(|todo| !todo.status.is_closed()).count();
    format!("The to-do list now has {} entries, {open} of them open.", todos.len())
}

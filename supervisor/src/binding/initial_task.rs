//! The wire form of a task at its start, and the one that its record alone gives.

use caipe_a2a::model::{Artifact, Message, Task, TaskState, TaskStatus};
use caipe_store::{TaskPhase, TaskRecord};
use caipe_view::activity::Activity;
use serde_json::Value;

/// A task at its start: submitted, with the message that started it.
pub fn opening(record: &TaskRecord, message: Message) -> Task {
    let mut task = Task::submitted(&record.id, &record.context, message);
    task.status.timestamp = Some(record.created);
    if record.is_repeatable {
        Activity::repeatable_run().write(task.metadata.get_or_insert_default());
    }
    task
}

/// A task that is not under way, without its artifacts; otherwise the same as from its log.
///
/// # Errors
/// When a message in the record cannot be read.
pub fn summary(record: &TaskRecord) -> serde_json::Result<Task> {
    let mut task = opening(record, read(&record.request)?);
    for reply in &record.replies {
        task.history.push(read(&reply.message)?);
    }
    task.status = TaskStatus {
        state: state(record.phase),
        message: record.status_message.as_ref().map(read).transpose()?,
        timestamp: Some(record.updated),
    };
    if !record.phase.is_under_way() || !record.replies.is_empty() {
        let trace_id = Value::from(record.trace_id.as_str());
        task.metadata.get_or_insert_default().insert("trace_id".to_owned(), trace_id);
    }
    Ok(task)
}

/// Removes all artifacts but the answer: the result, or the streamed text if there is no result.
pub fn retain_answer(task: &mut Task) {
    let named = |artifact: &Artifact, names: &[&str]| {
        artifact.name.as_deref().is_some_and(|name| names.contains(&name))
    };
    let results = ["final_result", "partial_result"];
    let has_result = task.artifacts.iter().any(|artifact| named(artifact, &results));
    let answer_names: &[&str] = if has_result { &results } else { &["streaming_result"] };
    task.artifacts.retain(|artifact| named(artifact, answer_names));
}

/// A stored message, read without a copy of the whole value.
fn read(message: &Value) -> serde_json::Result<Message> {
    serde::Deserialize::deserialize(message)
}

/// The state on the wire of a task in this phase.
pub const fn state(phase: TaskPhase) -> TaskState {
    match phase {
        TaskPhase::Submitted => TaskState::Submitted,
        TaskPhase::Working => TaskState::Working,
        TaskPhase::InputRequired => TaskState::InputRequired,
        TaskPhase::Completed => TaskState::Completed,
        TaskPhase::Failed => TaskState::Failed,
        TaskPhase::Canceled => TaskState::Canceled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_states_whether_its_run_may_be_repeated_until_it_is_over() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let message = Message::user("m", "hi");
        let mut record = TaskRecord {
            id: "t".to_owned(),
            context: "c".to_owned(),
            phase: TaskPhase::Completed,
            created: now,
            updated: now,
            owner: None,
            trace_id: "x".to_owned(),
            request: serde_json::to_value(&message).unwrap(),
            replies: Vec::new(),
            is_repeatable: true,
            recoveries: 0,
            status_message: None,
        };
        let stated = |task: &Task| Activity::is_repeatable_run(task.metadata.as_ref());
        let over = summary(&record).unwrap();
        assert!(stated(&opening(&record, message.clone())) && stated(&over));
        assert_eq!(over.metadata.unwrap()["trace_id"], "x");
        record.is_repeatable = false;
        assert_eq!(opening(&record, message).metadata, None);
        assert!(!stated(&summary(&record).unwrap()));
    }
}

//! The first event of a task: the task itself.

use caipe_a2a::model::{Message, Task, TaskState, TaskStatus};
use caipe_store::TaskRecord;

/// A task as it is before anything happened: submitted, with the message that began it.
pub fn opening(record: &TaskRecord, message: Message) -> Task {
    Task {
        id: record.id.clone(),
        context_id: record.context.clone(),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: vec![message.within(record.id.clone(), record.context.clone())],
        metadata: None,
    }
}

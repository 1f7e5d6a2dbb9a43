//! Publishes the steps of a task to its event log.

use std::sync::Arc;

use caipe_a2a::model::{
    Artifact, Content, Event, Message, Part, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use caipe_a2a::server::TaskLog;
use serde_json::json;
use uuid::Uuid;

use super::behaviour::{Product, Step};

const ARTIFACT: &str = "artifact-1";

#[derive(Debug, Clone)]
pub(super) struct Ids {
    pub(super) task: String,
    pub(super) context: String,
}

/// Publishes the steps until the task ends or is canceled.
pub(super) async fn run(log: Arc<TaskLog>, ids: Ids, steps: Vec<Step>) {
    for step in steps {
        if let Step::Wait(time) = step {
            tokio::time::sleep(time).await;
        }
        if log.state().is_terminal() {
            return;
        }
        if let Some(event) = event(&ids, step) {
            log.push(event);
        }
    }
    if log.state().is_terminal() {
        log.close();
    }
}

fn event(ids: &Ids, step: Step) -> Option<Event> {
    match step {
        Step::Wait(_) => None,
        Step::Status(state, text) => Some(status(ids, state, text).into()),
        Step::Artifact(product) => Some(artifact(ids, part(product), false, true)),
        Step::Chunk { text, append, last } => Some(artifact(ids, Part::text(text), append, last)),
    }
}

pub(super) fn status(ids: &Ids, state: TaskState, text: Option<&str>) -> TaskStatusUpdateEvent {
    let message = text.map(|text| Message::agent(Uuid::new_v4(), text).within(&ids.task, &ids.context));
    TaskStatusUpdateEvent {
        task_id: ids.task.clone(),
        context_id: ids.context.clone(),
        status: TaskStatus { message, ..TaskStatus::new(state) },
        metadata: None,
    }
}

fn artifact(ids: &Ids, part: Part, append: bool, last_chunk: bool) -> Event {
    Event::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: ids.task.clone(),
        context_id: ids.context.clone(),
        artifact: Artifact::new(ARTIFACT, "result", vec![part]),
        append,
        last_chunk,
        metadata: None,
    })
}

fn part(product: Product) -> Part {
    let file = |content: Content| Part {
        filename: Some("output.txt".to_owned()),
        media_type: Some("text/plain".to_owned()),
        ..content.into()
    };
    match product {
        Product::Text => Part::text("Generated text content"),
        Product::Data => Part::data(json!({"key": "value", "count": 42})),
        // "Generated file content"
        Product::File => file(Content::Raw("R2VuZXJhdGVkIGZpbGUgY29udGVudA==".to_owned())),
        Product::FileUrl => file(Content::Url("https://example.com/output.txt".to_owned())),
    }
}

//! The task that results from its events.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::log_entry::LoggedEvent;
use super::text_piece::{TextPiece, TextTemplate};
use crate::model::{Event, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, extend_metadata};

/// A task, with the index of each artifact.
#[derive(Debug, Clone)]
pub(super) struct Projection {
    task: Task,
    indexes: HashMap<String, usize>,
    /// The artifact that the last event added text to. It has the labels of this template.
    growing: Option<(Arc<TextTemplate>, usize)>,
}

impl Projection {
    pub(super) fn new(task: Task) -> Self {
        let indexes = task.artifacts.iter().enumerate();
        let indexes = indexes.map(|(index, artifact)| (artifact.artifact_id.clone(), index)).collect();
        Self { task, indexes, growing: None }
    }

    pub(super) const fn task(&self) -> &Task {
        &self.task
    }

    pub(super) fn into_task(self) -> Task {
        self.task
    }

    /// Applies one event. The cost depends on the event's size only.
    pub(super) fn apply(&mut self, logged: &LoggedEvent) {
        match (logged.as_piece(), logged.as_whole()) {
            (Some(piece), _) => self.apply_piece(piece, logged.at()),
            (None, Some(Event::Task(task))) => *self = Self::new((**task).clone()),
            (None, _) => {
                self.growing = None;
                summarize(&mut self.task, logged);
                if let Some(Event::ArtifactUpdate(update)) = logged.as_whole() {
                    self.apply_artifact(update);
                }
            }
        }
    }

    fn apply_piece(&mut self, piece: &TextPiece, at: Timestamp) {
        if let Some((template, index)) = &self.growing
            && Arc::ptr_eq(template, piece.template())
            && let Some(artifact) = self.task.artifacts.get_mut(*index)
        {
            return artifact.append_text(piece.text());
        }
        mark_working(&mut self.task, at);
        let update = piece.update();
        let index = self.indexes.get(&update.artifact.artifact_id).copied();
        if let Some((index, artifact)) =
            index.and_then(|index| Some((index, self.task.artifacts.get_mut(index)?)))
        {
            artifact.append_text(piece.text());
            artifact.append_labels(&update.artifact);
            self.growing = Some((Arc::clone(piece.template()), index));
        } else if let Event::ArtifactUpdate(update) = piece.event() {
            self.apply_artifact(&update);
        }
    }

    /// A chunk of an unknown artifact starts it, as peers do.
    fn apply_artifact(&mut self, update: &TaskArtifactUpdateEvent) {
        let id = &update.artifact.artifact_id;
        let known = self.indexes.get(id).and_then(|index| self.task.artifacts.get_mut(*index));
        match known {
            Some(artifact) if update.append => artifact.append(&update.artifact),
            Some(artifact) => artifact.clone_from(&update.artifact),
            None => {
                self.indexes.insert(id.clone(), self.task.artifacts.len());
                self.task.artifacts.push(update.artifact.clone());
            }
        }
    }
}

/// Applies one event to a task, but leaves its artifacts unchanged.
pub(super) fn summarize(task: &mut Task, logged: &LoggedEvent) {
    match logged.as_whole() {
        Some(Event::Task(new)) => {
            *task = Task { artifacts: std::mem::take(&mut task.artifacts), ..without_artifacts(new) };
        }
        Some(Event::Message(message)) => {
            task.history.push((**message).clone());
            // The task waited for this message.
            if message.role == Role::User && task.status.state.is_interrupted() {
                works_since(task, logged.at());
            }
        }
        Some(Event::StatusUpdate(update)) => {
            task.status = update.status.clone();
            extend_metadata(&mut task.metadata, update.metadata.as_ref());
        }
        // A task that produces artifacts is working, even without a status that says so.
        Some(Event::ArtifactUpdate(_)) | None => mark_working(task, logged.at()),
    }
}

/// A task without its artifacts.
pub(super) fn without_artifacts(task: &Task) -> Task {
    let Task { id, context_id, status, artifacts: _, history, metadata } = task;
    Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: status.clone(),
        artifacts: Vec::new(),
        history: history.clone(),
        metadata: metadata.clone(),
    }
}

/// Shows a submitted task as working.
pub(super) fn mark_working(task: &mut Task, at: Timestamp) {
    if task.status.state == TaskState::Submitted {
        works_since(task, at);
    }
}

fn works_since(task: &mut Task, at: Timestamp) {
    task.status = TaskStatus { timestamp: Some(at), ..TaskStatus::new(TaskState::Working) };
}

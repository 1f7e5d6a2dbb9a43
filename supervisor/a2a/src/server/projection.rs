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

    pub(super) fn mark_working(&mut self, at: Timestamp) {
        if self.task.status.state == TaskState::Submitted {
            self.works_since(at);
        }
    }

    fn works_since(&mut self, at: Timestamp) {
        self.task.status = TaskStatus { timestamp: Some(at), ..TaskStatus::new(TaskState::Working) };
    }

    /// Applies one event. The cost depends on the event's size only.
    pub(super) fn apply(&mut self, logged: &LoggedEvent) {
        let event = match (logged.as_piece(), logged.as_whole()) {
            (Some(piece), _) => return self.apply_piece(piece, logged.at()),
            (None, Some(event)) => event,
            (None, None) => return,
        };
        self.growing = None;
        match event {
            Event::Task(task) => *self = Self::new((**task).clone()),
            Event::Message(message) => {
                self.task.history.push((**message).clone());
                // The task waited for this message.
                if message.role == Role::User && self.task.status.state.is_interrupted() {
                    self.works_since(logged.at());
                }
            }
            Event::StatusUpdate(update) => {
                self.task.status = update.status.clone();
                extend_metadata(&mut self.task.metadata, update.metadata.as_ref());
            }
            Event::ArtifactUpdate(update) => self.apply_artifact(update, logged.at()),
        }
    }

    fn apply_piece(&mut self, piece: &TextPiece, at: Timestamp) {
        if let Some((template, index)) = &self.growing
            && Arc::ptr_eq(template, piece.template())
            && let Some(artifact) = self.task.artifacts.get_mut(*index)
        {
            return artifact.append_text(piece.text());
        }
        let update = piece.update();
        let index = self.indexes.get(&update.artifact.artifact_id).copied();
        if let Some((index, artifact)) =
            index.and_then(|index| Some((index, self.task.artifacts.get_mut(index)?)))
        {
            artifact.append_text(piece.text());
            artifact.append_labels(&update.artifact);
            self.growing = Some((Arc::clone(piece.template()), index));
            self.mark_working(at);
        } else if let Event::ArtifactUpdate(update) = piece.event() {
            self.apply_artifact(&update, at);
        }
    }

    /// A chunk of an unknown artifact starts it, as peers do. A task that produces artifacts is working, even without a
    /// status that says so.
    fn apply_artifact(&mut self, update: &TaskArtifactUpdateEvent, at: Timestamp) {
        self.mark_working(at);
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

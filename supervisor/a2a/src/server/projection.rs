//! A task as its events make it, kept up to date event by event.

use std::collections::HashMap;

use jiff::Timestamp;

use super::logged::LoggedEvent;
use crate::model::{Event, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus};

/// A task and where each of its artifacts is.
#[derive(Debug, Clone)]
pub(super) struct Projection {
    task: Task,
    places: HashMap<String, usize>,
}

impl Projection {
    pub(super) fn new(task: Task) -> Self {
        let places = task.artifacts.iter().enumerate();
        let places = places.map(|(place, artifact)| (artifact.artifact_id.clone(), place)).collect();
        Self { task, places }
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

    /// Applies one event. Costs the event's own size, however long the task has been growing.
    pub(super) fn apply(&mut self, logged: &LoggedEvent) {
        match logged.event() {
            Event::Task(task) => *self = Self::new((**task).clone()),
            Event::Message(message) => {
                self.task.history.push((**message).clone());
                // It was what the task waited for.
                if message.role == Role::User && self.task.status.state.is_interrupted() {
                    self.works_since(logged.at());
                }
            }
            Event::StatusUpdate(update) => {
                self.task.status = update.status.clone();
                if let Some(metadata) = &update.metadata {
                    let known = self.task.metadata.get_or_insert_default();
                    known.extend(metadata.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
            }
            Event::ArtifactUpdate(update) => self.apply_artifact(update, logged.at()),
        }
    }

    /// A chunk for an artifact that nobody began begins it: peers do that. Whoever makes an artifact is at
    /// work, even where no status said so.
    fn apply_artifact(&mut self, update: &TaskArtifactUpdateEvent, at: Timestamp) {
        self.mark_working(at);
        let id = &update.artifact.artifact_id;
        let known = self.places.get(id).and_then(|place| self.task.artifacts.get_mut(*place));
        match known {
            Some(artifact) if update.append => artifact.append(&update.artifact),
            Some(artifact) => artifact.clone_from(&update.artifact),
            None => {
                self.places.insert(id.clone(), self.task.artifacts.len());
                self.task.artifacts.push(update.artifact.clone());
            }
        }
    }
}

//! What an SDK showed of a task, whichever version's shapes it has.

use anyhow::{Context, Result};
use caipe_tests::stream::parts_text;
use serde_json::Value;

/// An event of a stream, or the answer to a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    Task(Task),
    Status(String, String),
    Artifact(Artifact, bool),
    Message(String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) state: String,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) history: usize,
}

/// An artifact, or a piece of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Artifact {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Event {
    /// Reads an event of 1.0, which is wrapped, or of 0.3, which has a `kind`.
    pub(crate) fn read(event: &Value) -> Result<Self> {
        let (name, body) = match event["kind"].as_str() {
            Some(kind) => (kind, event),
            None => event
                .as_object()
                .and_then(|map| map.iter().next())
                .map(|(name, body)| (name.as_str(), body))
                .context("an event without anything in it")?,
        };
        let append = body["append"].as_bool().unwrap_or_default();
        Ok(match name {
            "task" => Self::Task(Task::read(body)),
            "status-update" | "statusUpdate" => {
                Self::Status(state(&body["status"]["state"]), parts_text(&body["status"]["message"]["parts"]))
            }
            "artifact-update" | "artifactUpdate" => Self::Artifact(Artifact::read(&body["artifact"]), append),
            "message" => Self::Message(parts_text(&body["parts"])),
            other => anyhow::bail!("an event of an unknown kind: {other}"),
        })
    }
}

impl Task {
    /// Reads a task of either version.
    pub(crate) fn read(task: &Value) -> Self {
        let text = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
        let list = |key: &str| task[key].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            id: text("id"),
            context: text("contextId"),
            state: state(&task["status"]["state"]),
            artifacts: list("artifacts").iter().map(Artifact::read).collect(),
            history: list("history").len(),
        }
    }

    /// The text of the artifact with this name; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.artifacts.iter().find(|artifact| artifact.name == name).map_or("", |artifact| &artifact.text)
    }

    /// The task that these events of a stream make, put together as the protocol says: a piece is appended to the
    /// artifact with its id, or begins one.
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut whole = Self::default();
        for event in events {
            match event {
                Event::Task(task) => whole = task.clone(),
                Event::Status(state, _) => whole.state.clone_from(state),
                Event::Artifact(piece, append) => whole.add(piece, *append),
                Event::Message(_) => {}
            }
        }
        whole
    }

    fn add(&mut self, piece: &Artifact, append: bool) {
        match self.artifacts.iter_mut().find(|artifact| artifact.id == piece.id) {
            Some(artifact) if append => artifact.text.push_str(&piece.text),
            Some(artifact) => *artifact = piece.clone(),
            None => self.artifacts.push(piece.clone()),
        }
    }
}

impl Artifact {
    fn read(artifact: &Value) -> Self {
        let text = |key: &str| artifact[key].as_str().unwrap_or_default().to_owned();
        Self { id: text("artifactId"), name: text("name"), text: parts_text(&artifact["parts"]) }
    }
}

/// The state as 0.3 calls it.
fn state(state: &Value) -> String {
    let state = state.as_str().unwrap_or("none");
    state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

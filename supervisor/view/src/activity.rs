//! The activity extension: the step that a notification reports, as data beside its text.
//!
//! A notification's metadata has it under [`EXTENSION`]. CAIPE's agents write it; the supervisor and every client read it.

use caipe_a2a::model::Metadata;
use serde::{Deserialize, Serialize};

/// The URI of the extension, and the key in the metadata.
pub const EXTENSION: &str = "https://caipe.io/a2a/extensions/activity/v1";

/// Longest name of an agent, a tool or a call, in bytes; a longer one is cut.
const NAME_BYTES: usize = 256;
/// Most agents of a path.
const DEPTH: usize = 16;

/// One step of an agent or a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// The kind of step.
    pub event: ActivityEvent,
    /// The agent that is called, or the agent whose tool is called; absent for a tool of the sender itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The status of the call.
    #[serde(default)]
    pub status: ActivityStatus,
    /// The agents from the sender down to the one that makes the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityEvent {
    /// An agent was called.
    AgentStart,
    /// The call of an agent ended.
    AgentEnd,
    /// A tool was called.
    ToolStart,
    /// The call of a tool ended.
    ToolEnd,
    ToolOutput,
    /// A run began, and every call that it can make may be repeated: a client that loses the run may start it again. In the
    /// metadata of the status `working`.
    RepeatableRun,
    /// A kind of a newer release.
    #[serde(other)]
    Unknown,
}

impl ActivityEvent {
    /// Whether the step is one of a tool.
    pub const fn is_of_tool(self) -> bool {
        matches!(self, Self::ToolStart | Self::ToolEnd | Self::ToolOutput)
    }
}

/// The status of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityStatus {
    Running,
    Completed,
    Failed,
    Canceled,
    /// Absent, or one of a newer release.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Activity {
    /// A running step of an agent.
    pub fn agent(event: ActivityEvent, agent: &str, call: &str) -> Self {
        let status = ActivityStatus::Running;
        let (agent, call_id) = (Some(agent.to_owned()), Some(call.to_owned()));
        Self { event, agent, tool: None, call_id, status, path: Vec::new() }
    }

    /// A running step of a tool.
    pub fn tool(event: ActivityEvent, agent: Option<&str>, tool: &str, call: &str) -> Self {
        let status = ActivityStatus::Running;
        let (agent, tool) = (agent.map(ToOwned::to_owned), Some(tool.to_owned()));
        Self { event, agent, tool, call_id: Some(call.to_owned()), status, path: Vec::new() }
    }

    /// A run whose calls may all be repeated.
    pub const fn repeatable_run() -> Self {
        let (event, status) = (ActivityEvent::RepeatableRun, ActivityStatus::Running);
        Self { event, agent: None, tool: None, call_id: None, status, path: Vec::new() }
    }

    /// Whether the metadata of a task says so.
    pub fn is_repeatable_run(metadata: Option<&Metadata>) -> bool {
        Self::read(metadata).is_some_and(|activity| activity.event == ActivityEvent::RepeatableRun)
    }

    /// The same step with another status.
    #[must_use]
    pub fn with_status(self, status: ActivityStatus) -> Self {
        Self { status, ..self }
    }

    /// Adds the step to a notification's metadata.
    pub fn write(&self, metadata: &mut Metadata) {
        // Serialization fails only for an unsupported type.
        metadata.insert(EXTENSION.to_owned(), serde_json::to_value(self).unwrap_or_default());
    }

    /// The step in a notification's metadata, with names and depth cut to their limits; `None` without a readable one.
    pub fn read(metadata: Option<&Metadata>) -> Option<Self> {
        let mut activity = Self::deserialize(metadata?.get(EXTENSION)?).ok()?;
        activity.path.truncate(DEPTH);
        let names = [&mut activity.agent, &mut activity.tool, &mut activity.call_id].into_iter().flatten();
        for name in names.chain(&mut activity.path) {
            name.truncate(name.floor_char_boundary(NAME_BYTES));
        }
        Some(activity)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reader_gets_what_the_writer_wrote() {
        let agent = Activity::agent(ActivityEvent::AgentStart, "jira", "c1");
        let tool = Activity::tool(ActivityEvent::ToolEnd, Some("jira"), "search", "c2");
        let tool = Activity { path: vec!["jira".to_owned()], ..tool.with_status(ActivityStatus::Failed) };
        for activity in [agent, tool, Activity::tool(ActivityEvent::ToolOutput, None, "wait", "c3")] {
            let mut metadata = Metadata::new();
            activity.write(&mut metadata);
            assert_eq!(Activity::read(Some(&metadata)), Some(activity));
        }
    }

    #[test]
    fn the_wire_form_is_stable() {
        let mut metadata = Metadata::new();
        let activity = Activity::tool(ActivityEvent::ToolEnd, Some("jira"), "search", "c2");
        activity.with_status(ActivityStatus::Completed).write(&mut metadata);
        let expected = json!({"event": "tool_end", "agent": "jira", "tool": "search", "callId": "c2", "status": "completed"});
        assert_eq!(metadata[EXTENSION], expected);
    }

    #[test]
    fn names_are_cut_and_unknown_words_are_accepted() {
        let read = |value| Activity::read(Some(&Metadata::from_iter([(EXTENSION.to_owned(), value)])));
        let long =
            read(json!({"event": "tool_start", "tool": "ü".repeat(300), "path": vec!["a"; 40]})).unwrap();
        assert_eq!((long.tool.unwrap().len(), long.path.len()), (256, 16));
        let newer = read(json!({"event": "tea_break", "status": "brewing"})).unwrap();
        assert_eq!((newer.event, newer.status), (ActivityEvent::Unknown, ActivityStatus::Unknown));
        assert_eq!(read(json!("tool_start")), None);
        assert_eq!(Activity::read(None), None);
    }
}

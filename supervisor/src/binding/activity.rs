//! What a notification says in its text, as data, for clients that read no signs.

use caipe_a2a::model::Metadata;
use caipe_engine::{AgentName, CallEnd};
use serde_json::{Map, Value};

/// The extension under which a notification's metadata carries its facts.
pub const EXTENSION: &str = "https://caipe.io/a2a/extensions/activity/v1";

/// The kinds of activity.
#[derive(Debug, Clone, Copy)]
pub(super) enum ActivityKind {
    AgentStart,
    AgentEnd,
    ToolStart,
    ToolEnd,
    ToolOutput,
}

/// One step in the tree of agents and calls.
#[derive(Debug)]
pub(super) struct Activity<'a> {
    kind: ActivityKind,
    agent: Option<&'a str>,
    tool: Option<&'a str>,
    call: &'a str,
    status: &'static str,
    path: &'a [AgentName],
}

impl<'a> Activity<'a> {
    pub(super) fn agent(kind: ActivityKind, agent: &'a str, call: &'a str) -> Self {
        Self { kind, agent: Some(agent), tool: None, call, status: "running", path: &[] }
    }

    pub(super) fn tool(kind: ActivityKind, agent: Option<&'a str>, tool: &'a str, call: &'a str) -> Self {
        Self { kind, agent, tool: Some(tool), call, status: "running", path: &[] }
    }

    pub(super) fn ended(mut self, end: CallEnd) -> Self {
        self.status = match end {
            CallEnd::Completed => "completed",
            CallEnd::Failed => "failed",
            CallEnd::Canceled => "canceled",
        };
        self
    }

    /// The agents on the way down from who speaks to whose step this is.
    pub(super) fn within(mut self, path: &'a [AgentName]) -> Self {
        self.path = path;
        self
    }

    /// Adds it to an artifact's metadata.
    pub(super) fn write(self, metadata: &mut Metadata) {
        let event = match self.kind {
            ActivityKind::AgentStart => "agent_start",
            ActivityKind::AgentEnd => "agent_end",
            ActivityKind::ToolStart => "tool_start",
            ActivityKind::ToolEnd => "tool_end",
            ActivityKind::ToolOutput => "tool_output",
        };
        let members = [
            ("event", Some(event)),
            ("agent", self.agent),
            ("tool", self.tool),
            ("callId", Some(self.call)),
            ("status", Some(self.status)),
        ];
        let mut facts: Map<String, Value> =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        if !self.path.is_empty() {
            facts.insert("path".to_owned(), self.path.iter().map(AgentName::as_str).collect());
        }
        metadata.insert(EXTENSION.to_owned(), Value::Object(facts));
    }
}

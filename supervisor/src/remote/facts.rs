//! What a notification says as data: the activity extension, read (`crate::binding` writes it). Pure.

use caipe_a2a::model::Metadata;
use caipe_engine::{AgentName, CallEnd, CallId};
use serde::Deserialize;

use crate::binding::ACTIVITY_EXTENSION;

/// Longest name of an agent, a tool or a call, in bytes.
const NAME_BYTES: usize = 256;
/// Most agents on the way down to whose step it is.
const DEPTH: usize = 16;

/// One step in the tree of agents and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The step.
    pub(super) fact: Fact,
    /// The call.
    pub(super) call: CallId,
    /// Whose tool it is, or which agent is asked.
    pub(super) agent: Option<AgentName>,
    /// The agents on the way down from who speaks to whose step it is.
    pub(super) path: Vec<AgentName>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    ToolStarted { tool: String },
    ToolFinished { tool: String, end: CallEnd },
    ToolOutput,
    AgentStarted { agent: AgentName },
    AgentFinished { agent: AgentName, end: CallEnd },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    event: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    path: Vec<String>,
}

impl Facts {
    /// The facts in an artifact's metadata, if there are any that can be read.
    pub(super) fn of(metadata: Option<&Metadata>) -> Option<Self> {
        let wire: Wire = Deserialize::deserialize(metadata?.get(ACTIVITY_EXTENSION)?).ok()?;
        let end = match wire.status.as_deref() {
            Some("failed") => CallEnd::Failed,
            Some("canceled") => CallEnd::Canceled,
            _ => CallEnd::Completed,
        };
        let tool = wire.tool.map(bounded).filter(|tool| !tool.is_empty());
        let agent = wire.agent.map(|agent| AgentName::new(&bounded(agent)));
        let fact = match wire.event.as_str() {
            "tool_start" => Fact::ToolStarted { tool: tool? },
            "tool_end" => Fact::ToolFinished { tool: tool?, end },
            "tool_output" => Fact::ToolOutput,
            "agent_start" => Fact::AgentStarted { agent: agent.clone()? },
            "agent_end" => Fact::AgentFinished { agent: agent.clone()?, end },
            _ => return None,
        };
        let path = wire.path.into_iter().take(DEPTH).map(|agent| AgentName::new(&bounded(agent))).collect();
        Some(Self { fact, call: bounded(wire.call_id?), agent, path })
    }
}

fn bounded(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    name
}

//! The activity extension of a notification, in the words of the engine. Pure.

use caipe_a2a::model::Metadata;
use caipe_engine::{AgentName, CallEnd, CallId};
use caipe_view::activity::{Activity, ActivityEvent, ActivityStatus};

/// One step in the tree of agents and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The step.
    pub(super) fact: Fact,
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

impl Facts {
    /// The facts in an artifact's metadata, if there are any that can be read.
    pub(super) fn of(metadata: Option<&Metadata>) -> Option<Self> {
        let Activity { event, agent, tool, call_id, status, path } = Activity::read(metadata)?;
        let end = match status {
            ActivityStatus::Failed => CallEnd::Failed,
            ActivityStatus::Canceled => CallEnd::Canceled,
            _ => CallEnd::Completed,
        };
        let tool = tool.filter(|tool| !tool.is_empty());
        let agent = agent.map(|agent| AgentName::new(&agent));
        let fact = match event {
            ActivityEvent::ToolStart => Fact::ToolStarted { tool: tool? },
            ActivityEvent::ToolEnd => Fact::ToolFinished { tool: tool?, end },
            ActivityEvent::ToolOutput => Fact::ToolOutput,
            ActivityEvent::AgentStart => Fact::AgentStarted { agent: agent.clone()? },
            ActivityEvent::AgentEnd => Fact::AgentFinished { agent: agent.clone()?, end },
            ActivityEvent::Unknown => return None,
        };
        let path = path.iter().map(|agent| AgentName::new(agent)).collect();
        Some(Self { fact, call: call_id?, agent, path })
    }
}

//! Converts the activity extension of a notification to an event of the engine. Pure.

use caipe_a2a::model::Metadata;
use caipe_engine::{AgentName, CallEnd, CallId, EventKind};
use caipe_view::activity::{Activity, ActivityEvent, ActivityStatus};

/// One step in the tree of agents and calls.
#[derive(Debug)]
pub(super) struct Facts {
    /// The start or end of the call, without output and text; `None` for an output of the call.
    pub(super) step: Option<EventKind>,
    pub(super) call: CallId,
    /// The agent whose tool is called, or the agent that is called.
    pub(super) agent: Option<AgentName>,
    /// The agents from the sender down to the one that makes the step.
    pub(super) path: Vec<AgentName>,
}

impl Facts {
    /// The facts in an artifact's metadata; `None` if there are none or they are unreadable.
    pub(super) fn of(metadata: Option<&Metadata>) -> Option<Self> {
        let Activity { event, agent, tool, call_id, status, path } = Activity::read(metadata)?;
        let end = match status {
            ActivityStatus::Failed => CallEnd::Failed,
            ActivityStatus::Canceled => CallEnd::Canceled,
            _ => CallEnd::Completed,
        };
        let tool = tool.filter(|tool| !tool.is_empty());
        let agent = agent.map(|agent| AgentName::new(&agent));
        let call = call_id?;
        let of = call.clone();
        let step = match event {
            ActivityEvent::ToolStart => Some(EventKind::ToolStarted { call: of, tool: tool? }),
            ActivityEvent::ToolEnd => {
                Some(EventKind::ToolFinished { call: of, tool: tool?, end, output: None })
            }
            ActivityEvent::ToolOutput => None,
            ActivityEvent::AgentStart => {
                Some(EventKind::DelegationStarted { call: of, agent: agent.clone()? })
            }
            ActivityEvent::AgentEnd => {
                let (agent, text) = (agent.clone()?, String::new());
                Some(EventKind::DelegationFinished { call: of, agent, end, text })
            }
            ActivityEvent::RepeatableRun | ActivityEvent::Unknown => return None,
        };
        let path = path.iter().map(|agent| AgentName::new(agent)).collect();
        Some(Self { step, call, agent, path })
    }
}

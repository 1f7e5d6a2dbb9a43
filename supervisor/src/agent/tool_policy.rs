//! The tools that an agent may call by itself, after an approval, or not at all. Pure.

use std::collections::BTreeSet;

use caipe_crds::rendered::RenderedAgent;
use caipe_crds::resource::agent::AgentMode;
use caipe_engine::name_matches;

use crate::builtin::{OfferedTool, ToolClass};

/// What an agent may do by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPolicy {
    pub mode: AgentMode,
    /// Patterns of tools that only read.
    pub read_tools: Vec<String>,
    /// Patterns of tools that need no approval.
    pub auto_approve: Vec<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The tool is not offered, and a call is refused.
    Refused,
    Runs,
    Asks,
}

/// The tools of an agent under a policy, by their names for the model.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PermittedTools {
    pub(super) offered: BTreeSet<String>,
    /// Those of the offered ones that a person must approve.
    pub(super) asks: Vec<String>,
}

impl From<&RenderedAgent> for ToolPolicy {
    fn from(agent: &RenderedAgent) -> Self {
        let (read_tools, auto_approve) = (agent.read_tools.clone(), agent.auto_approve.clone());
        Self { mode: agent.mode, read_tools, auto_approve }
    }
}

impl ToolPolicy {
    /// The policy of an agent whose tools are all this program's own.
    pub fn unrestricted() -> Self {
        let (mode, auto_approve) = (AgentMode::Full, vec!["*".to_owned()]);
        Self { mode, read_tools: Vec::new(), auto_approve }
    }

    pub(super) fn permitted<'a>(&self, tools: impl Iterator<Item = &'a OfferedTool>) -> PermittedTools {
        let mut permitted = PermittedTools::default();
        for tool in tools {
            let matches = |patterns: &[String]| {
                patterns.iter().any(|pattern| tool.names.iter().any(|name| name_matches(pattern, name)))
            };
            let class = if matches(&self.read_tools) { ToolClass::Read } else { tool.class };
            match access(self.mode, class, matches(&self.auto_approve)) {
                Access::Refused => continue,
                Access::Runs => {}
                Access::Asks => permitted.asks.push(tool.spec.name.clone()),
            }
            permitted.offered.insert(tool.spec.name.clone());
        }
        permitted
    }

    /// What the agent may do, for its model.
    pub(super) fn explained(&self) -> &'static str {
        match self.mode {
            AgentMode::ReadOnly => {
                "You may only read: tools that change something are not offered to you. If a request needs one, say that you may \
                 not do it."
            }
            AgentMode::Ask => {
                "Tools that only read run at once. Before any other call, the system asks a person for approval: make the call \
                 instead of asking for permission yourself. If the person rejects it, say so, and do not try another way."
            }
            AgentMode::Full => {
                "Before a call that deletes, merges, revokes or otherwise destroys, the system asks a person for approval: make the \
                 call instead of asking for permission yourself. If the person rejects it, say so, and do not try another way."
            }
        }
    }
}

/// `approved` means that the resource permits the tool without approval.
fn access(mode: AgentMode, class: ToolClass, approved: bool) -> Access {
    match (mode, class) {
        (_, ToolClass::Read) => Access::Runs,
        (AgentMode::ReadOnly, _) => Access::Refused,
        _ if approved => Access::Runs,
        (AgentMode::Full, ToolClass::Write) => Access::Runs,
        _ => Access::Asks,
    }
}

#[cfg(test)]
#[path = "tool_policy_tests.rs"]
mod tests;

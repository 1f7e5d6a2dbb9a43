//! The tools that an agent may call by itself, after an approval, or not at all. Pure.

use std::collections::BTreeSet;

use caipe_crds::rendered::RenderedAgent;
use caipe_crds::resource::agent::AgentMode;
use caipe_crds::resource::tool_domains;
use caipe_engine::{Verification, name_matches};

use crate::builtin::{OfferedTool, SHELL_EXEC, ToolClass, WEB_FETCH};

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
            match access(self.mode, self.class(tool), is_one_of(tool, &self.auto_approve)) {
                Access::Refused => continue,
                Access::Runs => {}
                Access::Asks => permitted.asks.push(tool.spec.name.clone()),
            }
            permitted.offered.insert(tool.spec.name.clone());
        }
        permitted
    }

    fn class(&self, tool: &OfferedTool) -> ToolClass {
        if is_one_of(tool, &self.read_tools) { ToolClass::Read } else { tool.class }
    }

    /// What changes something, and what verifies it, among the offered tools.
    pub(super) fn verification<'a>(
        &self,
        declared: &tool_domains::Verification,
        offered: impl Iterator<Item = &'a OfferedTool>,
    ) -> Verification {
        let mut tools = Verification::default();
        for tool in offered {
            let name = tool.spec.name.clone();
            let verifies =
                if declared.tools.is_empty() { name == SHELL_EXEC } else { is_one_of(tool, &declared.tools) };
            if verifies {
                tools.verifies.insert(name);
            } else if self.class(tool) != ToolClass::Read {
                tools.changes.insert(name);
            } else if declared.tools.is_empty() && tool.is_of_server() && name != WEB_FETCH {
                tools.reads.insert(name);
            }
        }
        tools
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

/// Whether one of the patterns matches one of the names of a tool.
fn is_one_of(tool: &OfferedTool, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| tool.names.iter().any(|name| name_matches(pattern, name)))
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

//! All that a home is made of; two that are equal need no move. Pure.

use std::time::Duration;

use caipe_crds::RenderedSpec;
use caipe_crds::rendered::{Home, Limits, ModelChoice, RenderedAgent};
use caipe_crds::resource::status::AgentPlacement;
use caipe_engine::AgentName;

use crate::agents::shown;
use crate::config::Scripts;

/// All that an agent's home is made of.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agents) struct Blueprint {
    /// The agent.
    pub(in crate::agents) agent: RenderedAgent,
    /// What it shares with others.
    pub(in crate::agents) shared: Shared,
}

/// What of the rest of a specification a home is made of.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agents) enum Shared {
    /// In this process.
    InProcess {
        /// Bounds of its runs.
        limits: Limits,
        /// Whether its words are told as they come.
        streaming: bool,
        /// The models that it uses where it has none of its own, or its own fails.
        models: Vec<ModelChoice>,
        /// What scripted models answer from.
        scripts: Scripts,
    },
    /// Behind A2A.
    Remote {
        /// How long it may be silent.
        silence: Duration,
    },
}

impl Blueprint {
    /// The home that a specification gives to an agent.
    pub(in crate::agents) fn new(spec: &RenderedSpec, agent: &RenderedAgent, scripts: &Scripts) -> Self {
        let shared = match agent.home {
            Home::InProcess {} => Shared::InProcess {
                limits: spec.limits.clone(),
                streaming: spec.streaming,
                models: spec.models.clone(),
                scripts: scripts.clone(),
            },
            Home::Remote { .. } => {
                Shared::Remote { silence: Duration::from_millis(spec.limits.agent_timeout_ms) }
            }
        };
        Self { agent: agent.clone(), shared }
    }

    /// Whose home it is.
    pub(in crate::agents) fn name(&self) -> AgentName {
        AgentName::new(&self.agent.name)
    }

    /// Where it is.
    pub(in crate::agents) const fn placement(&self) -> AgentPlacement {
        match self.agent.home {
            Home::InProcess {} => AgentPlacement::InProcess,
            Home::Remote { .. } => AgentPlacement::Remote,
        }
    }

    /// Where a remote one answers, for people: without credentials.
    pub(in crate::agents) fn endpoint(&self) -> Option<String> {
        let Home::Remote { url, .. } = &self.agent.home else { return None };
        url.parse().ok().map(|url| shown(&url))
    }

    /// Whether it is somebody else's program, with nothing that this one could run.
    pub(in crate::agents) fn is_foreign(&self) -> bool {
        self.agent.system_prompt.is_empty() && self.agent.mcp.is_empty()
    }

    /// Whether both have the same tools from the same servers: then one set of servers does for both.
    pub(in crate::agents) fn shares_tools_with(&self, other: &Self) -> bool {
        let times = |limits: &Limits| (limits.mcp_start_timeout_ms, limits.tool_timeout_ms);
        let (Shared::InProcess { limits: mine, .. }, Shared::InProcess { limits: theirs, .. }) =
            (&self.shared, &other.shared)
        else {
            return false;
        };
        let (a, b) = (&self.agent, &other.agent);
        (&a.mcp, &a.tools, &a.secrets_dir) == (&b.mcp, &b.tools, &b.secrets_dir)
            && times(mine) == times(theirs)
    }

    /// Whether both are the same remote agent, asked in the same way.
    pub(in crate::agents) fn is_same_peer_as(&self, other: &Self) -> bool {
        let (a, b) = (&self.agent, &other.agent);
        self.placement() == AgentPlacement::Remote
            && (&a.home, &a.secrets_dir, &self.shared) == (&b.home, &b.secrets_dir, &other.shared)
    }
}

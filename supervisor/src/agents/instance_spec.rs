//! Everything that an agent instance is made from; equal specs need no new instance. Pure.

use std::time::Duration;

use caipe_crds::RenderedSpec;
use caipe_crds::rendered::{Budget, Budgets, Limits, Memory, ModelChoice, Placement, RenderedAgent};
use caipe_crds::resource::agent_state::AgentPlacement;
use caipe_crds::resource::settings::Condensation;
use caipe_engine::AgentName;

use crate::config::Scripts;
use crate::remote::displayed_url;

/// Everything that an agent instance is made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InstanceSpec {
    pub(super) agent: RenderedAgent,
    pub(super) settings: PlacementSettings,
}

/// The general settings that an instance depends on, by its placement.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few, and most are of the larger variant")]
pub(super) enum PlacementSettings {
    InProcess {
        limits: Limits,
        /// Those of tools, and prices.
        budgets: Budgets,
        condensation: Option<Condensation>,
        streaming: bool,
        /// Whether the spec has skills.
        has_skills: bool,
        /// How it remembers people, if it does.
        memory: Option<Memory>,
        /// The models that it uses where it has none of its own, or its own fails.
        models: Vec<ModelChoice>,
        scripts: Scripts,
    },
    Remote {
        /// How long it may send nothing.
        silence: Duration,
        /// How this process remembers people for it, if it does.
        memory: Option<Memory>,
    },
}

impl InstanceSpec {
    pub(super) fn new(spec: &RenderedSpec, agent: &RenderedAgent, scripts: &Scripts) -> Self {
        let settings = match agent.placement {
            Placement::InProcess {} => PlacementSettings::InProcess {
                limits: spec.limits.clone(),
                condensation: spec.condensation.clone(),
                budgets: Budgets { run: Budget::default(), ..spec.budgets.clone() },
                streaming: spec.streaming,
                has_skills: spec.skills.is_some(),
                memory: agent.memory.as_ref().and(spec.memory.clone()),
                models: spec.models.clone(),
                scripts: scripts.clone(),
            },
            Placement::Remote { .. } => PlacementSettings::Remote {
                silence: Duration::from_millis(spec.limits.agent_timeout_ms),
                memory: agent.memory.as_ref().and(spec.memory.clone()),
            },
        };
        Self { agent: agent.clone(), settings }
    }

    pub(super) fn name(&self) -> AgentName {
        AgentName::new(&self.agent.name)
    }

    pub(super) const fn placement(&self) -> AgentPlacement {
        match self.agent.placement {
            Placement::InProcess {} => AgentPlacement::InProcess,
            Placement::Remote { .. } => AgentPlacement::Remote,
        }
    }

    /// The URL of a remote agent, without credentials.
    pub(super) fn endpoint(&self) -> Option<String> {
        let Placement::Remote { url, .. } = &self.agent.placement else { return None };
        url.parse().ok().map(|url| displayed_url(&url))
    }

    /// Whether both use the same tools of the same servers, and so can share the servers.
    pub(super) fn shares_tools_with(&self, other: &Self) -> bool {
        let times = |limits: &Limits| (limits.mcp_start_timeout_ms, limits.tool_timeout_ms);
        let (
            PlacementSettings::InProcess { limits: a_limits, .. },
            PlacementSettings::InProcess { limits: b_limits, .. },
        ) = (&self.settings, &other.settings)
        else {
            return false;
        };
        let (a, b) = (&self.agent, &other.agent);
        (&a.mcp, &a.tools, &a.secrets_dir) == (&b.mcp, &b.tools, &b.secrets_dir)
            && times(a_limits) == times(b_limits)
    }

    /// Whether both are the same remote agent, called in the same way.
    pub(super) fn is_same_remote_as(&self, other: &Self) -> bool {
        let (a, b) = (&self.agent, &other.agent);
        let silence = |spec: &Self| match spec.settings {
            PlacementSettings::Remote { silence, .. } => Some(silence),
            PlacementSettings::InProcess { .. } => None,
        };
        self.placement() == AgentPlacement::Remote
            && (&a.placement, &a.secrets_dir, silence(self)) == (&b.placement, &b.secrets_dir, silence(other))
    }

    /// Whether this process sends both the same demands, and answers the same calls of theirs.
    pub(super) fn is_served_as(&self, other: &Self) -> bool {
        let (a, b) = (&self.agent, &other.agent);
        (&a.require_approval, &a.tasks, &self.settings) == (&b.require_approval, &b.tasks, &other.settings)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use caipe_crds::default_resource;
    use caipe_crds::resource::tool_domains::MemoryTools;

    use super::*;

    #[test]
    fn another_term_of_facts_makes_a_new_instance_of_an_agent_that_remembers() {
        let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
        let with = |ttl_minutes, agent: &RenderedAgent| {
            let memory = Memory { ttl_minutes, max_results: 50, supervisor: false, store: None };
            InstanceSpec::new(
                &RenderedSpec { memory: Some(memory), ..spec.clone() },
                agent,
                &Scripts::default(),
            )
        };
        let agent = spec.agents.first().unwrap();
        assert_eq!(with(Some(1), agent), with(None, agent));
        let remembers = RenderedAgent { memory: Some(MemoryTools {}), ..agent.clone() };
        assert_ne!(with(Some(1), &remembers), with(None, &remembers));
    }
}

//! The inputs of every object, and values that derive from them.

use std::collections::BTreeMap;

use caipe_crds::catalogue;
use caipe_crds::placement::SupportedPlacements;
use caipe_crds::rendered::{Placement, RenderedAgent};
use caipe_crds::resolve::bridge_ports;
use caipe_crds::resource::agent::Agent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::BuildError;
use super::meta::Component;
use crate::supervisor;
use crate::supervisor::decision::BuildInputs;
use caipe_crds::{CaipeSupervisor, RenderedSpec};

/// The inputs of building, and values that derive from them.
pub(super) struct BuildContext<'a> {
    pub(super) inputs: BuildInputs<'a>,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) members: Vec<Member<'a>>,
    /// The wanted spec without agents, for agents that run alone.
    pub(super) without_agents: RenderedSpec,
    /// The ports of MCP bridges, by agent and server.
    pub(super) bridges: BTreeMap<(String, String), u16>,
    /// The digest of the installation.
    pub(super) installation: String,
    owner: Option<OwnerReference>,
}

/// An enabled agent.
pub(super) struct Member<'a> {
    /// As declared in the resource.
    pub(super) declared: Agent,
    /// As resolved in the spec.
    pub(super) rendered: &'a RenderedAgent,
    /// The program of its remote placement.
    pub(super) program: Program,
}

/// What runs where an agent is remote.
pub(super) enum Program {
    /// Our program with this agent alone.
    Ours,
    /// Another A2A image.
    Image(String),
    /// A service that the operator does not run.
    Foreign,
}

impl<'a> BuildContext<'a> {
    pub(super) fn new(inputs: BuildInputs<'a>) -> Result<Self, BuildError> {
        let metadata = &inputs.resource.metadata;
        let name = metadata.name.as_deref().ok_or(BuildError::Nameless)?;
        let namespace = metadata.namespace.as_deref().unwrap_or("default");
        let declared = catalogue::declared_agents(&inputs.resource.spec);
        let member = |rendered: &'a RenderedAgent| {
            let found = declared.iter().find(|agent| agent.name == rendered.name);
            let declared = found.cloned().unwrap_or_else(|| Agent::named(&rendered.name));
            Member { program: Program::of(&declared), declared, rendered }
        };
        let members = inputs.decision.wanted.agents.iter().map(member).collect();
        Ok(Self {
            inputs,
            name,
            namespace,
            members,
            without_agents: without_agents(&inputs.decision.wanted),
            bridges: bridge_ports::ports(&inputs.resource.spec),
            installation: inputs.defaults.digest(),
            owner: owner(inputs.resource),
        })
    }

    /// The agents whose tool servers and Secrets the supervisor's pods have.
    pub(super) fn hosted_agents(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter().filter(|member| self.inputs.decision.hosted.contains(&member.rendered.name))
    }

    /// The agents with a Deployment that does not drain.
    pub(super) fn remote(&self) -> impl Iterator<Item = &Member<'a>> {
        let decision = self.inputs.decision;
        self.members.iter().filter(|member| {
            let name = &member.rendered.name;
            let runs = !matches!(member.program, Program::Foreign);
            runs && decision.remote.contains(name) && !decision.draining.contains_key(name)
        })
    }

    /// The agents that a remote agent can delegate to: those that are remote now, or become so.
    pub(super) fn delegates(&self, member: &Member<'a>) -> impl Iterator<Item = &Member<'a>> {
        let names = &member.rendered.delegates;
        self.members.iter().filter(move |other| {
            let is_remote = matches!(self.remote_placement(other), Placement::Remote { .. });
            is_remote && names.contains(&other.rendered.name)
        })
    }

    /// The remote agents that can delegate to an agent.
    pub(super) fn delegators(&self, member: &Member<'a>) -> impl Iterator<Item = &Member<'a>> {
        let name = &member.rendered.name;
        self.remote().filter(move |other| other.rendered.delegates.contains(name))
    }

    /// The remote placement of an agent, wanted or current; in-process if it has none.
    pub(super) fn remote_placement(&self, member: &Member<'a>) -> Placement {
        let wanted = &member.rendered.placement;
        let current = self.inputs.decision.spec.agent(&member.rendered.name).map(|agent| &agent.placement);
        let remote = [Some(wanted), current].into_iter().flatten();
        let remote = remote.into_iter().find(|placement| matches!(placement, Placement::Remote { .. }));
        remote.unwrap_or(wanted).clone()
    }

    /// The supervisor's pods; one at most if they cannot share the store.
    pub(super) fn replicas(&self) -> i32 {
        let spec = &self.inputs.resource.spec;
        let replicas = spec.replicas.unwrap_or(1);
        if spec.has_shared_store() { replicas } else { replicas.min(1) }
    }

    pub(super) fn image(&self) -> Result<String, BuildError> {
        let own = self.inputs.resource.spec.image.clone();
        let image = own.unwrap_or_else(|| self.inputs.defaults.image.clone());
        if image.is_empty() { Err(BuildError::NoImage) } else { Ok(image) }
    }

    pub(super) fn meta(&self, name: &str, component: Component<'_>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(component.labels(self.name)),
            owner_references: self.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }
}

impl Program {
    fn of(agent: &Agent) -> Self {
        if agent.external.is_some() {
            return Self::Foreign;
        }
        if let Some(image) = &agent.image {
            return Self::Image(image.clone());
        }
        let brings_tools = agent.identity.is_some() || !agent.mcp.is_empty();
        match catalogue::find(&agent.name) {
            Some(entry) if !brings_tools && entry.placements == SupportedPlacements::RemoteOnly => {
                entry.image.clone().map_or(Self::Foreign, Self::Image)
            }
            _ => Self::Ours,
        }
    }
}

/// The spec to which a remote agent is added. Its epoch is 0, so that another epoch does not roll the agent's pod.
fn without_agents(wanted: &RenderedSpec) -> RenderedSpec {
    RenderedSpec { epoch: 0, agents: Vec::new(), ..wanted.clone() }
}

/// The owner reference of the objects; none for a resource without a uid.
fn owner(resource: &CaipeSupervisor) -> Option<OwnerReference> {
    let metadata = &resource.metadata;
    Some(supervisor::owner(metadata.name.as_deref()?, metadata.uid.as_deref()?))
}

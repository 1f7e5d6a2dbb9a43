//! What every object of a supervisor is made from: who it is for, and who its agents are.

use std::collections::BTreeMap;

use caipe_crds::catalogue;
use caipe_crds::rendered::RenderedAgent;
use caipe_crds::resolve::bridge;
use caipe_crds::resource::agent::Agent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::BuildError;
use super::meta::Component;
use crate::supervisor;
use crate::supervisor::decision::BuildInputs;
use caipe_crds::{CaipeSupervisor, RenderedSpec};

/// Everything that is wanted, and what is often asked of it.
pub(super) struct BuildContext<'a> {
    pub(super) inputs: BuildInputs<'a>,
    /// The supervisor's name.
    pub(super) name: &'a str,
    /// Its namespace.
    pub(super) namespace: &'a str,
    /// The enabled agents.
    pub(super) members: Vec<Member<'a>>,
    /// What is wanted without any agent, for those that run alone.
    pub(super) without_agents: RenderedSpec,
    /// The ports of bridges, by agent and server.
    pub(super) bridges: BTreeMap<(String, String), u16>,
    owner: Option<OwnerReference>,
}

/// An enabled agent.
pub(super) struct Member<'a> {
    /// As people declared it.
    pub(super) declared: Agent,
    /// As it was resolved.
    pub(super) rendered: &'a RenderedAgent,
    /// What runs where it is remote.
    pub(super) program: Program,
}

/// What runs where an agent is remote.
pub(super) enum Program {
    /// This project's own program, with this agent alone.
    Ours,
    /// An image that speaks A2A by itself.
    Image(String),
    /// Nothing that the operator runs.
    Foreign,
}

impl<'a> BuildContext<'a> {
    pub(super) fn new(inputs: BuildInputs<'a>) -> Result<Self, BuildError> {
        let metadata = &inputs.resource.metadata;
        let name = metadata.name.as_deref().ok_or(BuildError::Nameless)?;
        let namespace = metadata.namespace.as_deref().unwrap_or("default");
        let declared = inputs.resource.spec.declared_agents();
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
            bridges: bridge::ports(&inputs.resource.spec),
            owner: owner(inputs.resource),
        })
    }

    /// The agents that the supervisor's pods have everything for.
    pub(super) fn hosted_agents(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter().filter(|member| self.inputs.decision.hosted.contains(&member.rendered.name))
    }

    /// The agents that have a Deployment and are not about to go.
    pub(super) fn remote(&self) -> impl Iterator<Item = &Member<'a>> {
        let decision = self.inputs.decision;
        self.members.iter().filter(|member| {
            let name = &member.rendered.name;
            let runs = !matches!(member.program, Program::Foreign);
            runs && decision.remote.contains(name) && !decision.draining.contains_key(name)
        })
    }

    /// The image of the supervisor and of agents that run remotely.
    pub(super) fn image(&self) -> Result<String, BuildError> {
        let own = self.inputs.resource.spec.image.clone();
        let image = own.unwrap_or_else(|| self.inputs.defaults.image.clone());
        if image.is_empty() { Err(BuildError::NoImage) } else { Ok(image) }
    }

    /// Metadata of an object of that part.
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
            Some(entry) if !brings_tools && entry.homes == catalogue::Homes::RemoteOnly => {
                entry.image.clone().map_or(Self::Foreign, Self::Image)
            }
            _ => Self::Ours,
        }
    }
}

/// What a process that serves one agent makes use of. What only a supervisor does with it is left out: a change there
/// must neither touch that agent's objects nor roll its pod. For the same reason the epoch is nothing.
fn without_agents(wanted: &RenderedSpec) -> RenderedSpec {
    let mut spec = wanted.clone();
    spec.epoch = 0;
    spec.a2a = None;
    spec.supervisor.system_prompt = None;
    spec.supervisor.skill_examples = Vec::new();
    spec.supervisor.external_url = None;
    spec.agents = Vec::new();
    spec
}

/// The resource as the owner of an object; none before an API server has taken it.
fn owner(resource: &CaipeSupervisor) -> Option<OwnerReference> {
    let metadata = &resource.metadata;
    Some(supervisor::owner(metadata.name.as_deref()?, metadata.uid.as_deref()?))
}

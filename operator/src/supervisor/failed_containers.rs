//! Finds failed containers and the component that each belongs to. Pure.

use std::collections::BTreeMap;
use std::fmt;

use crate::cache::Pod;
use crate::labels;

/// The component that a pod belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodOwner {
    Supervisor,
    Agent(String),
    ToolServer {
        agent: String,
        /// Its name among those of the agent.
        name: String,
    },
    SlackBot,
}

impl PodOwner {
    fn of(pod: &Pod) -> Option<Self> {
        match &*pod.component {
            labels::COMPONENT_SUPERVISOR => Some(Self::Supervisor),
            labels::COMPONENT_AGENT => Some(Self::Agent(pod.agent.as_deref()?.to_owned())),
            labels::COMPONENT_TOOL_SERVER => {
                let (agent, name) = (pod.agent.as_deref()?, pod.tool_server.as_deref()?);
                Some(Self::ToolServer { agent: agent.to_owned(), name: name.to_owned() })
            }
            labels::COMPONENT_SLACK_BOT => Some(Self::SlackBot),
            _ => None,
        }
    }

    /// The subject of an event.
    pub fn about(&self) -> String {
        match self {
            Self::Supervisor => String::new(),
            Self::Agent(agent) => agent.clone(),
            Self::SlackBot => "spec.slack".to_owned(),
            Self::ToolServer { agent, name } => format!("{agent}/{name}"),
        }
    }
}

impl fmt::Display for PodOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supervisor => f.write_str("the supervisor"),
            Self::Agent(agent) => write!(f, "agent {agent}"),
            Self::SlackBot => f.write_str("the Slack bot"),
            Self::ToolServer { agent, name } => write!(f, "tool server {name} of agent {agent}"),
        }
    }
}

/// The failures of containers that ended and have not recovered, in pods that stay.
pub fn failed_containers<'a>(pods: impl Iterator<Item = &'a Pod>) -> BTreeMap<PodOwner, String> {
    let failed_containers = |pod: &Pod| pod.trouble.as_ref().filter(|it| it.ended).map(ToString::to_string);
    pods.filter(|pod| !pod.deleting)
        .filter_map(|pod| Some((PodOwner::of(pod)?, failed_containers(pod)?)))
        .collect()
}

//! The observed state of a pod.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod as ApiPod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::managed_object::label;
use crate::labels;

/// The deserialized part of a pod, without its spec.
#[derive(Debug, Clone, Deserialize, Resource)]
#[resource(inherit = ApiPod)]
pub struct PartialPod {
    pub metadata: ObjectMeta,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its component, a `COMPONENT_…` of [`labels`].
    pub component: Box<str>,
    pub agent: Option<Box<str>>,
    pub tool_server: Option<Box<str>>,
    pub ip: Option<IpAddr>,
    pub ready: bool,
    /// Whether its containers have ended for good, as those of an evicted pod.
    pub ended: bool,
    /// Whether it is terminating.
    pub deleting: bool,
    /// The epoch on its annotation ([`labels::EPOCH`]).
    pub epoch: Option<Box<str>>,
    pub trouble: Option<Box<Trouble>>,
}

/// A problem of a pod, as Kubernetes reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The container, if it concerns one.
    pub container: Option<String>,
    /// The reason, such as `ImagePullBackOff`, `CrashLoopBackOff`, `OOMKilled` or `Unschedulable`.
    pub reason: String,
    /// The shortened message.
    pub message: Option<String>,
    /// Whether a container has terminated.
    pub ended: bool,
}

impl From<&PartialPod> for Pod {
    fn from(pod: &PartialPod) -> Self {
        let PartialPod { metadata: meta, status } = pod;
        let epoch = meta.annotations.as_ref().and_then(|annotations| annotations.get(labels::EPOCH));
        Self {
            component: label(meta, labels::COMPONENT).unwrap_or_default().into(),
            agent: label(meta, labels::AGENT).map(Into::into),
            tool_server: label(meta, labels::TOOL_SERVER).map(Into::into),
            ip: status.pod_ip.as_deref().and_then(|ip| ip.parse().ok()),
            ready: has_condition(status, "Ready"),
            ended: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            deleting: meta.deletion_timestamp.is_some(),
            epoch: epoch.map(|epoch| epoch.as_str().into()),
            trouble: trouble(status).map(Box::new),
        }
    }
}

fn has_condition(status: &PodStatus, condition: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|found| found.type_ == condition && found.status == "True")
}

fn trouble(status: &PodStatus) -> Option<Trouble> {
    let inits = status.init_container_statuses.iter().flatten();
    let mut all = inits.chain(status.container_statuses.iter().flatten());
    all.find_map(container_trouble).or_else(|| unschedulable(status))
}

/// Why a container waits, or how it terminated.
fn container_trouble(container: &ContainerStatus) -> Option<Trouble> {
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let name = Some(container.name.clone());
    let Some(waiting) = &state.waiting else {
        // A restarted container that is ready has no problem; an init container may end with code 0.
        let ended =
            state.terminated.as_ref().or(last).filter(|ended| !container.ready && ended.exit_code != 0)?;
        let message = Some(exit_details(ended, container.restart_count));
        return Some(Trouble {
            container: name,
            reason: exit_reason(ended).to_owned(),
            message,
            ended: true,
        });
    };
    let starts = |reason: &&str| matches!(*reason, "ContainerCreating" | "PodInitializing");
    let reason = waiting.reason.as_deref().filter(|reason| !starts(reason))?;
    let ended = last.filter(|_| reason == "CrashLoopBackOff");
    let message = match ended {
        Some(ended) => {
            Some(format!("{}, {}", exit_reason(ended), exit_details(ended, container.restart_count)))
        }
        None => waiting.message.as_deref().map(short),
    };
    Some(Trouble { container: name, reason: reason.to_owned(), message, ended: ended.is_some() })
}

fn exit_reason(ended: &ContainerStateTerminated) -> &str {
    ended.reason.as_deref().unwrap_or("Error")
}

fn exit_details(ended: &ContainerStateTerminated, restarts: i32) -> String {
    format!("exit code {}, {restarts} restarts", ended.exit_code)
}

fn unschedulable(status: &PodStatus) -> Option<Trouble> {
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    let reason = condition.reason.clone().unwrap_or_else(|| "Unschedulable".to_owned());
    Some(Trouble { container: None, reason, message: condition.message.as_deref().map(short), ended: false })
}

fn short(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(container) = &self.container {
            write!(f, "container {container}: ")?;
        }
        write!(f, "{}", self.reason)?;
        self.message.as_ref().map_or(Ok(()), |message| write!(f, " ({message})"))
    }
}

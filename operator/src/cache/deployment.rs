//! The observed state of a Deployment.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, DeploymentStrategy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use crate::compact_text::CompactText;
use crate::labels;

/// The deserialized part of a Deployment, without its pod template.
#[derive(Debug, Clone, Deserialize, Resource)]
#[resource(inherit = Deployment)]
pub struct PartialDeployment {
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: DeploymentStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Spec {
    replicas: Option<i32>,
    #[serde(default)]
    strategy: DeploymentStrategy,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    /// Wanted pods.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated: i32,
    /// Available pods.
    pub available: i32,
    /// Whether all pods have the newest template and are available, and no older ones are left.
    pub rolled_out: bool,
    /// Whether all pods that exist have the newest template, and one of them is available unless none is wanted.
    pub is_current: bool,
    /// Whether new pods start before old ones stop.
    pub overlaps: bool,
    /// Why the rollout failed (`ProgressDeadlineExceeded` or `ReplicaFailure`).
    pub failure: Option<Box<str>>,
    /// The agents that its pods host, separated by commas ([`labels::HOSTED_AGENTS`]).
    pub hosted: Box<str>,
    /// The identity of the store that its pods share ([`labels::STORE`]); none if only one pod can use the store.
    pub store: Option<CompactText>,
    /// The hash of its pod template ([`labels::TEMPLATE`]).
    pub template: Option<CompactText>,
    /// The digest of the installation that wrote it ([`labels::INSTALLATION`]).
    pub installation: Option<CompactText>,
}

impl Workload {
    /// The agents that its pods host.
    pub fn hosted(&self) -> BTreeSet<String> {
        self.hosted.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Whether its pod template has this hash.
    pub fn has_template(&self, hash: Option<&str>) -> bool {
        self.template == hash.map(CompactText::from)
    }
}

impl From<&PartialDeployment> for Workload {
    fn from(deployment: &PartialDeployment) -> Self {
        let annotation = |name: &str| deployment.metadata.annotations.as_ref()?.get(name).map(String::as_str);
        let replicas = deployment.spec.replicas.unwrap_or(1);
        let status = &deployment.status;
        Self {
            replicas,
            updated: status.updated_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            rolled_out: rolled_out(deployment.metadata.generation, replicas, status),
            is_current: is_current(deployment.metadata.generation, replicas, status),
            overlaps: deployment.spec.strategy.type_.as_deref() == Some("RollingUpdate"),
            failure: failure(status).map(Into::into),
            hosted: annotation(labels::HOSTED_AGENTS).unwrap_or_default().into(),
            store: annotation(labels::STORE).map(Into::into),
            template: annotation(labels::TEMPLATE).map(Into::into),
            installation: annotation(labels::INSTALLATION).map(Into::into),
        }
    }
}

fn rolled_out(generation: Option<i64>, replicas: i32, status: &DeploymentStatus) -> bool {
    status.observed_generation >= generation
        && status.updated_replicas.unwrap_or(0) >= replicas
        && status.replicas.unwrap_or(0) <= replicas
        && status.available_replicas.unwrap_or(0) >= replicas
}

fn is_current(generation: Option<i64>, replicas: i32, status: &DeploymentStatus) -> bool {
    status.observed_generation >= generation
        && status.replicas.unwrap_or(0) <= status.updated_replicas.unwrap_or(0)
        && (status.available_replicas.unwrap_or(0) > 0 || replicas == 0)
}

fn failure(status: &DeploymentStatus) -> Option<String> {
    let conditions = status.conditions.iter().flatten();
    let failed = conditions.filter(|condition| {
        let (kind, status) = (condition.type_.as_deref(), condition.status.as_deref());
        let stuck = kind == Some("Progressing") && status == Some("False");
        stuck || (kind == Some("ReplicaFailure") && status == Some("True"))
    });
    // `ReplicaFailure` is more specific.
    let failed = failed.max_by_key(|condition| condition.type_.as_deref() == Some("ReplicaFailure"))?;
    failed.message.clone().or_else(|| failed.reason.clone())
}

//! Labels and annotations of managed objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Kubernetes' own label for what manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`], the field manager of every write, and the reporter of events.
pub const MANAGER: &str = "caipe-operator";
/// Kubernetes' own label for what an object is.
pub const NAME: &str = "app.kubernetes.io/name";
/// The value of [`NAME`].
pub const PRODUCT: &str = "caipe";
/// Kubernetes' own label for the installation that an object belongs to: here the supervisor.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// Kubernetes' own label for the component: [`COMPONENT_SUPERVISOR`], [`COMPONENT_AGENT`],
/// [`COMPONENT_TOOL_SERVER`] or [`COMPONENT_SLACK_BOT`].
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// The supervisor itself.
pub const COMPONENT_SUPERVISOR: &str = "supervisor";
pub const COMPONENT_AGENT: &str = "agent";
/// A tool server with pods of its own.
pub const COMPONENT_TOOL_SERVER: &str = "tool-server";
pub const COMPONENT_SLACK_BOT: &str = "slack-bot";
/// The agent of an object.
pub const AGENT: &str = "caipe.io/agent";
/// The tool server of an object.
pub const TOOL_SERVER: &str = "caipe.io/tool-server";

/// The hash of the applied manifest; if it is unchanged, there is nothing to write.
pub const APPLIED: &str = "caipe.io/applied";
/// On the supervisor's pods: the epoch of the spec, optionally followed by `.` and a count. Writing it makes the
/// kubelet refresh the mounted spec.
pub const EPOCH: &str = "caipe.io/epoch";
/// On the supervisor's Deployment: the agents, separated by commas, whose tool servers and Secrets its pods have.
pub const HOSTED_AGENTS: &str = "caipe.io/hosted-agents";
/// On the supervisor's Deployment: the identity of the store that its pods share.
pub const STORE: &str = "caipe.io/store";
/// On a remote agent's Deployment: since when it drains (RFC 3339).
pub const DRAINING_SINCE: &str = "caipe.io/draining-since";
/// On a pod template: the hash of the versions of referenced Secrets and `ConfigMap`s; a change rolls the pods.
pub const REFERENCES: &str = "caipe.io/references";
/// On a remote agent's pod template: the hash of its spec.
pub const SPEC_HASH: &str = "caipe.io/spec-hash";
/// On a resource, with the value `true`: the operator applies nothing.
pub const PAUSED: &str = "caipe.io/paused";
/// On a Deployment: the digest of the installation that wrote it ([`crate::defaults::Defaults::digest`]).
pub const INSTALLATION: &str = "caipe.io/installation";
/// On a Deployment: the hash of its pod template, which shows whether a write would roll the pods.
pub const TEMPLATE: &str = "caipe.io/template";

/// Whether the resource has the annotation [`PAUSED`].
pub fn is_paused(meta: &ObjectMeta) -> bool {
    meta.annotations.as_ref().and_then(|all| all.get(PAUSED)).is_some_and(|value| value == "true")
}

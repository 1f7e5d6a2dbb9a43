//! Labels and annotations of the objects that the operator makes.

/// Kubernetes' own label for what manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`], the field manager of every write, and the reporter of events.
pub const MANAGER: &str = "caipe-operator";
/// Kubernetes' own label for what an object is.
pub const NAME: &str = "app.kubernetes.io/name";
/// Kubernetes' own label for the installation that an object belongs to: here the supervisor.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// Kubernetes' own label for the part that an object plays; one of [`COMPONENT_SUPERVISOR`], [`COMPONENT_AGENT`],
/// [`COMPONENT_TOOL_SERVER`].
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// The supervisor itself.
pub const COMPONENT_SUPERVISOR: &str = "supervisor";
/// A remote agent.
pub const COMPONENT_AGENT: &str = "agent";
/// A tool server that runs by itself.
pub const COMPONENT_TOOL_SERVER: &str = "tool-server";
/// The agent that an object is for.
pub const AGENT: &str = "caipe.io/agent";
/// The tool server that an object is for.
pub const TOOL_SERVER: &str = "caipe.io/tool-server";

/// The hash of what was applied, so that a pass can tell that nothing is to be done.
pub const APPLIED: &str = "caipe.io/applied";
/// On the supervisor's pods: the epoch of the spec, and behind a `.` how often the pod was told of it. Writing it wakes the
/// kubelet, which then refreshes the mount.
pub const EPOCH: &str = "caipe.io/epoch";
/// On the supervisor's Deployment: the agents, with commas between them, that its pods have everything for.
pub const HOSTED_AGENTS: &str = "caipe.io/hosted-agents";
/// On a remote agent's Deployment: since when it only finishes what it began (RFC 3339).
pub const DRAINING_SINCE: &str = "caipe.io/draining-since";
/// On a pod template: the hash of the referenced Secrets' and `ConfigMap`s' versions, so that a changed one rolls the pods.
pub const REFERENCES: &str = "caipe.io/references";
/// On a remote agent's pod template: the hash of the spec that it reads at its start.
pub const SPEC_HASH: &str = "caipe.io/spec-hash";
/// On a Deployment: the hash of its pod template, so that a pass can tell whether it would roll the pods.
pub const TEMPLATE: &str = "caipe.io/template";

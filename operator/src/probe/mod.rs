//! Probes the pods of supervisors over HTTP: a supervisor's report about its agents, and the card of a remote agent.
//!
//! `registry` stores the probed pods, their `schedule` and results, without a clock. `pod_client` sends one probe over one
//! of the `connections`.
//! `prober` connects the two. `debounce`, `interval`, `significance` and `rate_limit` are the rules: which failures
//! count, how often to probe, and which changes queue a reconcile.

mod bounds;
mod change_filter;
mod connections;
mod debounce;
mod failure;
mod interval;
mod pod;
mod pod_client;
mod prober;
mod probes;
mod rate_limit;
mod registry;
mod result;
mod schedule;

pub use failure::Failure;
pub use interval::Interval;
pub use pod_client::{HttpPodClient, Limits, PodClient, Request};
pub use prober::{Prober, ProberOptions};
pub use probes::Probes;
pub use result::{CardSummary, Endpoints, PodTarget, ProbeResult, ProbeResults, Targets};

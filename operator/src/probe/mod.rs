//! How the pods of supervisors are, asked over HTTP: the supervisor's own view of its agents, and whether a remote
//! agent's card answers.
//!
//! `registry` knows what is looked at, when next (`schedule`), and what was seen: plain data, no clock. `probe` asks one pod.
//! `prober` lets the two meet. `debounce`, `pace` and `significance` are the rules: what counts as seen, how often to
//! look, and what is worth telling.

mod bounds;
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
mod significance;

pub use failure::Failure;
pub use pod_client::{HttpPodClient, Limits, PodClient, Request};
pub use prober::{Prober, ProberOptions};
pub use probes::Probes;
pub use result::{CardSummary, Endpoints, PodTarget, ProbeResult, ProbeResults, Targets};

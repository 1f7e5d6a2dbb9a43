//! What is looked at, and what is seen.

use std::collections::BTreeMap;
use std::net::IpAddr;

use caipe_crds::report::Report;
use secrecy::SecretString;

/// What to look at for one supervisor.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The pods, by name. Their addresses come from the API server, never from a resource.
    pub pods: BTreeMap<String, PodTarget>,
    /// The bearer token of `/internal/status`; none before the Secret with the keys is there, and nobody is asked for
    /// its status before that.
    pub token: Option<SecretString>,
}

/// One pod to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodTarget {
    /// Its address; port [`caipe_crds::names::PORT`].
    pub ip: IpAddr,
    /// What is asked of it.
    pub endpoints: Endpoints,
}

/// What is asked of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoints {
    /// `/internal/status`: a supervisor, or an agent of ours.
    Status,
    /// Its card: an agent of ours or an image of somebody else that shall become a home.
    Card,
    /// Both.
    Both,
}

impl Endpoints {
    pub(super) const fn status(self) -> bool {
        matches!(self, Self::Status | Self::Both)
    }

    pub(super) const fn card(self) -> bool {
        matches!(self, Self::Card | Self::Both)
    }
}

/// What is known of a supervisor's pods, by pod. A pod that was not looked at yet is not in it.
pub type ProbeResults = BTreeMap<String, ProbeResult>;

/// What is known of a pod. Damped: one failed look changes nothing, two in a row do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeResult {
    /// Its last report. Names of tools are not kept, and long texts are cut.
    pub report: Option<Report>,
    /// Its card, if it answers.
    pub card: Option<CardSummary>,
    /// Why the last looks failed, if they did; what was known before is gone then.
    pub failure: Option<String>,
}

/// A card that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSummary {
    /// The name on it, at most 128 characters.
    pub name: String,
    /// The A2A version that would be spoken.
    pub protocol_version: String,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
}

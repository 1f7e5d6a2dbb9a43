//! Targets and results of probes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use caipe_crds::internal_status::Report;
use secrecy::SecretString;

use crate::compressed_json::CompressedJson;

/// The pods to probe for one supervisor.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The pods by name, with addresses from the API server.
    pub pods: BTreeMap<String, PodTarget>,
    /// The bearer token of `/internal/status` of the supervisor, from which those of its agents derive; without it the
    /// status is not probed.
    pub token: Option<SecretString>,
}

/// A pod to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTarget {
    /// Its address; the port is [`caipe_crds::names::PORT`].
    pub ip: IpAddr,
    /// The endpoints to probe.
    pub endpoints: Endpoints,
    /// The agent that it runs; none for a supervisor.
    pub agent: Option<Box<str>>,
}

/// The endpoints to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoints {
    /// `/internal/status` of a supervisor or of our agent.
    Status,
    /// The agent card, of our agent or of another image.
    Card,
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

/// The results by pod. A pod without a probe is missing.
pub type ProbeResults = BTreeMap<String, ProbeResult>;

/// The result of a pod. The first failed probe changes nothing, the second in a row does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeResult {
    /// Its last report, without names of tools and with bounded texts.
    pub report: Option<Report>,
    /// Its card, if it responds.
    pub card: Option<CardSummary>,
    /// Why the last probes failed; earlier results are dropped then.
    pub failure: Option<String>,
}

/// A result at rest. The prober stores one of each pod, and a reconcile reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PackedResult {
    pub(super) report: Option<CompressedJson>,
    pub(super) card: Option<Box<CardSummary>>,
    pub(super) failure: Option<Box<str>>,
}

impl PackedResult {
    /// The result; none before the first probe.
    pub(super) fn open(&self) -> Option<ProbeResult> {
        let report = self.report.as_ref().and_then(|report| report.parse().ok());
        let (card, failure) = (self.card.as_deref().cloned(), self.failure.as_deref().map(str::to_owned));
        let is_known = report.is_some() || card.is_some() || failure.is_some();
        is_known.then_some(ProbeResult { report, card, failure })
    }
}

/// The relevant content of an agent card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSummary {
    /// The agent's name, at most 128 characters.
    pub name: String,
    /// The negotiated A2A version.
    pub protocol_version: String,
    /// The latency in milliseconds.
    pub latency_ms: u64,
}

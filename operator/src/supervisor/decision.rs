//! The decision of a reconcile, and the inputs of building.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::rendered::Placement;
use caipe_crds::{CaipeSupervisor, RenderedSpec};

use crate::defaults::Defaults;
use crate::references::References;

/// The names of the agents that run in-process.
pub fn in_process(spec: &RenderedSpec) -> impl Iterator<Item = String> + '_ {
    let agents = spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::InProcess {}));
    agents.map(|agent| agent.name.clone())
}

/// The names of the agents that run remotely.
pub fn remote(spec: &RenderedSpec) -> impl Iterator<Item = String> + '_ {
    let agents = spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::Remote { .. }));
    agents.map(|agent| agent.name.clone())
}

/// The inputs of the objects, of which building is a pure function.
#[derive(Debug, Clone, Copy)]
pub struct BuildInputs<'a> {
    pub resource: &'a CaipeSupervisor,
    /// The referenced objects.
    pub references: &'a References,
    /// The installation's defaults.
    pub defaults: &'a Defaults,
    /// The decision about its agents.
    pub decision: &'a Decision,
}

/// The decision about the placements of a supervisor's agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The spec for the supervisor, with its hash and epoch. An agent whose wanted placement is not ready keeps its
    /// current one.
    pub spec: RenderedSpec,
    /// The wanted spec, every agent at its wanted placement.
    pub wanted: RenderedSpec,
    /// The agents whose sidecars and Secrets the supervisor's pods have.
    pub hosted: BTreeSet<String>,
    /// The names of agents with a Deployment: those that are or become remote.
    pub remote: BTreeSet<String>,
    /// Draining agents, and since when (RFC 3339); empty before the annotation is written.
    pub draining: BTreeMap<String, String>,
    /// Whether new supervisor pods start before old ones stop.
    pub overlaps: bool,
}

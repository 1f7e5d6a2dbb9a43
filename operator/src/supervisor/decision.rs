//! What a pass has decided, and what the objects are built from.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::{CaipeSupervisor, RenderedSpec};

use crate::defaults::Defaults;
use crate::references::References;

/// Everything that the objects of a supervisor are made from. Building is a pure function of it.
#[derive(Debug, Clone, Copy)]
pub struct BuildInputs<'a> {
    /// The resource.
    pub resource: &'a CaipeSupervisor,
    /// What is behind its references.
    pub references: &'a References,
    /// The installation's defaults.
    pub defaults: &'a Defaults,
    /// What was decided about its agents.
    pub decision: &'a Decision,
}

/// What was decided about the homes of a supervisor's agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The spec for the supervisor, sealed and with its epoch: the wanted one, but that an agent whose new home is not
    /// ready yet keeps its old one.
    pub spec: RenderedSpec,
    /// The wanted definition of every enabled agent, each at the home that the resource asks for.
    pub wanted: RenderedSpec,
    /// The agents that the supervisor's pods have everything for: tool servers beside them, Secrets mounted.
    pub hosted: BTreeSet<String>,
    /// The agents of ours that have a Deployment: those that are remote or shall be. By name.
    pub remote: BTreeSet<String>,
    /// Agents whose Deployment only finishes what it began, and since when (RFC 3339); empty before that was noted.
    pub draining: BTreeMap<String, String>,
}

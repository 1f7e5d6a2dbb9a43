//! Counts resources and agents by state. Each resource counts with its last reported state, so no scrape iterates
//! over all of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Phase, Placement, ResourcePhase};
use super::{ByAgent, ByPhase};
use crate::key::Key;

/// The state of a resource and its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceState {
    pub phase: ResourcePhase,
    pub agents: Vec<(Placement, Phase)>,
}

#[derive(Debug, Default)]
pub(super) struct ResourceCounts {
    states: Mutex<HashMap<Key, ResourceState>>,
    resources: Family<ByPhase, Gauge>,
    agents: Family<ByAgent, Gauge>,
}

impl ResourceCounts {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("resources", "CaipeSupervisors, by phase", self.resources.clone());
        let help = "Enabled agents, by placement and phase";
        registry.register("agents", help, self.agents.clone());
    }

    pub(super) fn set(&self, key: &Key, resource_state: ResourceState) {
        let mut states = self.states();
        self.count(&resource_state, 1);
        if let Some(before) = states.insert(key.clone(), resource_state) {
            self.count(&before, -1);
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        if let Some(before) = self.states().remove(key) {
            self.count(&before, -1);
        }
    }

    pub(super) fn forget_all(&self) {
        self.states().drain().for_each(|(_, before)| self.count(&before, -1));
    }

    fn count(&self, resource_state: &ResourceState, by: i64) {
        self.resources.get_or_create(&ByPhase { phase: resource_state.phase }).inc_by(by);
        for (placement, phase) in resource_state.agents.iter().copied() {
            self.agents.get_or_create(&ByAgent { placement, phase }).inc_by(by);
        }
    }

    fn states(&self) -> MutexGuard<'_, HashMap<Key, ResourceState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

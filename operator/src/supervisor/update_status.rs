//! The last step: writes the status and publishes events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::{CaipeSupervisor, CaipeSupervisorStatus, Fault};
use kube::api::{PartialObjectMeta, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::error::Error;
use super::failed_containers::PodOwner;
use super::missing_reference::{Announcement, MissingReference, ReferenceState};
use super::orphans::RemovalReason;
use super::{missing_reference, status, status_events};
use crate::cache::Child;
use crate::events::{Events, Reason};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::labels::{ResourcePhase, Verb};
use crate::metrics::{Metrics, ResourceState};

/// Writes statuses and publishes events.
#[derive(Clone)]
pub struct Reporter {
    /// The API server.
    pub client: Client,
    pub metrics: Arc<Metrics>,
    pub events: Events,
}

impl Reporter {
    /// Writes the status if it has changed, with an event for each change; returns whether it was written.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn report(
        &self,
        resource: &CaipeSupervisor,
        before: Option<&CaipeSupervisorStatus>,
        status: &CaipeSupervisorStatus,
    ) -> Result<bool, Error> {
        let key = Key::of(resource);
        let (namespace, name) = (key.namespace(), key.name());
        self.metrics.resource_state(&key, resource_state(status));
        if before.is_some_and(|before| status::same(before, status)) {
            return Ok(false);
        }
        // The response may have a spec that cannot be parsed.
        let api: Api<PartialObjectMeta<CaipeSupervisor>> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({
            "apiVersion": "caipe.io/v1alpha1",
            "kind": "CaipeSupervisor",
            "metadata": { "name": name, "uid": resource.uid() },
            "status": status,
        });
        let params = PatchParams::apply(labels::MANAGER).force();
        let patched = api.patch_status(name, &params, &Patch::Apply(&patch)).await;
        self.metrics.count_write(Kind::CaipeSupervisor, Verb::Status);
        patched.map_err(Error::api("write the status"))?;
        if let Some(ready) = status.conditions.iter().find(|it| it.type_ == "Ready") {
            let agents = status.agents_ready.as_deref();
            tracing::info!(%namespace, %name, ready = ready.status, reason = ready.reason, agents, epoch = status.epoch, "{}", ready.message);
        }
        for note in status_events::changes(before, status) {
            self.change(resource, note.reason, &note.about, &note.text);
        }
        Ok(true)
    }

    /// Publishes an event even if it repeats.
    fn change(&self, resource: &CaipeSupervisor, reason: Reason, about: &str, text: &str) {
        let key = Key::of(resource);
        self.events.clear(&key, reason, about);
        self.events.publish(resource, reason, about, text);
    }

    /// Publishes that references are missing or exist again. Returns the next state, and when to reconcile again.
    pub fn references(
        &self,
        resource: &CaipeSupervisor,
        missing_reference: Option<MissingReference>,
        before: Option<&CaipeSupervisorStatus>,
        status: &CaipeSupervisorStatus,
    ) -> (Option<MissingReference>, Option<Duration>) {
        let was_reported = matches!(status_events::references(before), ReferenceState::Missing(_));
        let seen = status_events::references(Some(status));
        let (missing_reference, announcement) =
            missing_reference::advance(missing_reference, was_reported, seen, Instant::now());
        match (announcement, seen) {
            (Announcement::Missing, ReferenceState::Missing(text)) => {
                self.change(resource, Reason::ReferenceMissing, "", text);
            }
            (Announcement::Found, _) => {
                self.change(resource, Reason::ReferenceFound, "", "all references exist");
            }
            (Announcement::Later(rest), _) => return (missing_reference, Some(rest)),
            _ => {}
        }
        (missing_reference, None)
    }

    /// Publishes the warnings of a valid spec.
    pub fn warn(&self, resource: &CaipeSupervisor, warnings: &[Fault]) {
        for warning in warnings {
            self.events.publish(resource, Reason::SpecWarning, &warning.path, &warning.to_string());
        }
    }

    /// Publishes failed containers, and forgets those that have recovered.
    pub fn failed_containers(
        &self,
        resource: &CaipeSupervisor,
        before: &BTreeSet<PodOwner>,
        failed_containers: &BTreeMap<PodOwner, String>,
    ) {
        let key = Key::of(resource);
        for owner in before.iter().filter(|owner| !failed_containers.contains_key(owner)) {
            self.events.clear(&key, Reason::PodFailing, &owner.about());
        }
        for (owner, trouble) in failed_containers {
            self.events.publish(resource, Reason::PodFailing, &owner.about(), &format!("{owner}: {trouble}"));
        }
    }

    /// Publishes that a drained Deployment was deleted.
    pub fn removed(&self, resource: &CaipeSupervisor, child: &Child, why: RemovalReason) {
        let Some(agent) = child.agent().filter(|_| child.kind == Kind::Deployment) else { return };
        let (reason, text) = match why {
            RemovalReason::Deadline => (Reason::DrainDeadline, "was removed before it had drained"),
            RemovalReason::Idle | RemovalReason::Unused => (Reason::Drained, "has drained and was removed"),
        };
        self.events.publish(resource, reason, agent, &format!("{} {text}", child.name));
    }
}

fn resource_state(status: &CaipeSupervisorStatus) -> ResourceState {
    let is = |kind: &str| status.conditions.iter().any(|it| it.type_ == kind && it.status == "True");
    let phase = if is("Stalled") {
        ResourcePhase::Stalled
    } else if is("Ready") {
        ResourcePhase::Ready
    } else {
        ResourcePhase::Reconciling
    };
    let agents = status.agents.iter().map(|agent| (agent.placement.into(), agent.phase.into())).collect();
    ResourceState { phase, agents }
}

//! The last step: the status, and what else is told of a supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::{CaipeSupervisor, CaipeSupervisorStatus, Fault};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::error::Error;
use super::failed_containers::PodOwner;
use super::missing_reference::{Announcement, MissingReference, ReferenceState};
use super::orphans::RemovalReason;
use super::{missing_reference, status, status_events};
use crate::cache::{Child, Kind};
use crate::events::{Events, Reason};
use crate::key::Key;
use crate::labels;
use crate::metrics::labels::{ObjectKind, ResourcePhase, Verb};
use crate::metrics::{Metrics, ResourceState};

/// Tells the API server how supervisors are.
#[derive(Clone)]
pub struct Reporter {
    /// The API server.
    pub client: Client,
    /// Where writes are counted, and how resources are.
    pub metrics: Arc<Metrics>,
    /// Where events go.
    pub events: Events,
}

impl Reporter {
    /// Writes the status if it says something else than before, with an event for what changed; whether it was written.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn report(
        &self,
        resource: &CaipeSupervisor,
        before: Option<&CaipeSupervisorStatus>,
        status: &CaipeSupervisorStatus,
    ) -> Result<bool, Error> {
        let (namespace, name) = (resource.namespace().unwrap_or_default(), resource.name_any());
        let key = Key::new(&namespace, &name);
        self.metrics.resource_state(&key, resource_state(status));
        if before.is_some_and(|before| status::same(before, status)) {
            return Ok(false);
        }
        let api = Api::<CaipeSupervisor>::namespaced(self.client.clone(), &namespace);
        let patch = json!({
            "apiVersion": "caipe.io/v1alpha1",
            "kind": "CaipeSupervisor",
            "metadata": { "name": name, "uid": resource.uid() },
            "status": status,
        });
        let params = PatchParams::apply(labels::MANAGER).force();
        let patched = api.patch_status(&name, &params, &Patch::Apply(&patch)).await;
        self.metrics.count_write(ObjectKind::CaipeSupervisor, Verb::Status);
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

    /// Tells of a change, however often it happens.
    fn change(&self, resource: &CaipeSupervisor, reason: Reason, about: &str, text: &str) {
        let key = Key::new(&resource.namespace().unwrap_or_default(), &resource.name_any());
        self.events.clear(&key, reason, about);
        self.events.publish(resource, reason, about, text);
    }

    /// Tells that what the resource refers to is missing, and that it came. Says what to remember, and when to look again.
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
                self.change(resource, Reason::ReferenceFound, "", "what was missing is there");
            }
            (Announcement::Later(rest), _) => return (missing_reference, Some(rest)),
            _ => {}
        }
        (missing_reference, None)
    }

    /// Tells what is odd about a spec that is valid.
    pub fn warn(&self, resource: &CaipeSupervisor, warnings: &[Fault]) {
        for warning in warnings {
            self.events.publish(resource, Reason::SpecWarning, &warning.path, &warning.to_string());
        }
    }

    /// Tells of containers that ended; those of `before` that are not among them are well again.
    pub fn failed_containers(
        &self,
        resource: &CaipeSupervisor,
        before: &BTreeSet<PodOwner>,
        failed_containers: &BTreeMap<PodOwner, String>,
    ) {
        let key = Key::new(&resource.namespace().unwrap_or_default(), &resource.name_any());
        for owner in before.iter().filter(|owner| !failed_containers.contains_key(owner)) {
            self.events.clear(&key, Reason::PodFailing, &owner.about());
        }
        for (owner, trouble) in failed_containers {
            self.events.publish(resource, Reason::PodFailing, &owner.about(), &format!("{owner}: {trouble}"));
        }
    }

    /// Tells of an object that was taken away.
    pub fn removed(&self, resource: &CaipeSupervisor, child: &Child, why: RemovalReason) {
        let Some(agent) = child.agent.as_deref().filter(|_| child.kind == Kind::Deployment) else { return };
        let (reason, text) = match why {
            RemovalReason::Deadline => (Reason::DrainDeadline, "was removed before it had finished"),
            RemovalReason::Idle | RemovalReason::Unused => {
                (Reason::Drained, "has finished what it began and was removed")
            }
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

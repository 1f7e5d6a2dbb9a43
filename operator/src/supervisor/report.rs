//! The last step: the status, and what else is told of a supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::{CaipeSupervisor, CaipeSupervisorStatus, Fault};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::absence::{Absence, Seen, Tell};
use super::ended::Whose;
use super::error::Error;
use super::key::Key;
use super::orphans::Why;
use super::{absence, notes, status};
use crate::events::{Events, Reason};
use crate::labels;
use crate::metrics::labels::{ObjectKind, ResourcePhase, Verb};
use crate::metrics::{Metrics, Tally};
use crate::world::{Child, Kind};

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
        self.metrics.tally(&key, tally(status));
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
        self.metrics.wrote(ObjectKind::CaipeSupervisor, Verb::Status);
        patched.map_err(Error::api("write the status"))?;
        if let Some(ready) = status.conditions.iter().find(|it| it.type_ == "Ready") {
            let agents = status.agents_ready.as_deref();
            tracing::info!(%namespace, %name, ready = ready.status, reason = ready.reason, agents, epoch = status.epoch, "{}", ready.message);
        }
        for note in notes::between(before, status) {
            self.change(resource, note.reason, &note.about, &note.text);
        }
        Ok(true)
    }

    /// Tells of a change, however often it happens.
    fn change(&self, resource: &CaipeSupervisor, reason: Reason, about: &str, text: &str) {
        let key = Key::new(&resource.namespace().unwrap_or_default(), &resource.name_any());
        self.events.over(&key, reason, about);
        self.events.tell(resource, reason, about, text);
    }

    /// Tells that what the resource refers to is missing, and that it came. Says what to remember, and when to look again.
    pub fn references(
        &self,
        resource: &CaipeSupervisor,
        absence: Option<Absence>,
        before: Option<&CaipeSupervisorStatus>,
        status: &CaipeSupervisorStatus,
    ) -> (Option<Absence>, Option<Duration>) {
        let was_told = matches!(notes::references(before), Seen::Missing(_));
        let seen = notes::references(Some(status));
        let (absence, tell) = absence::look(absence, was_told, seen, Instant::now());
        match (tell, seen) {
            (Tell::Missing, Seen::Missing(text)) => self.change(resource, Reason::ReferenceMissing, "", text),
            (Tell::Found, _) => {
                self.change(resource, Reason::ReferenceFound, "", "what was missing is there");
            }
            (Tell::Later(rest), _) => return (absence, Some(rest)),
            _ => {}
        }
        (absence, None)
    }

    /// Tells what is odd about a spec that is valid.
    pub fn warn(&self, resource: &CaipeSupervisor, warnings: &[Fault]) {
        for warning in warnings {
            self.events.tell(resource, Reason::SpecWarning, &warning.path, &warning.to_string());
        }
    }

    /// Tells of containers that ended; those of `before` that are not among them are well again.
    pub fn ended(
        &self,
        resource: &CaipeSupervisor,
        before: &BTreeSet<Whose>,
        ended: &BTreeMap<Whose, String>,
    ) {
        let key = Key::new(&resource.namespace().unwrap_or_default(), &resource.name_any());
        for whose in before.iter().filter(|whose| !ended.contains_key(whose)) {
            self.events.over(&key, Reason::PodFailing, &whose.about());
        }
        for (whose, trouble) in ended {
            self.events.tell(resource, Reason::PodFailing, &whose.about(), &format!("{whose}: {trouble}"));
        }
    }

    /// Tells of an object that was taken away.
    pub fn removed(&self, resource: &CaipeSupervisor, child: &Child, why: Why) {
        let Some(agent) = child.agent.as_deref().filter(|_| child.kind == Kind::Deployment) else { return };
        let (reason, text) = match why {
            Why::Deadline => (Reason::DrainDeadline, "was removed before it had finished"),
            Why::Idle | Why::Unused => (Reason::Drained, "has finished what it began and was removed"),
        };
        self.events.tell(resource, reason, agent, &format!("{} {text}", child.name));
    }
}

fn tally(status: &CaipeSupervisorStatus) -> Tally {
    let is = |kind: &str| status.conditions.iter().any(|it| it.type_ == kind && it.status == "True");
    let phase = if is("Stalled") {
        ResourcePhase::Stalled
    } else if is("Ready") {
        ResourcePhase::Ready
    } else {
        ResourcePhase::Reconciling
    };
    let agents = status.agents.iter().map(|agent| (agent.placement.into(), agent.phase.into())).collect();
    Tally { phase, agents }
}

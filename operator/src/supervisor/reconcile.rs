//! Runs the five steps for one supervisor.

mod pacing;
mod pause;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::resource::slack::Slack;
use caipe_crds::{CaipeSupervisor, Fault, Faults, RenderedSpec};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use writes::Written;

use super::apply::Applier;
use super::build;
use super::decision::{BuildInputs, Decision};
use super::dereference;
use super::error::Error;
use super::key_secrets;
use super::manifest::{self, Manifest};
use super::migration::{self, CurrentSpec, MigrationInputs, PendingMigration};
use super::observation::Observation;
use super::ports;
use super::rollout_strategy;
use super::rollouts::Rollouts;
use super::state::{ReconcileState, ReconcileStates, WrittenStatus};
use super::status::{Facts, Reason, Refusal};
use super::update_status::Reporter;
use super::validate::validate;
use crate::cache::{Cache, Workload};
use crate::defaults::Defaults;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::labels::{Category, MigrationStage, Outcome, Step};
use crate::metrics::{Metrics, ReconcileTimer};
use crate::probe::Probes;
use crate::references::{self, Missing, Names, References};

/// The dependencies of every reconcile.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// The watched objects.
    pub cache: Arc<Cache>,
    /// The state between reconciles.
    pub states: ReconcileStates,
    pub metrics: Arc<Metrics>,
    /// The probes of pods.
    pub prober: Arc<dyn Probes>,
    /// The installation's defaults.
    pub defaults: Defaults,
    /// The writer of status and events.
    pub reporter: Reporter,
    /// The pace of rollouts.
    pub rollouts: Rollouts,
}

/// When to reconcile again without a change.
pub type Due = Option<Duration>;

/// One reconcile of a resource.
pub struct Reconciler<'a> {
    cx: &'a Context,
    key: Key,
    resource: &'a CaipeSupervisor,
    uid: String,
    observation: Observation,
    state: ReconcileState,
    now: Timestamp,
    /// Why the operator writes no `PodDisruptionBudget`, if it may not read them.
    unreadable_budgets: Option<&'a str>,
    /// When a missing reference is due for an event.
    due: Due,
}

/// The result of the first four steps, for the status.
#[derive(Default)]
struct Reconciled {
    decision: Option<Decision>,
    held: BTreeMap<String, PendingMigration>,
    draining: BTreeSet<String>,
    refusal: Option<Refusal>,
    missing: Missing,
    supervisor: Option<Workload>,
    /// Why a rollout has to wait.
    pending_rollout: Option<String>,
    wrote: bool,
    due: Due,
}

impl<'a> Reconciler<'a> {
    /// Prepares a reconcile of the resource.
    pub fn new(
        cx: &'a Context,
        resource: &'a CaipeSupervisor,
        state: ReconcileState,
        unreadable_budgets: Option<&'a str>,
    ) -> Self {
        let key = Key::of(resource);
        let observation = Observation::new(&key, cx.cache.observed(&key), cx.prober.results(&key));
        let uid = resource.uid().unwrap_or_default();
        let now = Timestamp::now();
        Self { cx, key, resource, uid, observation, state, now, unreadable_budgets, due: None }
    }

    /// Runs the steps and reports the status.
    ///
    /// # Errors
    /// If a retry may help. The status also reports what a user has to fix.
    pub async fn run(mut self, timer: &ReconcileTimer<'_>) -> Result<(Outcome, Due), Error> {
        let (reconciled, error) = match self.reconcile_objects(timer).await {
            Ok(reconciled) => (reconciled, None),
            Err(error) => {
                self.state.current = None;
                if error.category() == Category::Terminating {
                    self.state.ending = self.resource.uid();
                }
                let refusal = error.refusal_after(self.state.failures);
                (Reconciled { refusal, ..Reconciled::default() }, Some(error))
            }
        };
        self.conclude(reconciled, error, timer).await
    }

    /// Applies nothing and reports why.
    ///
    /// # Errors
    /// If the API server rejects the status.
    pub async fn refuse(self, refusal: Refusal, timer: &ReconcileTimer<'_>) -> Result<(Outcome, Due), Error> {
        let reconciled = self.refused(refusal, Missing::default());
        self.conclude(reconciled, None, timer).await
    }

    /// Probes the pods, reports the status and saves the state.
    async fn conclude(
        mut self,
        reconciled: Reconciled,
        error: Option<Error>,
        timer: &ReconcileTimer<'_>,
    ) -> Result<(Outcome, Due), Error> {
        let token = self.state.keys.as_ref().map(|keys| keys.status_token.clone());
        self.cx.prober.watch(&self.key, self.observation.targets(self.resource, token));
        let was_written = if error.is_none() || reconciled.refusal.is_some() {
            self.report(&reconciled, timer).await
        } else {
            Ok(false)
        };
        let is_changed = reconciled.wrote || *was_written.as_ref().unwrap_or(&false);
        let due = earliest(reconciled.due, self.due);
        self.cx.states.save(&self.key, self.state);
        was_written?;
        let outcome = match (&reconciled.refusal, is_changed, due) {
            (Some(_), ..) => Outcome::Invalid,
            (None, true, _) => Outcome::Applied,
            (None, false, Some(_)) => Outcome::Waiting,
            (None, false, None) => Outcome::Unchanged,
        };
        error.map_or(Ok((outcome, due)), Err)
    }

    async fn reconcile_objects(&mut self, timer: &ReconcileTimer<'_>) -> Result<Reconciled, Error> {
        let names = references::referenced(self.resource);
        self.cx.cache.set_references(&self.key, names.clone());
        let step = timer.step(Step::Dereference);
        let found = self.dereference(&names).await;
        step.record(&found, Error::category);
        let mut references = found?;
        let missing = names.missing(&references);
        if labels::is_paused(&self.resource.metadata) {
            return self.paused(missing, &mut references).await;
        }
        let step = timer.step(Step::Validate);
        let resolved = match validate(self.resource, &references, self.key.namespace()) {
            Ok(resolved) => resolved,
            Err(faults) => {
                step.done();
                return Ok(self.refused(refusal(&faults, &missing), missing));
            }
        };
        step.done();
        let reported = self.resource.status.as_ref().map(|status| status.observed_generation);
        if reported != self.resource.metadata.generation {
            self.cx.reporter.warn(self.resource, &resolved.warnings);
        }
        self.keys(&mut references).await?;
        let (mut decision, held) = self.decide(&resolved.spec);
        let step = timer.step(Step::Build);
        let manifests = match self.build(&references, &mut decision) {
            Ok(manifests) => manifests,
            Err(refusal) => {
                step.done();
                return Ok(self.refused(refusal, missing));
            }
        };
        step.done();
        let step = timer.step(Step::Apply);
        let pending = self.pace(&manifests);
        let applied = self.apply(&manifests, &pending.deployments, &decision).await;
        step.record(&applied, Error::category);
        let Written { wrote, draining, due } = applied?;
        let supervisor = if pending.deployments.contains(self.key.name()) {
            self.observation.deployment().cloned()
        } else {
            self.observation.supervisor(&manifests)
        };
        self.cx.count_migrations(self.state.current.as_ref(), &decision.spec);
        self.state.current = Some(CurrentSpec::from(&decision.spec));
        Ok(Reconciled {
            decision: Some(decision),
            held,
            draining,
            refusal: None,
            missing,
            supervisor,
            pending_rollout: pending.reason,
            wrote,
            due: earliest(due, pending.due),
        })
    }

    /// Keeps what runs and applies nothing.
    fn refused(&self, refusal: Refusal, missing: Missing) -> Reconciled {
        let supervisor = self.observation.deployment().cloned();
        Reconciled { refusal: Some(refusal), missing, supervisor, ..Reconciled::default() }
    }

    async fn dereference(&mut self, names: &Names) -> Result<References, Error> {
        let cx = self.cx;
        // Nothing is read for a new resource: the operator writes a status after the spec, and watches the spec.
        if self.resource.status.is_some() || self.observation.has_spec() {
            dereference::current(&cx.client, &self.key, &mut self.state).await?;
        }
        dereference::references(&cx.client, &self.key, names, &cx.cache).await
    }

    /// Ensures the Secret with the keys. They count as a reference, so that changed keys roll the pods.
    async fn keys(&mut self, references: &mut References) -> Result<(), Error> {
        let applier = applier(self.cx, &self.key, &self.uid);
        key_secrets::of_supervisor(&applier, &self.observation.observed, &mut self.state.keys).await?;
        references.keys = self.state.keys.as_ref().map(|keys| keys.digest.to_string());
        Ok(())
    }

    fn decide(&self, wanted: &RenderedSpec) -> (Decision, BTreeMap<String, PendingMigration>) {
        let ours = migration::ours(self.resource, wanted);
        let supervisor = self.observation.deployment();
        let hosted = supervisor.map(Workload::hosted).unwrap_or_default();
        let reported = self.resource.status.as_ref().and_then(|status| u64::try_from(status.epoch?).ok());
        let answering = ours.iter().filter(|agent| self.observation.answers(agent)).cloned().collect();
        migration::decide(MigrationInputs {
            wanted,
            ours: &ours,
            current: self.state.current.as_ref(),
            reported_epoch: reported.unwrap_or(0),
            answering: &answering,
            hosted: &hosted,
            is_current: supervisor.is_some_and(|workload| workload.is_current),
            overlaps: rollout_strategy::overlaps(&wanted.store, supervisor),
            deployed: &self.observation.deployed(),
        })
    }

    /// Builds the objects. Hosted agents that are no longer needed are dropped if the supervisor's pods roll anyway.
    fn build(&self, references: &References, decision: &mut Decision) -> Result<Vec<Manifest>, Refusal> {
        let name = self.key.name();
        decision.hosted = ports::hosted_that_fit(self.resource, decision);
        let manifests = self.build_once(references, decision)?;
        let template = manifest::template(&manifests, name);
        let needed = migration::needed_hosted(decision);
        let is_rolled = self.observation.deployment().is_none_or(|workload| !workload.has_template(template));
        if decision.hosted.is_subset(&needed) || !is_rolled {
            return Ok(manifests);
        }
        decision.hosted.retain(|name| needed.contains(name));
        self.build_once(references, decision)
    }

    fn build_once(&self, references: &References, decision: &Decision) -> Result<Vec<Manifest>, Refusal> {
        let wanted =
            BuildInputs { resource: self.resource, references, defaults: &self.cx.defaults, decision };
        let invalid = |message: String| Refusal { reason: Reason::InvalidSpec, message };
        let objects = build::objects(&wanted).map_err(|error| invalid(error.to_string()))?;
        manifest::manifests(objects).map_err(|error| invalid(error.to_string()))
    }

    /// The references of the Slack bot that do not exist.
    fn missing_of_slack(&self, slack: &Slack) -> Missing {
        let is_missing =
            |kind, name: &String| self.cx.cache.version(kind, self.key.namespace(), name).is_none();
        let mut missing = references::of_slack(slack);
        missing.config_maps.retain(|name| is_missing(Kind::ConfigMap, name));
        missing.secrets.retain(|name| is_missing(Kind::Secret, name));
        missing
    }

    async fn report(&mut self, reconciled: &Reconciled, timer: &ReconcileTimer<'_>) -> Result<bool, Error> {
        // After a start the status stays until the first probes.
        if self.resource.status.is_some() && reconciled.refusal.is_none() && self.observation.is_first() {
            return Ok(false);
        }
        let step = timer.step(Step::UpdateStatus);
        let remotes = self.observation.remotes();
        let trouble =
            self.observation.supervisors().find_map(|(_, pod)| pod.trouble.as_ref()).map(ToString::to_string);
        let reported = self.state.reported.take();
        let seen = self.resource.status.as_ref();
        let before = reported.as_ref().map(|reported| &reported.status).or(seen);
        let (reports, starting) = (self.observation.reports(), self.observation.starting());
        let agent_reports: Vec<_> = self.observation.agent_reports().map(|(_, report)| report).collect();
        let slack = self.resource.spec.slack.as_ref();
        let slack = slack.map(|slack| self.observation.slack(self.missing_of_slack(slack)));
        let status = super::status::status(Facts {
            resource: self.resource,
            generation: self.resource.metadata.generation.unwrap_or(0),
            before,
            refusal: reconciled.refusal.as_ref(),
            decision: reconciled.decision.as_ref(),
            held: &reconciled.held,
            draining: &reconciled.draining,
            missing: &reconciled.missing,
            supervisor: reconciled.supervisor.as_ref(),
            pods: self.observation.pod_counts(),
            reports: &reports,
            starting: &starting,
            agent_reports: &agent_reports,
            trouble: trouble.as_deref(),
            remotes: &remotes,
            slack: slack.as_ref(),
            pending_rollout: reconciled.pending_rollout.as_deref(),
            unreadable_budgets: self.unreadable_budgets,
            now: self.now,
        });
        let ended = self.observation.failed_containers();
        self.cx.reporter.failed_containers(self.resource, &self.state.failed_containers, &ended);
        self.state.failed_containers = ended.into_keys().collect();
        let was_written = self.cx.reporter.report(self.resource, before, &status).await;
        step.record(&was_written, Error::category);
        let was_written = was_written?;
        let missing = self.state.missing_reference.take().map(|missing| *missing);
        let (missing, due) = self.cx.reporter.references(self.resource, missing, before, &status);
        self.state.missing_reference = missing.map(Box::new);
        self.due = due;
        // The written status counts until the watch delivers it.
        let written = was_written.then(|| WrittenStatus { uid: self.uid.clone(), status });
        let last = written.map(Box::new).or(reported);
        self.state.reported =
            last.filter(|last| seen.is_none_or(|seen| !super::status::same(&last.status, seen)));
        Ok(was_written)
    }
}

fn earliest(one: Due, other: Due) -> Due {
    one.into_iter().chain(other).min()
}

impl Context {
    /// Forgets a deleted supervisor; Kubernetes collects its objects.
    pub fn forget(&self, key: &Key) {
        // First, so that a reconcile in flight notices it.
        self.states.forget(key);
        self.prober.forget(key);
        self.cache.forget(key);
        self.rollouts.forget(key);
        self.metrics.forget(key);
        self.reporter.events.forget(key);
    }

    /// Forgets all supervisors: another operator leads.
    pub fn forget_all(&self) {
        self.prober.forget_all();
        self.states.clear();
        self.rollouts.clear();
        self.metrics.forget_all();
        self.reporter.events.forget_all();
    }

    fn count_migrations(&self, current: Option<&CurrentSpec>, spec: &RenderedSpec) {
        let Some(current) = current else { return };
        let moved = |agent: &&caipe_crds::rendered::RenderedAgent| {
            current.placement(&agent.name).is_some_and(|placement| *placement != agent.placement)
        };
        for _ in spec.agents.iter().filter(moved) {
            self.metrics.migrated(MigrationStage::Started);
        }
    }
}

fn applier<'a>(cx: &'a Context, key: &'a Key, uid: &'a str) -> Applier<'a> {
    Applier { client: &cx.client, metrics: &cx.metrics, cache: &cx.cache, key, uid }
}

/// A missing `ConfigMap` may still be created; other faults need a change of the resource.
fn refusal(faults: &Faults, missing: &Missing) -> Refusal {
    let is_text = |fault: &Fault| fault.path.ends_with("configMapRef");
    if !missing.config_maps.is_empty() && faults.as_slice().iter().all(is_text) {
        return Refusal { reason: Reason::ReferenceMissing, message: missing.to_string() };
    }
    Refusal { reason: Reason::InvalidSpec, message: faults.to_string() }
}

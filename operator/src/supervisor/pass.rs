//! One pass over one supervisor: the five steps in their order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::{CaipeSupervisor, Fault, Faults, RenderedSpec, names};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use tokio::time::Instant;

use super::apply::Applier;
use super::build;
use super::decision::{Decision, Wanted};
use super::dereference;
use super::error::Error;
use super::key::Key;
use super::manifest::{self, Manifest};
use super::memory::{Memory, Remembered, Reported};
use super::moves::{self, Current, Held, Situation};
use super::orphans::{self, Act};
use super::ports;
use super::references::{self, Missing, Names, References};
use super::report::Reporter;
use super::sight::Sight;
use super::status::{Facts, Reason, Refusal};
use super::validate::{Validated, validate};
use super::wakes::{self, Sleeper, Wake};
use crate::defaults::Defaults;
use crate::metrics::labels::{Category, MoveStage, Outcome, Step};
use crate::metrics::{Metrics, Pass as Measure};
use crate::probe::Probes;
use crate::world::{Child, Kind, Workload, World};

/// What every pass needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the cluster holds.
    pub world: Arc<World>,
    /// What is remembered between passes.
    pub memory: Memory,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// How the pods are.
    pub prober: Arc<dyn Probes>,
    /// What the installation gives every supervisor.
    pub defaults: Defaults,
    /// Who is told of what happens.
    pub reporter: Reporter,
}

/// When the next pass is due though nothing happens.
pub type Due = Option<Duration>;

/// One pass.
pub struct Pass<'a> {
    cx: &'a Context,
    key: Key,
    resource: &'a CaipeSupervisor,
    uid: String,
    sight: Sight,
    remembered: Remembered,
    now: Timestamp,
    /// When to look again at what is told.
    due: Due,
}

/// What a pass came to, for the status.
#[derive(Default)]
struct Made {
    decision: Option<Decision>,
    held: BTreeMap<String, Held>,
    draining: BTreeSet<String>,
    refusal: Option<Refusal>,
    missing: Missing,
    supervisor: Option<Workload>,
    wrote: bool,
    due: Due,
}

impl<'a> Pass<'a> {
    /// A pass over the resource as it is now.
    pub fn new(cx: &'a Context, resource: &'a CaipeSupervisor, remembered: Remembered) -> Self {
        let key = Key::new(&resource.namespace().unwrap_or_default(), &resource.name_any());
        let sight = Sight::new(&key, cx.world.around(&key), cx.prober.views(&key));
        let uid = resource.uid().unwrap_or_default();
        Self { cx, key, resource, uid, sight, remembered, now: Timestamp::now(), due: None }
    }

    /// Makes the resource real, as far as it is possible now, and reports.
    ///
    /// # Errors
    /// When something failed that trying again may mend. What somebody has to mend is in the status then, too.
    pub async fn run(mut self, measure: &Measure<'_>) -> Result<(Outcome, Due), Error> {
        let made = self.make(measure).await;
        let (made, error) = match made {
            Ok(made) => (made, None),
            Err(error) => {
                self.remembered.current = None;
                if error.category() == Category::Terminating {
                    self.remembered.ending = self.resource.uid();
                }
                let refusal = error.refusal_after(self.remembered.failures);
                (Made { refusal, ..Made::default() }, Some(error))
            }
        };
        let token = self.remembered.keys.as_ref().map(|keys| keys.status_token.clone());
        self.cx.prober.watch(&self.key, self.sight.targets(self.resource, token));
        let told = if error.is_none() || made.refusal.is_some() {
            self.report(&made, measure).await
        } else {
            Ok(false)
        };
        let is_changed = made.wrote || *told.as_ref().unwrap_or(&false);
        let due = self.due.map(|again| sooner(made.due, again)).or(made.due);
        self.cx.memory.keep(&self.key, self.remembered);
        told?;
        let outcome = match (&made.refusal, is_changed, due) {
            (Some(_), ..) => Outcome::Invalid,
            (None, true, _) => Outcome::Applied,
            (None, false, Some(_)) => Outcome::Waiting,
            (None, false, None) => Outcome::Unchanged,
        };
        error.map_or(Ok((outcome, due)), Err)
    }

    async fn make(&mut self, measure: &Measure<'_>) -> Result<Made, Error> {
        let names = references::referenced(self.resource);
        self.cx.world.uses(&self.key, names.clone());
        let step = measure.step(Step::Dereference);
        let found = self.dereference(&names).await;
        step.record(&found, Error::category);
        let mut references = found?;
        let missing = names.missing(&references);
        let step = measure.step(Step::Validate);
        let validated = match validate(self.resource, &references, self.key.namespace()) {
            Ok(validated) => validated,
            Err(faults) => {
                step.done();
                return Ok(self.refused(refusal(&faults, &missing), missing));
            }
        };
        step.done();
        let told = self.resource.status.as_ref().map(|status| status.observed_generation);
        if told != self.resource.metadata.generation {
            self.cx.reporter.warn(self.resource, &validated.resolved.warnings);
        }
        self.keys(&mut references).await?;
        let (mut decision, held) = self.decide(&validated);
        let step = measure.step(Step::Build);
        let manifests = match self.build(&references, &mut decision) {
            Ok(manifests) => manifests,
            Err(refusal) => {
                step.done();
                return Ok(self.refused(refusal, missing));
            }
        };
        step.done();
        let step = measure.step(Step::Apply);
        let applied = self.apply(&manifests, &decision).await;
        step.record(&applied, Error::category);
        let Written { wrote, draining, due } = applied?;
        let supervisor = self.sight.supervisor(&manifests);
        self.cx.metrics_of_moves(self.remembered.current.as_ref(), &decision.spec);
        self.remembered.current = Some(Current::from(&decision.spec));
        Ok(Made { decision: Some(decision), held, draining, refusal: None, missing, supervisor, wrote, due })
    }

    /// What runs keeps running; nothing is applied.
    fn refused(&self, refusal: Refusal, missing: Missing) -> Made {
        let supervisor = self.sight.deployment().cloned();
        Made { refusal: Some(refusal), missing, supervisor, ..Made::default() }
    }

    async fn dereference(&mut self, names: &Names) -> Result<References, Error> {
        let cx = self.cx;
        dereference::current(&cx.client, &self.key, &mut self.remembered).await?;
        dereference::references(&cx.client, &self.key, names, &cx.world, &cx.memory).await
    }

    /// Sees to it that the keys are there. They count as a reference, so that other keys roll the pods that have the old ones.
    async fn keys(&mut self, references: &mut References) -> Result<(), Error> {
        let applier = applier(self.cx, &self.key, &self.uid);
        dereference::keys(&applier, &self.sight.around, &mut self.remembered).await?;
        let version = self.remembered.keys.as_ref().map(|keys| keys.version.clone());
        references.secrets.extend(version.map(|version| (names::keys(self.key.name()), version)));
        Ok(())
    }

    fn decide(&self, validated: &Validated) -> (Decision, BTreeMap<String, Held>) {
        let wanted: &RenderedSpec = &validated.resolved.spec;
        let ours = moves::ours(self.resource, wanted);
        let supervisor = self.sight.deployment();
        let seats = supervisor.map(|workload| workload.seats.clone()).unwrap_or_default();
        let told = self.resource.status.as_ref().and_then(|status| u64::try_from(status.epoch?).ok());
        let answering = ours.iter().filter(|agent| self.sight.answers(agent)).cloned().collect();
        moves::decide(Situation {
            wanted,
            ours: &ours,
            current: self.remembered.current.as_ref(),
            told_epoch: told.unwrap_or(0),
            answering: &answering,
            seats: &seats,
            rolled_out: supervisor.is_some_and(|workload| workload.rolled_out),
            deployed: &self.sight.deployed(),
        })
    }

    /// Builds. Seats that nobody needs are given up when the supervisor's pods are rolled anyway.
    fn build(&self, references: &References, decision: &mut Decision) -> Result<Vec<Manifest>, Refusal> {
        let name = self.key.name();
        decision.seats = ports::seats_that_fit(self.resource, decision);
        let manifests = self.build_once(references, decision)?;
        let template = self.sight.deployment().and_then(|workload| workload.template.as_deref());
        let needed = moves::needed_seats(decision);
        if decision.seats.is_subset(&needed) || manifest::template(&manifests, name) == template {
            return Ok(manifests);
        }
        decision.seats.retain(|name| needed.contains(name));
        self.build_once(references, decision)
    }

    fn build_once(&self, references: &References, decision: &Decision) -> Result<Vec<Manifest>, Refusal> {
        let wanted = Wanted { resource: self.resource, references, defaults: &self.cx.defaults, decision };
        let invalid = |message: String| Refusal { reason: Reason::InvalidSpec, message };
        let objects = build::objects(&wanted).map_err(|error| invalid(error.to_string()))?;
        manifest::manifests(objects).map_err(|error| invalid(error.to_string()))
    }

    async fn apply(&mut self, manifests: &[Manifest], decision: &Decision) -> Result<Written, Error> {
        let applier = applier(self.cx, &self.key, &self.uid);
        let after = applier.apply(manifests, &self.sight.around, &self.remembered).await?;
        let before = |child: &Child| self.sight.around.children.get(&(child.kind, child.name.clone()));
        let wrote = after.iter().any(|child| before(child) != Some(child));
        self.remembered.applied(after.iter().map(AsRef::as_ref));
        let epoch = decision.spec.epoch;
        let (woken, again) = wake(&applier, &self.sight, &mut self.remembered.woken, epoch).await?;
        if woken {
            self.cx.prober.hurry(&self.key);
        }
        let (draining, due) = self.take_away(&applier, manifests, decision).await?;
        let due = again.map(|again| sooner(due, again)).or(due);
        Ok(Written { wrote: wrote || woken, draining, due })
    }

    /// Takes away what is no longer wanted, once nothing works there; the agents that still have something.
    async fn take_away(
        &self,
        applier: &Applier<'_>,
        manifests: &[Manifest],
        decision: &Decision,
    ) -> Result<(BTreeSet<String>, Due), Error> {
        let wanted: BTreeSet<(Kind, &str)> = manifests.iter().map(|it| (it.kind, it.name.as_str())).collect();
        let used = self.sight.use_of(decision.spec.epoch);
        let deadline = Duration::from_secs(u64::from(self.cx.defaults.drain_seconds));
        let (mut draining, mut due) = (BTreeSet::new(), None);
        for child in self.sight.around.children.values() {
            let is_wanted = wanted.contains(&(child.kind, child.name.as_str()));
            if is_wanted || child.deleting || child.controller.as_deref() != Some(self.uid.as_str()) {
                continue;
            }
            match orphans::act(child, &used, deadline, self.now) {
                Act::Remove(why) => {
                    applier.remove(child).await?;
                    self.cx.reporter.removed(self.resource, child, why);
                    if child.kind == Kind::Deployment {
                        self.cx.metrics.moved(MoveStage::Finished);
                    }
                }
                Act::Mark => applier.mark(child.kind, &child.name, Some(&self.now.to_string())).await?,
                Act::Wait if child.agent.is_none() => continue,
                Act::Wait => {}
            }
            due = Some(deadline.min(Duration::from_secs(30)));
            draining.extend(child.agent.clone().filter(|_| child.kind == Kind::Deployment));
        }
        Ok((draining, due))
    }

    async fn report(&mut self, made: &Made, measure: &Measure<'_>) -> Result<bool, Error> {
        // After a start nobody has looked at the pods yet: what was told before stands until somebody has.
        if self.resource.status.is_some() && made.refusal.is_none() && self.sight.is_first() {
            return Ok(false);
        }
        let step = measure.step(Step::UpdateStatus);
        let remotes = self.sight.remotes();
        let trouble =
            self.sight.supervisors().find_map(|(_, pod)| pod.trouble.as_ref()).map(ToString::to_string);
        let reported = self.remembered.reported.take();
        let seen = self.resource.status.as_ref();
        let before = reported.as_ref().map(|reported| &reported.status).or(seen);
        let reports = self.sight.reports();
        let status = super::status::status(Facts {
            generation: self.resource.metadata.generation.unwrap_or(0),
            before,
            refusal: made.refusal.as_ref(),
            decision: made.decision.as_ref(),
            held: &made.held,
            draining: &made.draining,
            missing: &made.missing,
            supervisor: made.supervisor.as_ref(),
            reports: &reports,
            trouble: trouble.as_deref(),
            remotes: &remotes,
            now: self.now,
        });
        let ended = self.sight.ended();
        self.cx.reporter.ended(self.resource, &self.remembered.ended, &ended);
        self.remembered.ended = ended.into_keys().collect();
        let told = self.cx.reporter.report(self.resource, before, &status).await;
        step.record(&told, Error::category);
        let told = told?;
        let absence = self.remembered.absence.take().map(|absence| *absence);
        let (absence, due) = self.cx.reporter.references(self.resource, absence, before, &status);
        self.remembered.absence = absence.map(Box::new);
        self.due = due;
        // What was written counts until the watch has brought it.
        let written = told.then(|| Reported { uid: self.uid.clone(), status });
        let last = written.map(Box::new).or(reported);
        self.remembered.reported =
            last.filter(|last| seen.is_none_or(|seen| !super::status::same(&last.status, seen)));
        Ok(told)
    }
}

/// Wakes the kubelets of the supervisor's pods that have not taken the epoch; whether any was, and when to look again.
async fn wake(
    applier: &Applier<'_>,
    sight: &Sight,
    woken: &mut HashMap<String, Instant>,
    epoch: u64,
) -> Result<(bool, Due), Error> {
    let (mut wrote, mut due) = (false, None);
    let before = std::mem::take(woken);
    for (name, pod) in sight.supervisors() {
        let runs = sight.views.get(name).and_then(|view| view.report.as_ref()).map(|report| report.epoch);
        if runs == Some(epoch) {
            continue;
        }
        let last = before.get(name).copied();
        let since = last.map(|last| last.elapsed());
        let pod = Sleeper { told: pod.epoch.as_deref(), since, answers: runs.is_some() };
        let (again, last) = match wakes::wake(epoch, pod) {
            Wake::Now(text) => {
                applier.wake(name, &text).await?;
                wrote = true;
                (Some(wakes::FIRST), Some(Instant::now()))
            }
            Wake::Later(rest) => (Some(rest), last),
            Wake::Never => (None, last),
        };
        due = again.map(|again| sooner(due, again)).or(due);
        woken.extend(last.map(|last| (name.clone(), last)));
    }
    Ok((wrote, due))
}

/// The earlier of two times to look again.
fn sooner(due: Due, other: Duration) -> Duration {
    due.unwrap_or(other).min(other)
}

struct Written {
    wrote: bool,
    draining: BTreeSet<String>,
    due: Due,
}

impl Context {
    /// Forgets a supervisor that is gone; Kubernetes collects what was made for it.
    pub fn forget(&self, key: &Key) {
        self.prober.forget(key);
        self.world.forget(key);
        self.memory.forget(key);
        self.metrics.forget(key);
        self.reporter.events.forget(key);
    }

    /// Forgets all of them: another operator works from now on.
    pub fn forget_all(&self) {
        self.prober.forget_all();
        self.memory.clear();
        self.metrics.forget_all();
        self.reporter.events.forget_all();
    }

    fn metrics_of_moves(&self, current: Option<&Current>, spec: &RenderedSpec) {
        let Some(current) = current else { return };
        let moved = |agent: &&caipe_crds::rendered::RenderedAgent| {
            current.home(&agent.name).is_some_and(|home| *home != agent.home)
        };
        for _ in spec.agents.iter().filter(moved) {
            self.metrics.moved(MoveStage::Begun);
        }
    }
}

fn applier<'a>(cx: &'a Context, key: &'a Key, uid: &'a str) -> Applier<'a> {
    Applier { client: &cx.client, metrics: &cx.metrics, world: &cx.world, key, uid }
}

/// Texts that may still come are waited for; whatever else is wrong has to be put right.
fn refusal(faults: &Faults, missing: &Missing) -> Refusal {
    let is_text = |fault: &Fault| fault.path.ends_with("configMapRef");
    if !missing.config_maps.is_empty() && faults.as_slice().iter().all(is_text) {
        return Refusal { reason: Reason::ReferenceMissing, message: missing.to_string() };
    }
    Refusal { reason: Reason::InvalidSpec, message: faults.to_string() }
}

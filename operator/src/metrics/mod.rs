//! What can be counted: metrics in the `OpenMetrics` text format.
//!
//! Every label is an enum of [`labels`], so that no name, message or address that somebody chose can become a time
//! series of its own: the number of series has a bound, and a test knows it.

pub mod labels;
mod resource_counts;
mod timers;

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use resource_counts::ResourceState;
pub use timers::{ReconcileTimer, StepTimer};

use self::labels::{
    Category, Endpoint, EventOutcome, MigrationStage, ObjectKind, Outcome, Phase, Placement, ProbeOutcome,
    ResourcePhase, Step, StepOutcome, Verb,
};
use self::resource_counts::ResourceCounts;
use crate::key::Key;

/// The media type of [`Metrics::encode`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The beginning of every name.
const PREFIX: &str = "caipe_operator";

/// In seconds. A pass over an unchanged resource takes well under a millisecond, one that applies everything has some
/// twenty answers of an API server to wait for, of 2 to 10 ms each, and one against a busy API server ends at a deadline
/// of half a minute. The aim is a 99th percentile below 50 ms, so that bound is one of a bucket.
const RECONCILE_BUCKETS: [f64; 12] =
    [0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 30.0];

/// In seconds. A card comes in 1 to 5 ms within a cluster, and a look ends after one second.
const PROBE_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStep {
    step: Step,
    outcome: StepOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFailure {
    step: Step,
    category: Category,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWrite {
    kind: ObjectKind,
    verb: Verb,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: ObjectKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProbe {
    endpoint: Endpoint,
    outcome: ProbeOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEndpoint {
    endpoint: Endpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    phase: ResourcePhase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAgent {
    placement: Placement,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMigration {
    stage: MigrationStage,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEvent {
    outcome: EventOutcome,
}

/// All that is counted. Kept once, shared by reference.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ByOutcome, Histogram, fn() -> Histogram>,
    steps: Family<ByStep, Histogram, fn() -> Histogram>,
    failures: Family<ByFailure, Counter>,
    in_flight: Gauge,
    queue: Gauge,
    writes: Family<ByWrite, Counter>,
    watch_errors: Family<ByKind, Counter>,
    is_leader: Gauge,
    crd_missing: Gauge,
    probes: Family<ByProbe, Counter>,
    probe_latency: Family<ByEndpoint, Histogram, fn() -> Histogram>,
    resource_counts: ResourceCounts,
    migrations: Family<ByMigration, Counter>,
    events: Family<ByEvent, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn reconcile_histogram() -> Histogram {
    Histogram::new(RECONCILE_BUCKETS)
}

fn probe_histogram() -> Histogram {
    Histogram::new(PROBE_BUCKETS)
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            reconciles: Family::new_with_constructor(reconcile_histogram),
            steps: Family::new_with_constructor(reconcile_histogram),
            failures: Family::default(),
            in_flight: Gauge::default(),
            queue: Gauge::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            is_leader: Gauge::default(),
            crd_missing: Gauge::default(),
            probes: Family::default(),
            probe_latency: Family::new_with_constructor(probe_histogram),
            resource_counts: ResourceCounts::default(),
            migrations: Family::default(),
            events: Family::default(),
        };
        metrics.register_work();
        metrics.register_surroundings();
        metrics.register_world();
        metrics
    }

    /// What the operator does.
    fn register_work(&mut self) {
        let registry = &mut self.registry;
        let (name, help) =
            ("reconcile_duration_seconds", "How long passes over a resource took, by what came of them");
        registry.register(name, help, self.reconciles.clone());
        let (name, help) = ("step_duration_seconds", "How long the steps of a pass took");
        registry.register(name, help, self.steps.clone());
        let help = "Failed steps, by what they failed with";
        registry.register("failures", help, self.failures.clone());
        registry.register("reconciles_in_flight", "Passes under way", self.in_flight.clone());
        registry.register("queue_length", "Resources that wait for a pass", self.queue.clone());
        let help = "Writes that were sent to the API server";
        registry.register("api_writes", help, self.writes.clone());
        registry.register("migrations", "Migrations of agents between placements", self.migrations.clone());
        registry.register("events", "Events about resources, by what came of them", self.events.clone());
    }

    /// What it depends on.
    fn register_surroundings(&mut self) {
        let registry = &mut self.registry;
        registry.register("watch_errors", "Watches that broke off", self.watch_errors.clone());
        registry.register(
            "is_leader",
            "1 while this process may write, 0 while another one does",
            self.is_leader.clone(),
        );
        let help = "1 while the definition of CaipeSupervisor is not in the cluster";
        registry.register("crd_missing", help, self.crd_missing.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this program", build);
    }

    /// What it looks after.
    fn register_world(&mut self) {
        let registry = &mut self.registry;
        registry.register("probes", "Looks at pods, by what came of them", self.probes.clone());
        let help = "How long looks took that were answered";
        registry.register("probe_duration_seconds", help, self.probe_latency.clone());
        self.resource_counts.register(registry);
    }

    /// A pass over a resource begins. It counts as abandoned if it is dropped without a word.
    pub fn pass(&self) -> ReconcileTimer<'_> {
        ReconcileTimer::begin(self)
    }

    /// How many resources wait for a pass.
    pub fn queue(&self, length: usize) {
        self.queue.set(i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// A write was sent to the API server.
    pub fn count_write(&self, kind: ObjectKind, verb: Verb) {
        self.writes.get_or_create(&ByWrite { kind, verb }).inc();
    }

    /// A watch broke off.
    pub fn watch_failed(&self, kind: ObjectKind) {
        self.watch_errors.get_or_create(&ByKind { kind }).inc();
    }

    /// Whether this process may write.
    pub fn leads(&self, leads: bool) {
        self.is_leader.set(i64::from(leads));
    }

    /// Whether the definition is missing.
    pub fn crd_missing(&self, missing: bool) {
        self.crd_missing.set(i64::from(missing));
    }

    /// A pod was looked at. The time of a look that failed says nothing about the pod, so it is not kept.
    pub fn probed(&self, endpoint: Endpoint, outcome: ProbeOutcome, took: Duration) {
        self.probes.get_or_create(&ByProbe { endpoint, outcome }).inc();
        if outcome == ProbeOutcome::Ok {
            self.probe_latency.get_or_create(&ByEndpoint { endpoint }).observe(took.as_secs_f64());
        }
    }

    /// How a resource and its agents are now; what was said of it before is taken back.
    pub fn resource_state(&self, key: &Key, resource_state: ResourceState) {
        self.resource_counts.set(key, resource_state);
    }

    /// A resource is gone.
    pub fn forget(&self, key: &Key) {
        self.resource_counts.forget(key);
    }

    /// Another operator counts resources from now on: what two count is counted twice.
    pub fn forget_all(&self) {
        self.resource_counts.forget_all();
    }

    /// An agent's move came to a stage.
    pub fn migrated(&self, stage: MigrationStage) {
        self.migrations.get_or_create(&ByMigration { stage }).inc();
    }

    /// Something came of an event.
    pub fn event(&self, outcome: EventOutcome) {
        self.events.get_or_create(&ByEvent { outcome }).inc();
    }

    /// Everything, as text of the type [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// When a metric cannot be written; none of these can fail.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;

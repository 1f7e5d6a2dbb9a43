//! The metrics of the operator, in the `OpenMetrics` text format.
//!
//! Every label is an enum of [`labels`], except the configured namespaces: no other name, message or address from
//! outside becomes a time series. A test checks the number of series.

pub mod labels;
mod resource_counts;
mod timers;

use std::fmt;
use std::time::Duration;

use caipe_telemetry::metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use caipe_telemetry::metrics::CONTENT_TYPE;
pub use resource_counts::ResourceState;
pub use timers::{ReconcileTimer, StepTimer};

use self::labels::{
    Category, Endpoint, EventOutcome, MigrationStage, Outcome, Phase, Placement, ProbeOutcome, ResourcePhase,
    RolloutState, Step, StepOutcome, Verb,
};
use self::resource_counts::ResourceCounts;
use crate::key::Key;
use crate::kind::Kind;

/// The prefix of all names.
const PREFIX: &str = "caipe_operator";

/// In seconds. A reconcile of an unchanged resource takes well under a millisecond, one that applies everything waits
/// for about twenty responses of 2 to 10 ms, and one against a busy API server ends at its timeout of 30 s. The aim
/// is a 99th percentile below 50 ms, so 50 ms is a bound.
const RECONCILE_BUCKETS: [f64; 12] =
    [0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 30.0];

/// In seconds. A card takes 1 to 5 ms within a cluster, and a probe times out after one second.
const PROBE_BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0];

/// Defines sets of labels.
macro_rules! label_sets {
    ($($name:ident { $($label:ident: $value:ident),+ })+) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        struct $name { $($label: $value),+ }
    )+};
}

label_sets! {
    ByOutcome { outcome: Outcome }
    ByStep { step: Step, outcome: StepOutcome }
    ByFailure { step: Step, category: Category }
    ByWrite { kind: Kind, verb: Verb }
    ByKind { kind: Kind }
    ByProbe { endpoint: Endpoint, outcome: ProbeOutcome }
    ByEndpoint { endpoint: Endpoint }
    ByPhase { phase: ResourcePhase }
    ByAgent { placement: Placement, phase: Phase }
    ByMigration { stage: MigrationStage }
    ByEvent { outcome: EventOutcome }
    ByRollout { state: RolloutState }
    // Not `namespace`, which Prometheus sets to the operator's own.
    ByNamespace { watched_namespace: String }
}

/// The registry of all metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ByOutcome, Histogram, fn() -> Histogram>,
    steps: Family<ByStep, Histogram, fn() -> Histogram>,
    failures: Family<ByFailure, Counter>,
    in_flight: Gauge,
    queue: Gauge,
    rollouts: Family<ByRollout, Gauge>,
    writes: Family<ByWrite, Counter>,
    watch_errors: Family<ByKind, Counter>,
    is_leader: Gauge,
    crd_missing: Gauge,
    namespace_synced: Family<ByNamespace, Gauge>,
    probes: Family<ByProbe, Counter>,
    probe_latency: Family<ByEndpoint, Histogram, fn() -> Histogram>,
    resource_counts: ResourceCounts,
    migrations: Family<ByMigration, Counter>,
    events: Family<ByEvent, Counter>,
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
    /// Metrics without values.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: metrics::registry(PREFIX, env!("CARGO_PKG_VERSION")),
            reconciles: Family::new_with_constructor(reconcile_histogram),
            steps: Family::new_with_constructor(reconcile_histogram),
            failures: Family::default(),
            in_flight: Gauge::default(),
            queue: Gauge::default(),
            rollouts: Family::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            is_leader: Gauge::default(),
            crd_missing: Gauge::default(),
            namespace_synced: Family::default(),
            probes: Family::default(),
            probe_latency: Family::new_with_constructor(probe_histogram),
            resource_counts: ResourceCounts::default(),
            migrations: Family::default(),
            events: Family::default(),
        };
        metrics.register_work();
        metrics.register_dependencies();
        metrics.register_observations();
        metrics
    }

    fn register_work(&mut self) {
        let registry = &mut self.registry;
        let (name, help) = ("reconcile_duration_seconds", "Duration of reconciles, by outcome");
        registry.register(name, help, self.reconciles.clone());
        let (name, help) = ("step_duration_seconds", "Duration of the steps of a reconcile");
        registry.register(name, help, self.steps.clone());
        let help = "Failed steps, by category";
        registry.register("failures", help, self.failures.clone());
        registry.register("reconciles_in_flight", "Reconciles in flight", self.in_flight.clone());
        registry.register("queue_length", "Resources that wait for a reconcile", self.queue.clone());
        let help = "Supervisors that a change of the operator rolls out";
        registry.register("rollouts", help, self.rollouts.clone());
        let help = "Writes sent to the API server";
        registry.register("api_writes", help, self.writes.clone());
        registry.register("migrations", "Migrations of agents between placements", self.migrations.clone());
        registry.register("events", "Events about resources, by outcome", self.events.clone());
    }

    fn register_dependencies(&mut self) {
        let registry = &mut self.registry;
        registry.register("watch_errors", "Failed watches", self.watch_errors.clone());
        registry.register(
            "is_leader",
            "1 while this process may write, 0 while another one does",
            self.is_leader.clone(),
        );
        let help = "1 while the definition of CaipeSupervisor is not in the cluster";
        registry.register("crd_missing", help, self.crd_missing.clone());
        let help = "1 while every kind can be read in the watched namespace, or in all (*)";
        registry.register("namespace_synced", help, self.namespace_synced.clone());
    }

    fn register_observations(&mut self) {
        let registry = &mut self.registry;
        registry.register("probes", "Probes of pods, by outcome", self.probes.clone());
        let help = "Duration of successful probes";
        registry.register("probe_duration_seconds", help, self.probe_latency.clone());
        self.resource_counts.register(registry);
    }

    pub fn start_reconcile(&self) -> ReconcileTimer<'_> {
        ReconcileTimer::begin(self)
    }

    /// Sets the length of the work queue.
    pub fn queue(&self, length: usize) {
        self.queue.set(i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// Sets the number of supervisors with a paced rollout.
    pub fn rollouts(&self, state: RolloutState, count: usize) {
        self.rollouts.get_or_create(&ByRollout { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a write that was sent to the API server.
    pub fn count_write(&self, kind: Kind, verb: Verb) {
        self.writes.get_or_create(&ByWrite { kind, verb }).inc();
    }

    /// Counts a failed watch.
    pub fn watch_failed(&self, kind: Kind) {
        self.watch_errors.get_or_create(&ByKind { kind }).inc();
    }

    /// Sets whether this process leads.
    pub fn leads(&self, leads: bool) {
        self.is_leader.set(i64::from(leads));
    }

    /// Sets whether the definition is missing.
    pub fn crd_missing(&self, missing: bool) {
        self.crd_missing.set(i64::from(missing));
    }

    /// Sets whether everything in a watched namespace can be read.
    pub fn namespace_synced(&self, namespace: &str, synced: bool) {
        let labels = ByNamespace { watched_namespace: namespace.to_owned() };
        self.namespace_synced.get_or_create(&labels).set(i64::from(synced));
    }

    /// Counts a probe. Only successful probes count for the latency.
    pub fn probed(&self, endpoint: Endpoint, outcome: ProbeOutcome, took: Duration) {
        self.probes.get_or_create(&ByProbe { endpoint, outcome }).inc();
        if outcome == ProbeOutcome::Ok {
            self.probe_latency.get_or_create(&ByEndpoint { endpoint }).observe(took.as_secs_f64());
        }
    }

    /// Sets the state of a resource, in place of its earlier one.
    pub fn resource_state(&self, key: &Key, resource_state: ResourceState) {
        self.resource_counts.set(key, resource_state);
    }

    /// Stops counting a deleted resource.
    pub fn forget(&self, key: &Key) {
        self.resource_counts.forget(key);
    }

    /// Stops counting all resources, because another operator does now.
    pub fn forget_all(&self) {
        self.resource_counts.forget_all();
    }

    /// Counts a stage of a migration.
    pub fn migrated(&self, stage: MigrationStage) {
        self.migrations.get_or_create(&ByMigration { stage }).inc();
    }

    /// Counts an event.
    pub fn event(&self, outcome: EventOutcome) {
        self.events.get_or_create(&ByEvent { outcome }).inc();
    }

    /// All metrics as text of the type [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// If a metric cannot be encoded; none of these can fail.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        metrics::encode(&self.registry)
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;

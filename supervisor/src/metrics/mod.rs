//! The metrics of this process.
//!
//! Every label value is a constant of the program: no name, message or address from outside becomes a time series.

mod counted_model;
mod limit_counts;

use std::fmt;
use std::sync::LazyLock;

use caipe_crds::internal_status::LimitReport;
use caipe_engine::{AgentName, LimitKind};
use caipe_model::{ModelErrorKind, Usage};
use caipe_store::StoreError;
use caipe_telemetry::metrics;
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::delegation::DelegationEnd;

pub(crate) use counted_model::CountedModel;
use limit_counts::LimitCounts;

/// The prefix of all names.
const PREFIX: &str = "caipe_supervisor";

/// In seconds. A commit takes about a millisecond, most of it for the disk; a disk that takes 100 ms delays every answer.
const COMMIT_BUCKETS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0, 10.0];

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

/// The metrics of this process.
pub(crate) fn metrics() -> &'static Metrics {
    &METRICS
}

/// One label.
type Label = [(&'static str, &'static str); 1];

const OK: &str = "ok";

/// Values that are read when the metrics are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Observed {
    pub(crate) active_runs: usize,
    pub(crate) queued_pushes: usize,
    /// In bytes.
    pub(crate) log_memory: usize,
    /// Whether the store can be read and written.
    pub(crate) is_store_available: bool,
    pub(crate) store_restrictions: usize,
    pub(crate) skills: usize,
    pub(crate) failed_skill_sources: usize,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    active_runs: Gauge,
    queued_pushes: Gauge,
    resident_memory: Gauge,
    log_memory: Gauge,
    skills: Gauge,
    failed_skill_sources: Gauge,
    open_streams: Gauge,
    waiting_commits: Gauge,
    store_available: Gauge,
    store_restrictions: Gauge,
    model_calls: Family<Label, Counter>,
    model_tokens: Family<Label, Counter>,
    tool_calls: Family<Label, Counter>,
    delegations: Family<Label, Counter>,
    limits_reached: Family<Label, Counter>,
    limit_counts: LimitCounts,
    commits: Family<Label, Histogram, fn() -> Histogram>,
}

impl Metrics {
    fn new() -> Self {
        let mut metrics = Self {
            registry: metrics::registry(PREFIX, env!("CARGO_PKG_VERSION")),
            active_runs: Gauge::default(),
            queued_pushes: Gauge::default(),
            resident_memory: Gauge::default(),
            log_memory: Gauge::default(),
            skills: Gauge::default(),
            failed_skill_sources: Gauge::default(),
            open_streams: Gauge::default(),
            waiting_commits: Gauge::default(),
            store_available: Gauge::default(),
            store_restrictions: Gauge::default(),
            model_calls: Family::default(),
            model_tokens: Family::default(),
            tool_calls: Family::default(),
            delegations: Family::default(),
            limits_reached: Family::default(),
            limit_counts: LimitCounts::default(),
            commits: Family::new_with_constructor(|| Histogram::new(COMMIT_BUCKETS)),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("active_runs", "Runs that are active", self.active_runs.clone());
        registry.register("open_streams", "Streams of events that clients read", self.open_streams.clone());
        let help = "Commits of runs that the store has not finished";
        registry.register("waiting_commits", help, self.waiting_commits.clone());
        let help = "Whether the store can be read and written";
        registry.register("store_available", help, self.store_available.clone());
        let help = "Guarantees that the store does not give, each of which is a warning in the status";
        registry.register("store_restrictions", help, self.store_restrictions.clone());
        let help = "Push configurations with notifications that are not delivered yet";
        registry.register("queued_pushes", help, self.queued_pushes.clone());
        let help = "Memory of this process that is resident";
        registry.register("resident_memory_bytes", help, self.resident_memory.clone());
        registry.register("skills", "Skills in the catalogue", self.skills.clone());
        let help = "Sources of skills whose last read failed";
        registry.register("failed_skill_sources", help, self.failed_skill_sources.clone());
        registry.register("log_memory_bytes", "Memory for the events of tasks", self.log_memory.clone());
        let help = "Calls of language models, by outcome; a call and its retries count once";
        registry.register("model_calls", help, self.model_calls.clone());
        registry.register("model_tokens", "Tokens that providers reported", self.model_tokens.clone());
        registry.register("tool_calls", "Calls of tools, by outcome", self.tool_calls.clone());
        registry.register("delegations", "Delegations to agents, by outcome", self.delegations.clone());
        let help = "Restrictions of runs by budgets and guards, by limit";
        registry.register("limits_reached", help, self.limits_reached.clone());
        let help = "Duration of the commits of runs, by outcome";
        registry.register("commit_duration_seconds", help, self.commits.clone());
    }

    /// Counts a stream as open until the result is dropped.
    pub(crate) fn open_stream(&self) -> Counted {
        Counted::new(&self.open_streams)
    }

    fn model_finished(&self, usage: Usage) {
        self.model_calls.get_or_create(&[("outcome", OK)]).inc();
        let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = usage;
        for (kind, tokens) in
            [("input", input_tokens), ("output", output_tokens), ("cache_read", cache_read_tokens)]
        {
            self.model_tokens.get_or_create(&[("type", kind)]).inc_by(tokens);
        }
    }

    fn model_failed(&self, kind: ModelErrorKind) {
        self.model_calls.get_or_create(&[("outcome", kind.category())]).inc();
    }

    pub(crate) fn tool_ended(&self, is_error: bool) {
        self.tool_calls.get_or_create(&[("outcome", if is_error { "failed" } else { OK })]).inc();
    }

    pub(crate) fn delegation_ended(&self, end: &DelegationEnd) {
        self.delegations.get_or_create(&[("outcome", end.category())]).inc();
    }

    /// Counts that a limit restricted or stopped a run of an agent.
    pub(crate) fn limit_reached(&self, agent: &AgentName, limit: LimitKind) {
        self.limits_reached.get_or_create(&[("limit", limit.category())]).inc();
        self.limit_counts.count(agent, limit, Timestamp::now());
    }

    /// How often each limit was reached, by agent.
    pub(crate) fn limits_by_agent(&self) -> Vec<LimitReport> {
        self.limit_counts.report()
    }

    /// Measures a commit.
    pub(crate) async fn committed<T>(
        &self,
        commit: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (started, waiting) = (Instant::now(), Counted::new(&self.waiting_commits));
        let result = commit.await;
        drop(waiting);
        let outcome = result.as_ref().err().map_or(OK, StoreError::category);
        self.commits.get_or_create(&[("outcome", outcome)]).observe(started.elapsed().as_secs_f64());
        result
    }

    /// All metrics, as text of the type `caipe_telemetry::metrics::CONTENT_TYPE`.
    pub(crate) fn encode(&self, observed: Observed) -> Result<String, fmt::Error> {
        self.active_runs.set(saturated(observed.active_runs));
        self.queued_pushes.set(saturated(observed.queued_pushes));
        self.log_memory.set(saturated(observed.log_memory));
        self.store_available.set(observed.is_store_available.into());
        self.store_restrictions.set(saturated(observed.store_restrictions));
        self.skills.set(saturated(observed.skills));
        self.failed_skill_sources.set(saturated(observed.failed_skill_sources));
        if let Some(bytes) = resident_memory() {
            self.resident_memory.set(bytes);
        }
        metrics::encode(&self.registry)
    }
}

/// Something that a gauge counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn saturated(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The resident memory in bytes, where the system tells it.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;

//! Guards that time reconciles and their steps. A guard that is dropped unfinished counts as abandoned: its future
//! was dropped because leadership was lost, or it panicked.

use tokio::time::Instant;

use super::labels::{Category, Outcome, Step, StepOutcome};
use super::{ByFailure, ByOutcome, ByStep, Metrics};

/// Times a reconcile.
#[derive(Debug)]
#[must_use = "a dropped timer counts as abandoned"]
pub struct ReconcileTimer<'a> {
    metrics: &'a Metrics,
    since: Instant,
    outcome: Outcome,
}

impl<'a> ReconcileTimer<'a> {
    pub(super) fn begin(metrics: &'a Metrics) -> Self {
        metrics.in_flight.inc();
        Self { metrics, since: Instant::now(), outcome: Outcome::Abandoned }
    }

    /// Starts the timer of a step.
    pub fn step(&self, step: Step) -> StepTimer<'a> {
        StepTimer { metrics: self.metrics, step, since: Instant::now(), outcome: StepOutcome::Abandoned }
    }

    /// Records the outcome.
    pub fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for ReconcileTimer<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        let took = self.since.elapsed().as_secs_f64();
        self.metrics.reconciles.get_or_create(&ByOutcome { outcome: self.outcome }).observe(took);
    }
}

/// Times a step.
#[derive(Debug)]
#[must_use = "a dropped timer counts as abandoned"]
pub struct StepTimer<'a> {
    metrics: &'a Metrics,
    step: Step,
    since: Instant,
    outcome: StepOutcome,
}

impl StepTimer<'_> {
    /// Records success.
    pub fn done(mut self) {
        self.outcome = StepOutcome::Ok;
    }

    /// Records a failure.
    pub fn failed(mut self, category: Category) {
        self.outcome = StepOutcome::Failed;
        self.metrics.failures.get_or_create(&ByFailure { step: self.step, category }).inc();
    }

    pub fn record<T, E>(self, result: &Result<T, E>, category: impl FnOnce(&E) -> Category) {
        match result {
            Ok(_) => self.done(),
            Err(error) => self.failed(category(error)),
        }
    }
}

impl Drop for StepTimer<'_> {
    fn drop(&mut self) {
        let took = self.since.elapsed().as_secs_f64();
        let labels = ByStep { step: self.step, outcome: self.outcome };
        self.metrics.steps.get_or_create(&labels).observe(took);
    }
}

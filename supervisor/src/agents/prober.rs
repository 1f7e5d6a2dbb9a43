//! Probes one remote agent in the background, and fails delegations while it is unreachable.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_crds::resource::agent_state::AgentPhase;
use caipe_engine::DelegationOutcome;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::health::{HealthState, NextProbe, ProbeSettings};
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};
use crate::remote::ProbeReport;

/// How long new delegations wait for a lost agent, from its first failed probe. The pod of an agent is replaced within seconds.
const RETURN: Duration = Duration::from_secs(10);

/// One probe within a deadline; an error is for people.
pub(super) type ProbeFn =
    Arc<dyn Fn(Duration) -> BoxFuture<'static, Result<ProbeReport, String>> + Send + Sync>;

/// The health of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) phase: AgentPhase,
    /// The last successful probe.
    pub(super) report: Option<ProbeReport>,
    pub(super) probed_at: Option<Timestamp>,
    pub(super) probes: u64,
    /// Why the last probe failed.
    pub(super) message: Option<String>,
    /// The first failed probe since the agent responded; none if it responds or never did.
    lost_at: Option<Instant>,
}

/// Probes an agent until it is dropped.
#[derive(Debug)]
pub(super) struct Prober {
    health: watch::Receiver<Health>,
    requested: Arc<Notify>,
    settings: watch::Sender<ProbeSettings>,
    _stop: DropGuard,
}

impl Prober {
    /// Probes an agent from now on; `permits` bounds the probes of all agents at a time. Must be called within a Tokio
    /// runtime.
    pub(super) fn start(settings: ProbeSettings, probe: ProbeFn, permits: Arc<Semaphore>) -> Self {
        let state = HealthState::new(settings);
        let health = watch::Sender::new(Health {
            phase: state.phase(),
            report: None,
            probed_at: None,
            probes: 0,
            message: turned_off(settings),
            lost_at: None,
        });
        let settings = watch::Sender::new(settings);
        let (requested, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let prober = Self {
            health: health.subscribe(),
            requested: requested.clone(),
            _stop: stop.clone().drop_guard(),
            settings,
        };
        let settings = prober.settings.subscribe();
        let task = ProbeTask { state, probe, permits, health, requested, settings };
        tokio::spawn(async move { stop.run_until_cancelled(task.run()).await }.in_current_span());
        prober
    }

    pub(super) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// Whether the agent is probed at all.
    pub(super) fn is_enabled(&self) -> bool {
        self.settings.borrow().check
    }

    pub(super) fn apply(&self, settings: ProbeSettings) {
        self.settings.send_if_modified(|current| std::mem::replace(current, settings) != settings);
    }

    /// Requests a probe, without waiting for it.
    pub(super) fn request_probe(&self) {
        if self.is_enabled() {
            self.requested.notify_one();
        }
    }

    /// Probes now; returns the last known health if that takes too long.
    pub(super) async fn probe_now(&self) -> Health {
        let mut health = self.health.clone();
        let before = health.borrow_and_update().probes;
        self.request_probe();
        let probed = health.wait_for(|now| now.probes > before);
        // Twice, because a probe may be running already.
        let deadline = self.settings.borrow().fast * 2;
        drop(tokio::time::timeout(deadline, probed).await);
        self.health()
    }

    /// Probes an unreachable agent now. If it was lost less than [`RETURN`] ago, waits for its return until then.
    async fn await_return(&self) -> Health {
        let is_back = |health: &Health| health.phase != AgentPhase::Unreachable;
        let health = self.probe_now().await;
        // Without background probes, nothing detects the return.
        let lost_at = health.lost_at.filter(|_| self.settings.borrow().background);
        if let (false, Some(lost_at)) = (is_back(&health), lost_at) {
            drop(tokio::time::timeout_at(lost_at + RETURN, self.watch().wait_for(is_back)).await);
        }
        self.health()
    }
}

struct ProbeTask {
    state: HealthState,
    probe: ProbeFn,
    permits: Arc<Semaphore>,
    health: watch::Sender<Health>,
    requested: Arc<Notify>,
    settings: watch::Receiver<ProbeSettings>,
}

impl ProbeTask {
    async fn run(mut self) {
        let mut next = self.state.first_probe();
        loop {
            let deadline = self.until(next).await;
            let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
            let probe = tokio::time::timeout(deadline, (self.probe)(deadline));
            let result = probe.await.unwrap_or_else(|_| Err(format!("no answer within {deadline:?}")));
            drop(permit);
            next = self.update(result);
        }
    }

    /// Waits for the next probe, or until one is requested; returns its deadline.
    async fn until(&mut self, mut next: Option<NextProbe>) -> Duration {
        loop {
            tokio::select! {
                deadline = due(next) => return deadline,
                () = self.requested.notified() => {
                    return next.map_or_else(|| self.state.requested_deadline(), |next| next.deadline);
                }
                Ok(()) = self.settings.changed() => next = self.apply_settings(),
            }
        }
    }

    fn apply_settings(&mut self) -> Option<NextProbe> {
        let settings = *self.settings.borrow_and_update();
        let next = self.state.apply(settings);
        self.health.send_modify(|health| {
            health.phase = self.state.phase();
            if !settings.check || health.probes == 0 {
                health.message = turned_off(settings);
            }
        });
        next
    }

    fn update(&mut self, result: Result<ProbeReport, String>) -> Option<NextProbe> {
        let before = self.state.phase();
        let next = if result.is_ok() { self.state.succeeded() } else { self.state.failed() };
        let phase = self.state.phase();
        log_change(before, phase, result.as_ref().err());
        self.health.send_modify(|health| {
            health.phase = phase;
            health.probes += 1;
            health.probed_at = Timestamp::from_second(Timestamp::now().as_second()).ok();
            match result {
                Ok(report) => {
                    (health.report, health.message, health.lost_at) = (Some(report), None, None);
                }
                Err(reason) => {
                    health.message = Some(reason);
                    if before == AgentPhase::Ready {
                        health.lost_at = Some(Instant::now());
                    }
                }
            }
        });
        next
    }
}

/// Waits until a probe is due; returns its deadline.
async fn due(next: Option<NextProbe>) -> Duration {
    let Some(NextProbe { after, deadline }) = next else { return std::future::pending().await };
    tokio::time::sleep(jittered(after)).await;
    deadline
}

fn turned_off(settings: ProbeSettings) -> Option<String> {
    (!settings.check).then(|| "connectivity checks are turned off".to_owned())
}

fn log_change(before: AgentPhase, now: AgentPhase, reason: Option<&String>) {
    match (now, reason) {
        _ if before == now => {}
        (AgentPhase::Ready, _) => tracing::info!("the agent can be reached"),
        (AgentPhase::Unreachable, Some(reason)) => tracing::warn!(reason, "the agent cannot be reached"),
        _ => {}
    }
}

/// Up to a tenth more or less, so that many agents are not all probed at once.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * fastrand::f64())
}

/// A remote backend with the prober of its agent.
#[derive(Debug)]
pub(super) struct ProbedBackend {
    /// Carries out delegations whatever the agent's health is.
    pub(super) backend: Arc<dyn AgentBackend>,
    pub(super) prober: Prober,
}

#[async_trait]
impl AgentBackend for ProbedBackend {
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd {
        // A resumed delegation is not failed at once: the backend retries.
        if delegation.resume.is_none() && self.prober.health().phase == AgentPhase::Unreachable {
            // The agent may have come back since the last probe, or may soon.
            match cancel.run_until_cancelled(self.prober.await_return()).await {
                None => return DelegationEnd::CANCELED,
                Some(health) if health.phase == AgentPhase::Unreachable => {
                    let why = health.message.as_deref().unwrap_or("it does not answer");
                    let agent = &delegation.agent;
                    return DelegationEnd::failed(format!(
                        "{why}. Say so, and go on without agent {agent}; it may be back later."
                    ));
                }
                Some(_) => {}
            }
        }
        let end = self.backend.run(delegation, events, cancel).await;
        if let DelegationEnd::Finished(DelegationOutcome::Failed { .. }) = &end {
            self.prober.request_probe();
        }
        end
    }

    async fn cancel_task(&self, task: &str) -> Result<(), String> {
        self.backend.cancel_task(task).await
    }
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;

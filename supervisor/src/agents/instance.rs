//! One agent as instantiated from one epoch of the spec.

use std::sync::Arc;

use caipe_crds::internal_status::{AgentReport, CredentialReason, DrainingInstance, NextInstance};
use caipe_crds::resource::agent_state::AgentPhase;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::health::ProbeSettings;
use super::in_process::InProcessBackend;
use super::instance_spec::InstanceSpec;
use super::prober::ProbedBackend;
use crate::agent::{Agent, Delegate, sharing};
use crate::delegation::AgentBackend;
use crate::mcp::{ServerPhase, ToolsView};
use crate::remote::UNGUARDED;

/// One agent as instantiated from one epoch of the spec: it is current, being prepared, or draining.
#[derive(Debug)]
pub(super) struct AgentInstance {
    /// Unique in this process.
    pub(super) id: u64,
    pub(super) spec: InstanceSpec,
    /// The newest epoch that does not change it.
    pub(super) epoch: u64,
    pub(super) runtime: Runtime,
    /// The delegations that are active; closed once it takes no new ones.
    pub(super) active: TaskTracker,
}

/// What runs an agent, by its placement.
#[derive(Debug, Clone)]
pub(super) enum Runtime {
    InProcess(Arc<Agent>),
    Remote(Arc<ProbedBackend>),
}

impl AgentInstance {
    pub(super) fn delegate(&self) -> Delegate {
        let backend: Arc<dyn AgentBackend> = match &self.runtime {
            Runtime::InProcess(agent) => Arc::new(InProcessBackend(agent.clone())),
            Runtime::Remote(probed) => probed.clone(),
        };
        Delegate {
            backend,
            active: self.active.clone(),
            title: self.spec.agent.title.clone(),
            routing_hint: self.spec.agent.routing_hint.clone(),
            sharing: sharing(&self.spec.agent),
        }
    }

    pub(super) fn phase(&self) -> AgentPhase {
        match &self.runtime {
            Runtime::InProcess(agent) => phase_of(agent),
            Runtime::Remote(probed) => probed.prober.health().phase,
        }
    }

    /// The phase that decides about a migration: an agent that is not probed counts as ready. Credentials do not count: they
    /// are checked once its servers are ready, and no placement has others.
    pub(super) fn readiness(&self) -> AgentPhase {
        match &self.runtime {
            Runtime::InProcess(agent) => phase_of_servers(&agent.tools.servers.view()),
            Runtime::Remote(probed) if !probed.prober.is_enabled() => AgentPhase::Ready,
            Runtime::Remote(_) => self.phase(),
        }
    }

    /// Completes when its phase may have changed after this call.
    pub(super) fn changed(&self) -> BoxFuture<'static, ()> {
        match &self.runtime {
            Runtime::InProcess(agent) => next_change(agent.tools.servers.watch()),
            Runtime::Remote(probed) => next_change(probed.prober.watch()),
        }
    }

    /// Probes an unreachable agent again, also without background probes.
    pub(super) fn probe_if_unreachable(&self) {
        if let Runtime::Remote(probed) = &self.runtime
            && self.phase() == AgentPhase::Unreachable
        {
            probed.prober.request_probe();
        }
    }

    pub(super) fn apply_probe_settings(&self, settings: ProbeSettings) {
        if let Runtime::Remote(probed) = &self.runtime {
            probed.prober.apply(settings);
        }
    }

    /// Its tools; of a remote agent, the skills on its card.
    pub(super) fn tools(&self) -> Vec<String> {
        match &self.runtime {
            Runtime::InProcess(agent) => {
                agent.tools.servers.view().tools.iter().map(|tool| tool.spec.name.clone()).collect()
            }
            Runtime::Remote(probed) => {
                probed.prober.health().report.map(|report| report.skills).unwrap_or_default()
            }
        }
    }

    /// Its faults, a line each.
    pub(super) fn faults(&self) -> Vec<String> {
        match &self.runtime {
            Runtime::InProcess(agent) => agent.faults(),
            Runtime::Remote(probed) => probed.prober.health().message.into_iter().collect(),
        }
    }

    fn message(&self) -> Option<String> {
        let faults = self.faults().join("; ");
        match (&self.runtime, self.phase()) {
            _ if !faults.is_empty() => Some(faults),
            (Runtime::InProcess(_), AgentPhase::Pending) => Some("its tool servers are starting".to_owned()),
            (Runtime::Remote(_), AgentPhase::Pending) => Some("it has not answered yet".to_owned()),
            (Runtime::Remote(_), AgentPhase::Ready) if self.spec.agent.is_foreign() => {
                Some(UNGUARDED.to_owned())
            }
            _ => None,
        }
    }

    pub(super) fn report(&self, next: Option<&Self>) -> AgentReport {
        let (agent, health) = match &self.runtime {
            Runtime::InProcess(agent) => (Some(&**agent), None),
            Runtime::Remote(probed) => (None, Some(probed.prober.health())),
        };
        let probe = health.as_ref().and_then(|health| health.report.as_ref());
        AgentReport {
            name: self.spec.agent.name.clone(),
            placement: self.spec.placement(),
            phase: self.phase(),
            epoch: self.epoch,
            endpoint: self.spec.endpoint(),
            protocol_version: probe.map(|probe| probe.protocol_version.clone()),
            latency_ms: probe.map(|probe| u64::try_from(probe.latency.as_millis()).unwrap_or(u64::MAX)),
            last_probe_time: health.as_ref().and_then(|health| health.probed_at),
            active_tasks: self.active.len() as u64,
            tools: self.tools(),
            message: self.message(),
            credentials: agent.and_then(Agent::credentials),
            unmatched: agent.map(Agent::unmatched).unwrap_or_default(),
            next: next.map(Self::report_next),
        }
    }

    fn report_next(&self) -> NextInstance {
        NextInstance {
            placement: self.spec.placement(),
            phase: self.phase(),
            endpoint: self.spec.endpoint(),
            message: self.message(),
        }
    }

    pub(super) fn report_draining(&self) -> DrainingInstance {
        DrainingInstance {
            name: self.spec.agent.name.clone(),
            placement: self.spec.placement(),
            endpoint: self.spec.endpoint(),
            active_tasks: self.active.len() as u64,
        }
    }
}

/// Completes at the next change; never if no change can come.
fn next_change<T: Send + Sync + 'static>(mut source: watch::Receiver<T>) -> BoxFuture<'static, ()> {
    source.mark_unchanged();
    async move {
        if source.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    .boxed()
}

/// An agent whose credentials are refused cannot do its work, although its servers run.
fn phase_of(agent: &Agent) -> AgentPhase {
    let is_refused = || agent.credentials().is_some_and(|it| it.reason == CredentialReason::Refused);
    match phase_of_servers(&agent.tools.servers.view()) {
        AgentPhase::Ready if is_refused() => AgentPhase::Degraded,
        phase => phase,
    }
}

fn phase_of_servers(view: &ToolsView) -> AgentPhase {
    if !view.settled {
        AgentPhase::Pending
    } else if view.servers.iter().all(|server| server.phase == ServerPhase::Ready) {
        AgentPhase::Ready
    } else {
        AgentPhase::Degraded
    }
}

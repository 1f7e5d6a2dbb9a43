//! One home of one agent, and how it is.

use std::sync::Arc;

use caipe_crds::report::{AgentReport, DrainingHome, NextHome, Time};
use caipe_crds::resource::status::AgentPhase;
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::blueprint::Blueprint;
use crate::agents::agent::Agent;
use crate::agents::connectivity::{Link, Outlook, Rules};
use crate::agents::directory::Delegate;
use crate::agents::home::{Delegation, Home, Updates};
use crate::mcp::{ServerPhase, ToolsView};

/// A home of an agent: the one that is asked, one that is made ready, or one that finishes what it began.
#[derive(Debug)]
pub(in crate::agents) struct Station {
    /// Tells it from every other of this process.
    pub(in crate::agents) id: u64,
    /// What it was made from.
    pub(in crate::agents) blueprint: Blueprint,
    /// The newest epoch that changes nothing of it.
    pub(in crate::agents) epoch: u64,
    /// Whom delegations are handed to.
    pub(in crate::agents) home: Arc<Leased>,
    /// What is looked after there.
    pub(in crate::agents) body: Body,
}

/// What is looked after at a home.
#[derive(Debug, Clone)]
pub(in crate::agents) enum Body {
    /// The agent, with its tool servers.
    InProcess(Arc<Agent>),
    /// Whether the agent can be reached, and the agent whether it can or not.
    Remote(Arc<Link>, Arc<dyn Home>),
}

/// News of how a home is.
pub(in crate::agents) enum News {
    /// Of its tool servers.
    Tools(watch::Receiver<Arc<ToolsView>>),
    /// Of the way there.
    Link(watch::Receiver<Outlook>),
}

impl News {
    /// Waits for some; for ever if none can come any more.
    pub(in crate::agents) async fn changed(&mut self) {
        let changed = match self {
            Self::Tools(tools) => tools.changed().await,
            Self::Link(link) => link.changed().await,
        };
        if changed.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Station {
    /// What others are told of it.
    pub(in crate::agents) fn delegate(&self) -> Delegate {
        Delegate {
            home: self.home.clone(),
            title: self.blueprint.agent.title.clone(),
            routing_hint: self.blueprint.agent.routing_hint.clone(),
        }
    }

    /// How it is.
    pub(in crate::agents) fn phase(&self) -> AgentPhase {
        match &self.body {
            Body::InProcess(agent) => phase_of(&agent.toolbox.view()),
            Body::Remote(link, _) => link.outlook().phase,
        }
    }

    /// How it is for the question whether to move there: whoever wants no checks takes it as it comes.
    pub(in crate::agents) fn readiness(&self) -> AgentPhase {
        match &self.body {
            Body::Remote(link, _) if !link.is_checked() => AgentPhase::Ready,
            _ => self.phase(),
        }
    }

    /// What comes after this.
    pub(in crate::agents) fn news(&self) -> News {
        match &self.body {
            Body::InProcess(agent) => {
                let mut tools = agent.toolbox.watch();
                tools.mark_unchanged();
                News::Tools(tools)
            }
            Body::Remote(link, _) => {
                let mut outlook = link.watch();
                outlook.mark_unchanged();
                News::Link(outlook)
            }
        }
    }

    /// Has another look taken at an agent that could not be reached, also where nobody goes on looking.
    pub(in crate::agents) fn nudge(&self) {
        if let Body::Remote(link, _) = &self.body
            && self.phase() == AgentPhase::Unreachable
        {
            link.doubt();
        }
    }

    /// Looks after a remote agent by these rules from now on.
    pub(in crate::agents) fn obey(&self, rules: Rules) {
        if let Body::Remote(link, _) = &self.body {
            link.obey(rules);
        }
    }

    /// Whether nothing is under way there, and nobody is about to begin anything.
    pub(in crate::agents) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.home) == 1 && self.home.active() == 0
    }

    /// Its tools; of a remote agent, the skills on its card.
    pub(in crate::agents) fn tools(&self) -> Vec<String> {
        match &self.body {
            Body::InProcess(agent) => {
                agent.toolbox.view().tools.iter().map(|tool| tool.name.clone()).collect()
            }
            Body::Remote(link, _) => link.outlook().seen.map(|seen| seen.skills).unwrap_or_default(),
        }
    }

    /// What is wrong there, a line each.
    pub(in crate::agents) fn faults(&self) -> Vec<String> {
        match &self.body {
            Body::InProcess(agent) => agent.faults(),
            Body::Remote(link, _) => link.outlook().message.into_iter().collect(),
        }
    }

    /// What is wrong, or waited for.
    pub(in crate::agents) fn message(&self) -> Option<String> {
        let faults = self.faults().join("; ");
        match (&self.body, self.phase()) {
            _ if !faults.is_empty() => Some(faults),
            (Body::InProcess(_), AgentPhase::Pending) => Some("its tool servers are starting".to_owned()),
            (Body::Remote(..), AgentPhase::Pending) => Some("it has not answered yet".to_owned()),
            _ => None,
        }
    }

    pub(in crate::agents) fn report(&self, next: Option<&Self>) -> AgentReport {
        let outlook = match &self.body {
            Body::InProcess(_) => None,
            Body::Remote(link, _) => Some(link.outlook()),
        };
        let seen = outlook.as_ref().and_then(|outlook| outlook.seen.clone());
        AgentReport {
            name: self.blueprint.agent.name.clone(),
            placement: self.blueprint.placement(),
            phase: self.phase(),
            epoch: self.epoch,
            endpoint: self.blueprint.endpoint(),
            protocol_version: seen.as_ref().map(|seen| seen.protocol_version.clone()),
            latency_ms: seen.as_ref().map(|seen| u64::try_from(seen.latency.as_millis()).unwrap_or(u64::MAX)),
            last_probe_time: outlook.and_then(|outlook| outlook.looked_at).map(Time),
            active_tasks: self.home.active() as u64,
            tools: self.tools(),
            message: self.message(),
            next: next.map(Self::report_next),
        }
    }

    fn report_next(&self) -> NextHome {
        NextHome {
            placement: self.blueprint.placement(),
            phase: self.phase(),
            endpoint: self.blueprint.endpoint(),
            message: self.message(),
        }
    }

    pub(in crate::agents) fn report_draining(&self) -> DrainingHome {
        DrainingHome {
            name: self.blueprint.agent.name.clone(),
            placement: self.blueprint.placement(),
            endpoint: self.blueprint.endpoint(),
            active_tasks: self.home.active() as u64,
        }
    }
}

/// How an agent with these tools is.
fn phase_of(view: &ToolsView) -> AgentPhase {
    if !view.settled {
        AgentPhase::Pending
    } else if view.servers.iter().all(|server| server.phase == ServerPhase::Ready) {
        AgentPhase::Ready
    } else {
        AgentPhase::Degraded
    }
}

/// A home that knows what is under way there.
#[derive(Debug)]
pub(in crate::agents) struct Leased {
    home: Arc<dyn Home>,
    lease: Arc<()>,
}

impl Leased {
    pub(in crate::agents) fn new(home: Arc<dyn Home>) -> Arc<Self> {
        Arc::new(Self { home, lease: Arc::default() })
    }

    /// The same home, with a count of its own.
    pub(in crate::agents) fn again(&self) -> Arc<Self> {
        Self::new(self.home.clone())
    }

    /// Delegations that are under way.
    pub(in crate::agents) fn active(&self) -> usize {
        Arc::strong_count(&self.lease) - 1
    }
}

impl Home for Leased {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let lease = self.lease.clone();
        // It ends with the stream, which holds it.
        let held = move |update| {
            let _ = &lease;
            update
        };
        self.home.run(delegation, cancel).map(held).boxed()
    }
}

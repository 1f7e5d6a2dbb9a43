//! Makes homes from their blueprints.

use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::client::CardCache;
use caipe_crds::rendered;
use caipe_engine::{AgentName, DelegateUpdate, DelegationOutcome, Limits};
use caipe_model::ChatModel;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, Role};
use super::briefing::Briefings;
use super::connectivity::{Gate, Link, Look, Rules, Seen};
use super::directory::Directory;
use super::home::{Delegation, Home, Update, Updates};
use super::models::Models;
use super::peer::{NO_ADDRESS, target};
use super::rehoming::{Blueprint, Shared};
use super::remote::{Remote, RemoteTarget};
use super::servers::server_specs;
use crate::config::Settings;
use crate::mcp::Toolbox;
use crate::secrets::with_secrets;
use crate::tools::A2aTools;

/// The name of the agent that the user talks to, in logs and stored states.
const SUPERVISOR: &str = "supervisor";

/// Agents that are looked at at the same time: those where connections hang must not hold back the others.
const LOOKS_AT_A_TIME: usize = 64;

/// What everybody is made with.
#[derive(Debug)]
pub(super) struct Works {
    /// For models.
    http: reqwest::Client,
    /// For agents.
    peers: reqwest::Client,
    cards: Arc<CardCache>,
    room: Arc<Semaphore>,
    pub(super) shutdown: CancellationToken,
}

impl Works {
    /// # Errors
    /// When no client for agents can be made.
    pub(super) fn new(http: reqwest::Client, shutdown: CancellationToken) -> Result<Self, reqwest::Error> {
        let (cards, room) = (Arc::default(), Arc::new(Semaphore::new(LOOKS_AT_A_TIME)));
        let peers = caipe_a2a::client::http_builder().build()?;
        Ok(Self { http, peers, cards, room, shutdown })
    }

    /// The works with these settings.
    pub(super) fn with<'a>(&'a self, settings: &'a Settings) -> Builder<'a> {
        let models = Models::new(settings, self.http.clone());
        let shared = models.supervisor();
        Builder { works: self, settings, models, shared }
    }
}

/// A remote agent.
pub(super) struct Peer {
    /// Whom delegations are handed to.
    pub(super) gate: Arc<dyn Home>,
    /// Whether it can be reached.
    pub(super) link: Arc<Link>,
    /// The agent, whether it can or not.
    pub(super) home: Arc<dyn Home>,
}

/// Makes homes for one specification.
pub(super) struct Builder<'a> {
    works: &'a Works,
    settings: &'a Settings,
    models: Models<'a>,
    shared: Arc<dyn ChatModel>,
}

impl Builder<'_> {
    /// The agent that the user talks to.
    pub(super) fn supervisor(&self, directory: Arc<Directory>, toolbox: Arc<Toolbox>) -> Agent {
        let spec = &self.settings.spec;
        Agent {
            name: AgentName::new(SUPERVISOR),
            title: spec.supervisor.name.clone(),
            description: spec.supervisor.description.clone(),
            prompt: String::new(),
            role: Role::Supervisor { spec: spec.clone().into(), directory },
            model: self.shared.clone(),
            toolbox,
            a2a: self.a2a(),
            streaming: spec.streaming,
            limits: limits(&spec.limits),
            require_approval: Vec::new(),
            briefings: Briefings::default(),
        }
    }

    /// The tools that ask agents of others, if they are wanted. Secrets are read now.
    fn a2a(&self) -> Option<Arc<A2aTools>> {
        let tools = A2aTools::new(self.settings, &self.works.peers, &self.works.cards).transpose()?;
        match tools {
            Ok(tools) => Some(tools.into()),
            Err(error) => {
                tracing::warn!(%error, "the tools that ask agents of others are left out");
                None
            }
        }
    }

    /// The tool servers of an agent in this process, which start at once. Its secrets are read now.
    pub(super) fn toolbox(&self, blueprint: &Blueprint) -> Arc<Toolbox> {
        let agent = &blueprint.agent;
        let env = with_secrets(&self.settings.env, agent.secrets_dir.as_deref());
        let specs = server_specs(&self.settings.spec, agent);
        let span = tracing::info_span!("agent", name = agent.name);
        span.in_scope(|| Toolbox::start(specs, &env, self.works.shutdown.child_token())).into()
    }

    /// An agent in this process.
    pub(super) fn worker(&self, blueprint: &Blueprint, toolbox: Arc<Toolbox>) -> Agent {
        let (agent, spec) = (&blueprint.agent, &self.settings.spec);
        let own = self.models.worker(&agent.name, agent.model.as_ref());
        Agent {
            name: AgentName::new(&agent.name),
            title: agent.title.clone(),
            description: agent.routing_hint.clone(),
            prompt: agent.system_prompt.clone(),
            role: Role::Worker,
            model: own.unwrap_or_else(|| self.shared.clone()),
            toolbox,
            a2a: None,
            streaming: spec.streaming,
            limits: limits(&spec.limits),
            require_approval: agent.require_approval.clone(),
            briefings: Briefings::default(),
        }
    }

    /// An agent behind A2A, which is looked at from now on. Its secrets are read now.
    pub(super) fn remote(&self, blueprint: &Blueprint) -> Peer {
        let span = tracing::info_span!("agent", name = blueprint.agent.name);
        let (home, look): (Arc<dyn Home>, Look) = match self.target(blueprint) {
            Ok(target) => {
                let (http, cards) = (self.works.peers.clone(), self.works.cards.clone());
                // Somebody else's program may call itself what it likes.
                let make = if blueprint.is_foreign() { Remote::external } else { Remote::new };
                let remote = make(target, http, cards);
                (remote.clone(), look_at(remote))
            }
            Err(reason) => {
                span.in_scope(|| tracing::warn!(reason, "the agent cannot be asked"));
                (
                    Arc::new(Broken(reason.clone())),
                    Arc::new(move |_| {
                        let reason = reason.clone();
                        async move { Err(reason) }.boxed()
                    }),
                )
            }
        };
        let rules = Rules::from(&self.settings.spec.connectivity);
        let link = span.in_scope(|| Link::start(rules, look, self.works.room.clone()));
        Peer { gate: Arc::new(Gate::new(home.clone(), link.clone())), link, home }
    }

    fn target(&self, blueprint: &Blueprint) -> Result<RemoteTarget, String> {
        let Shared::Remote { silence } = &blueprint.shared else { return Err(NO_ADDRESS.to_owned()) };
        target(&blueprint.agent, &self.settings.env, *silence)
    }
}

fn look_at(remote: Arc<Remote>) -> Look {
    Arc::new(move |deadline: Duration| {
        let remote = remote.clone();
        async move {
            let probed = remote.probe(deadline).await.map_err(|error| error.to_string())?;
            let (latency, protocol_version, skills) =
                (probed.latency, probed.protocol_version, probed.skills);
            Ok(Seen { latency, protocol_version, skills })
        }
        .boxed()
    })
}

/// Stands where a home cannot be made, and says why.
#[derive(Debug)]
struct Broken(String);

impl Home for Broken {
    fn run(&self, _delegation: Delegation, _cancel: CancellationToken) -> Updates {
        let outcome = DelegationOutcome::Failed { reason: self.0.clone() };
        futures::stream::iter([Update::from(DelegateUpdate::Finished { outcome })]).boxed()
    }
}

fn limits(limits: &rendered::Limits) -> Limits {
    Limits {
        steps: limits.recursion,
        context_tokens: limits.max_context_tokens.into(),
        keep_messages: limits.min_messages_to_keep as usize,
        tool_output_chars: limits.max_tool_output_chars as usize,
        ..Limits::default()
    }
}

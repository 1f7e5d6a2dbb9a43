//! Everybody who can be asked, built from the specification.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::rendered::{self, RenderedAgent};
use caipe_engine::{AgentName, Limits};
use caipe_model::ChatModel;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, Delegate, Role};
use super::briefing::Briefings;
use super::in_process::InProcess;
use super::models::{Models, Unconfigured};
use super::servers::server_specs;
use crate::config::Settings;
use crate::mcp::{ServerPhase, Toolbox, ToolsView};
use crate::secrets::with_secrets;
use crate::tools::{A2aTools, A2aToolsError};

/// The name of the agent that the user talks to, in logs and stored states.
const SUPERVISOR: &str = "supervisor";

/// Everybody who can be asked.
#[derive(Debug)]
pub struct Roster {
    supervisor: Arc<Agent>,
    workers: Vec<Arc<Agent>>,
}

/// Why a roster cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// A remote agent, in a program that knows no remote home.
    #[error(
        "agent {agent} runs at {url}: agents outside this process cannot be asked yet; run it in-process"
    )]
    Remote {
        /// The agent.
        agent: String,
        /// Its address.
        url: String,
    },
    /// The tools that ask agents of others cannot be had as they were configured.
    #[error(transparent)]
    A2a(#[from] A2aToolsError),
    /// No agent at all.
    #[error("there is no agent to serve")]
    Empty,
}

/// How everybody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterStatus {
    /// Why no question can be answered right now; empty if one can.
    pub reasons: Vec<String>,
    /// The agents, in the order of the specification.
    pub agents: Vec<AgentStatus>,
}

/// How one agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// Its tools, by name.
    pub tools: Vec<String>,
    /// Whether its servers are ready or have failed once.
    pub settled: bool,
    /// What is wrong with its servers.
    pub faults: Vec<String>,
}

impl Roster {
    /// Builds everybody and starts their tool servers; returns before these are up.
    ///
    /// # Errors
    /// When the specification asks for a home that this program does not have.
    pub fn start(
        settings: &Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RosterError> {
        let models = Models::new(settings, http);
        let shared = models.supervisor();
        let build = |agent: &RenderedAgent| worker(settings, agent, &models, &shared, shutdown).map(Arc::new);
        let workers = settings.spec.agents.iter().map(build).collect::<Result<Vec<_>, _>>()?;
        let supervisor =
            Arc::new(supervisor(settings, shared.clone(), &workers, A2aTools::new(settings)?, shutdown));
        Ok(Arc::new(Self { supervisor, workers }))
    }

    /// Builds the one agent of a process without a supervisor: it is who the user talks to.
    ///
    /// # Errors
    /// When there is none, or one does not run in this process.
    pub fn start_alone(
        settings: &Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RosterError> {
        let models = Models::new(settings, http);
        let shared = models.supervisor();
        let agent = settings.spec.agents.first().ok_or(RosterError::Empty)?;
        let agent = Arc::new(worker(settings, agent, &models, &shared, shutdown)?);
        Ok(Arc::new(Self { supervisor: agent.clone(), workers: vec![agent] }))
    }

    /// The agent that the user talks to.
    pub fn supervisor(&self) -> Arc<Agent> {
        self.supervisor.clone()
    }

    /// The names of the agents, for the card.
    pub fn names(&self) -> Vec<String> {
        self.workers.iter().map(|worker| worker.name.to_string()).collect()
    }

    /// How everybody is right now.
    pub fn status(&self) -> RosterStatus {
        let agents: Vec<AgentStatus> = self.workers.iter().map(|worker| agent_status(worker)).collect();
        let starting = agents.iter().filter(|agent| !agent.settled);
        let mut reasons: Vec<String> =
            starting.map(|agent| format!("agent {}: its tool servers are starting", agent.name)).collect();
        if self.supervisor.model.name() == Unconfigured::NAME {
            reasons.push("no model can be asked; the log says what is missing".to_owned());
        }
        RosterStatus { reasons, agents }
    }

    /// Stops every tool server.
    pub async fn shutdown(&self) {
        let all = self.workers.iter().chain([&self.supervisor]);
        futures::future::join_all(all.map(|agent| agent.toolbox.shutdown())).await;
    }
}

fn agent_status(agent: &Agent) -> AgentStatus {
    let view = agent.toolbox.view();
    AgentStatus {
        name: agent.name.to_string(),
        tools: view.tools.iter().map(|tool| tool.name.clone()).collect(),
        settled: view.settled,
        faults: faults(&view),
    }
}

fn faults(view: &ToolsView) -> Vec<String> {
    let broken = view.servers.iter().filter(|server| server.phase == ServerPhase::Failed);
    broken
        .map(|server| format!("{}: {}", server.name, server.message.as_deref().unwrap_or("not available")))
        .collect()
}

fn worker(
    settings: &Settings,
    agent: &RenderedAgent,
    models: &Models<'_>,
    shared: &Arc<dyn ChatModel>,
    shutdown: &CancellationToken,
) -> Result<Agent, RosterError> {
    if let rendered::Home::Remote { url, .. } = &agent.home {
        return Err(RosterError::Remote { agent: agent.name.clone(), url: url.clone() });
    }
    let env = with_secrets(&settings.env, agent.secrets_dir.as_deref());
    let specs = server_specs(&settings.spec, agent);
    let toolbox = tracing::info_span!("agent", name = agent.name)
        .in_scope(|| Toolbox::start(specs, &env, shutdown.child_token()));
    Ok(Agent {
        name: AgentName::new(&agent.name),
        title: agent.title.clone(),
        description: agent.routing_hint.clone(),
        prompt: agent.system_prompt.clone(),
        role: Role::Worker,
        model: models.worker(&agent.name, agent.model.as_ref()).unwrap_or_else(|| shared.clone()),
        toolbox,
        streaming: settings.spec.streaming,
        limits: limits(&settings.spec.limits),
        require_approval: agent.require_approval.clone(),
        a2a: None,
        briefings: Briefings::default(),
    })
}

fn supervisor(
    settings: &Settings,
    model: Arc<dyn ChatModel>,
    workers: &[Arc<Agent>],
    a2a: Option<Arc<A2aTools>>,
    shutdown: &CancellationToken,
) -> Agent {
    let spec = &settings.spec;
    let homes: BTreeMap<AgentName, Delegate> =
        workers.iter().map(|worker| (worker.name.clone(), delegate(worker))).collect();
    Agent {
        name: AgentName::new(SUPERVISOR),
        title: spec.supervisor.name.clone(),
        description: spec.supervisor.description.clone(),
        prompt: String::new(),
        role: Role::Supervisor { spec: spec.clone().into(), homes },
        model,
        toolbox: Toolbox::start(Vec::new(), &settings.env, shutdown.child_token()),
        streaming: spec.streaming,
        limits: limits(&spec.limits),
        require_approval: Vec::new(),
        a2a,
        briefings: Briefings::default(),
    }
}

fn delegate(worker: &Arc<Agent>) -> Delegate {
    Delegate {
        home: Arc::new(InProcess(worker.clone())),
        title: worker.title.clone(),
        routing_hint: worker.description.clone(),
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

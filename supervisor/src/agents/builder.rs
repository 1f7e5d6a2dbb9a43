//! Builds agents and backends from their specs.

mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::client::CardCache;
use caipe_crds::RenderedSpec;
use caipe_crds::rendered::{self, ModelPrice};
use caipe_crds::resource::budget::Guards;
use caipe_engine::{AgentName, Budget, GuardLimits, Limits, Price, USER_INPUT_AGENT};
use caipe_model::ChatModel;
use caipe_skills::SkillService;
use futures::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::health::ProbeSettings;
use super::in_process::InProcessBackend;
use super::instance_spec::{InstanceSpec, PlacementSettings};
use super::mcp_servers::{knowledge_base, server_specs, with_tools_key};
use super::models::ModelFactory;
use super::prober::{ProbeFn, ProbedBackend, Prober};
use crate::agent::{
    Agent, Delegates, PreambleCache, Role, SelfService, ToolPolicy, ToolRule, WorkerDelegates, file_writes,
    own_prompt,
};
use crate::config::Settings;
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};
use crate::mcp::{ServerSpec, Toolbox};
use crate::memory::MemorySlot;
use crate::remote::{NO_ADDRESS, RemoteBackend, RemoteTarget, remote_target};
use crate::secrets::with_secrets;
use crate::tools::{ClientCalls, TaskReaderSlot, ToolSources};

/// The name of the supervisor in logs and stored states.
const SUPERVISOR: &str = "supervisor";

/// The prompt of the agent for the steps of workflows that ask the user.
const USER_INPUT_PROMPT: &str = "You ask the user for what a workflow needs. Ask with request_user_input, with one form \
    for all that the task names, and invent no value. Write what the task says into virtual files, exactly as the user gave \
    it. Then answer with the values, and with nothing else.";

/// Agents that are probed at a time: those where connections hang must not delay the others.
const CONCURRENT_PROBES: usize = 64;

#[derive(Debug)]
pub(super) struct InstanceFactory {
    /// For models.
    http: reqwest::Client,
    /// For remote agents.
    remote_http: reqwest::Client,
    cards: Arc<CardCache>,
    probe_permits: Arc<Semaphore>,
    /// The agents that supervisor and agents can delegate to.
    pub(super) delegates: Arc<Delegates>,
    pub(super) skills: Arc<SkillService>,
    /// What reads the tasks of people, once the process serves them.
    pub(super) tasks: TaskReaderSlot,
    /// What agents remember about people, once the process serves them.
    pub(super) memory: MemorySlot,
    /// The calls that the clients of this process answer.
    pub(super) client_calls: ClientCalls,
    pub(super) shutdown: CancellationToken,
}

impl InstanceFactory {
    /// # Errors
    /// When no client for remote agents can be made.
    pub(super) fn new(
        http: reqwest::Client,
        skills: Arc<SkillService>,
        shutdown: CancellationToken,
    ) -> Result<Self, reqwest::Error> {
        let (cards, probe_permits) = (Arc::default(), Arc::new(Semaphore::new(CONCURRENT_PROBES)));
        let remote_http = caipe_a2a::client::http_builder().build()?;
        let (delegates, tasks, memory) = (Arc::default(), TaskReaderSlot::default(), MemorySlot::default());
        let client_calls = ClientCalls::default();
        Ok(Self {
            http,
            remote_http,
            cards,
            probe_permits,
            delegates,
            skills,
            tasks,
            memory,
            client_calls,
            shutdown,
        })
    }

    pub(super) fn with<'a>(&'a self, settings: &'a Settings) -> InstanceBuilder<'a> {
        let models = ModelFactory::new(settings, self.http.clone());
        let shared_model = models.supervisor();
        InstanceBuilder { factory: self, settings, models, shared_model }
    }
}

/// Builds the agents of one specification.
pub(super) struct InstanceBuilder<'a> {
    factory: &'a InstanceFactory,
    settings: &'a Settings,
    models: ModelFactory<'a>,
    shared_model: Arc<dyn ChatModel>,
}

impl InstanceBuilder<'_> {
    /// The agent that the user talks to.
    pub(super) fn supervisor(&self, toolbox: Arc<Toolbox>) -> Agent {
        let delegates = self.factory.delegates.clone();
        let spec = &self.settings.spec;
        let self_service = SelfService {
            user_input: Some(Arc::new(InProcessBackend(self.user_input().into()))),
            ..SelfService::new(spec, &self.settings.env)
        };
        for fault in &self_service.faults {
            tracing::warn!("a self-service workflow is left out: {fault}");
        }
        Agent {
            name: AgentName::new(SUPERVISOR),
            title: spec.supervisor.name.clone(),
            description: spec.supervisor.description.clone(),
            prompt: String::new(),
            role: Role::Supervisor { spec: spec.clone().into(), delegates, self_service },
            model: self.shared_model.clone(),
            condenser: self.models.condenser(None),
            tools: ToolSources::new(
                toolbox,
                self.a2a(spec.a2a.as_ref())
                    .into_iter()
                    .chain(self.skills(
                        SUPERVISOR,
                        spec.skills.as_ref().and_then(|skills| skills.supervisor.as_ref()),
                    ))
                    .chain(
                        self.memory(SUPERVISOR, spec.memory.as_ref().is_some_and(|memory| memory.supervisor)),
                    ),
            ),
            streaming: spec.streaming,
            limits: limits(&spec.limits),
            require_approval: Vec::new(),
            allow_always: Vec::new(),
            tool_policy: ToolPolicy::unrestricted(),
            tool_rules: supervisor_rules(spec),
            tool_faults: Vec::new(),
            workspace: None,
            verification: None,
            budget: run_budget(Some(&spec.budgets.run), spec),
            time_limit: spec.budgets.run.time_ms.map(Duration::from_millis),
            preambles: PreambleCache::default(),
        }
    }

    /// The agent for the steps of workflows that ask the user. It has no tools but the built-in ones.
    fn user_input(&self) -> Agent {
        Agent {
            name: AgentName::new(USER_INPUT_AGENT),
            title: "User input".to_owned(),
            description: String::new(),
            prompt: USER_INPUT_PROMPT.to_owned(),
            role: Role::worker(),
            model: self.shared_model.clone(),
            condenser: None,
            tools: ToolSources::new(self.start("user-input", Vec::new(), &self.settings.env), []),
            streaming: self.settings.spec.streaming,
            limits: limits(&self.settings.spec.limits),
            require_approval: Vec::new(),
            allow_always: Vec::new(),
            tool_policy: ToolPolicy::unrestricted(),
            tool_rules: Vec::new(),
            tool_faults: Vec::new(),
            workspace: None,
            verification: None,
            budget: Budget::default(),
            time_limit: None,
            preambles: PreambleCache::default(),
        }
    }

    /// The tool servers of an in-process agent, which start at once. Secrets are read now.
    pub(super) fn toolbox(&self, spec: &InstanceSpec) -> Arc<Toolbox> {
        let agent = &spec.agent;
        let env = with_tools_key(with_secrets(&self.settings.env, agent.secrets_dir.as_deref()), &agent.name);
        self.start(&agent.name, server_specs(&self.settings.spec, agent), &env)
    }

    /// The supervisor's own tool servers, which start at once.
    pub(super) fn supervisor_toolbox(&self) -> Arc<Toolbox> {
        let Settings { spec, env, .. } = self.settings;
        let servers = spec.rag.iter().map(|rag| knowledge_base(&spec.limits, rag)).collect();
        let secrets = spec.rag.as_ref().and_then(|rag| rag.secrets_dir.as_deref());
        self.start(SUPERVISOR, servers, &with_secrets(env, secrets))
    }

    fn start(&self, agent: &str, servers: Vec<ServerSpec>, env: &BTreeMap<String, String>) -> Arc<Toolbox> {
        let span = tracing::info_span!("agent", name = agent);
        span.in_scope(|| Toolbox::start(servers, env, self.factory.shutdown.child_token())).into()
    }

    /// An in-process agent.
    pub(super) fn worker(&self, spec: &InstanceSpec, toolbox: Arc<Toolbox>) -> Agent {
        let (agent, general) = (&spec.agent, &self.settings.spec);
        let own = self.models.worker(&agent.name, agent.model.as_ref());
        let model = own.unwrap_or_else(|| self.shared_model.clone());
        let time_limit = agent.budget.as_ref().and_then(|budget| budget.time_ms).map(Duration::from_millis);
        let volume = self.volume(agent);
        let fault = volume.as_ref().and_then(|volume| volume.fault());
        let fault = fault.map(|reason| format!("the volume of the workspace is not available: {reason}"));
        let (mut domains, mut faults) = (Vec::new(), Vec::from_iter(fault));
        for domain in [self.shell(agent, volume.as_deref()), Self::web(agent)] {
            match domain {
                Ok(source) => domains.extend(source),
                Err(fault) => faults.push(fault),
            }
        }
        for fault in &faults {
            tracing::warn!(agent = agent.name, "{fault}");
        }
        Agent {
            name: AgentName::new(&agent.name),
            title: agent.title.clone(),
            description: agent.routing_hint.clone(),
            prompt: own_prompt(agent),
            role: Role::Worker(WorkerDelegates {
                names: agent.delegates.iter().map(|name| AgentName::new(name)).collect(),
                all: self.factory.delegates.clone(),
            }),
            condenser: self.models.condenser(Some(agent)),
            tools: self.sources(agent, toolbox, (domains, model.name(), time_limit)).with_volume(volume),
            model,
            streaming: general.streaming,
            limits: worker_limits(&general.limits, agent.max_turns),
            require_approval: agent.require_approval.clone(),
            allow_always: agent.allow_always.clone(),
            tool_policy: agent.into(),
            tool_rules: [
                ToolRule::of_budgets(&general.budgets.tools),
                ToolRule::of_servers(&agent.mcp).collect(),
                vec![ToolRule::of_read_tools(&agent.read_tools)],
            ]
            .concat(),
            tool_faults: faults,
            workspace: agent.workspace.as_ref().map(file_writes),
            verification: agent.verification.clone(),
            budget: run_budget(agent.budget.as_ref(), general),
            time_limit,
            preambles: PreambleCache::default(),
        }
    }

    /// A remote agent, which is probed from now on. Secrets are read now.
    pub(super) fn remote(&self, spec: &InstanceSpec) -> Arc<ProbedBackend> {
        let span = tracing::info_span!("agent", name = spec.agent.name);
        let (backend, probe): (Arc<dyn AgentBackend>, ProbeFn) = match self.target(spec) {
            Ok(target) => {
                let (http, cards) = (self.factory.remote_http.clone(), self.factory.cards.clone());
                // A foreign program may have any name.
                let make = if spec.agent.is_foreign() { RemoteBackend::external } else { RemoteBackend::new };
                let remote = make(target, http, cards);
                (remote.clone(), probe_of(remote))
            }
            Err(reason) => {
                span.in_scope(|| tracing::warn!(reason, "the agent cannot be asked"));
                let backend = Arc::new(UnavailableBackend { reason: reason.clone() });
                (backend, Arc::new(move |_| std::future::ready(Err(reason.clone())).boxed()))
            }
        };
        let settings = ProbeSettings::from(&self.settings.spec.connectivity);
        let permits = self.factory.probe_permits.clone();
        let prober = span.in_scope(|| Prober::start(settings, probe, permits));
        Arc::new(ProbedBackend { backend, prober })
    }

    fn target(&self, spec: &InstanceSpec) -> Result<RemoteTarget, String> {
        let PlacementSettings::Remote { silence, .. } = &spec.settings else {
            return Err(NO_ADDRESS.to_owned());
        };
        let target = remote_target(&spec.agent, &self.settings.env, *silence)?;
        Ok(RemoteTarget { client_tools: self.client_tools(&spec.agent), ..target })
    }
}

fn probe_of(remote: Arc<RemoteBackend>) -> ProbeFn {
    Arc::new(move |deadline: Duration| {
        let remote = remote.clone();
        async move { remote.probe(deadline).await.map_err(|error| error.to_string()) }.boxed()
    })
}

/// Fails each delegation to an agent that cannot be reached with its settings.
#[derive(Debug)]
pub(super) struct UnavailableBackend {
    pub(super) reason: String,
}

#[async_trait]
impl AgentBackend for UnavailableBackend {
    async fn run(
        &self,
        _: Delegation,
        _: mpsc::Sender<DelegationEvent>,
        _: CancellationToken,
    ) -> DelegationEnd {
        DelegationEnd::failed(&*self.reason)
    }

    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Err(self.reason.clone())
    }
}

/// Carries out delegations that stopped in this process before their agent migrated to a remote placement. It builds
/// the agent, with its tool servers, for each delegation.
#[derive(Debug)]
pub(super) struct OnDemandBackend {
    factory: Arc<InstanceFactory>,
    settings: Arc<Settings>,
    spec: InstanceSpec,
}

impl OnDemandBackend {
    /// For an agent that is remote now; `None` if this process cannot run it.
    pub(super) fn new(
        factory: Arc<InstanceFactory>,
        settings: Arc<Settings>,
        spec: &InstanceSpec,
    ) -> Option<Arc<Self>> {
        if spec.agent.is_foreign() {
            return None;
        }
        let mut agent = spec.agent.clone();
        agent.placement = rendered::Placement::InProcess {};
        // It starts for each delegation.
        agent.mcp.iter_mut().for_each(|server| server.check = None);
        let spec = InstanceSpec::new(&settings.spec, &agent, &settings.scripts);
        Some(Arc::new(Self { factory, settings, spec }))
    }
}

#[async_trait]
impl AgentBackend for OnDemandBackend {
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd {
        // Dropping the agent stops its tool servers.
        let agent = {
            let build = self.factory.with(&self.settings);
            build.worker(&self.spec, build.toolbox(&self.spec))
        };
        InProcessBackend(agent.into()).run(delegation, events, cancel).await
    }

    /// It has no tasks of its own.
    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// The rules for the supervisor's own tools.
fn supervisor_rules(spec: &RenderedSpec) -> Vec<ToolRule> {
    let mut rules = spec.rag.as_ref().map(ToolRule::of_knowledge).unwrap_or_default();
    rules.extend(ToolRule::of_budgets(&spec.budgets.tools));
    rules
}

/// What one run may use as a whole.
fn run_budget(own: Option<&rendered::Budget>, spec: &RenderedSpec) -> Budget {
    let Some(own) = own else { return Budget::default() };
    let price = |price: &ModelPrice| {
        let ModelPrice { model, input, cached, output } = price.clone();
        (model, Price { input, cached, output })
    };
    // They are part of each stored run.
    let prices = own.cost.into_iter().flat_map(|_| spec.budgets.prices.iter().map(price)).collect();
    let (calls, tokens) = (own.calls.map(Into::into), own.tokens.map(Into::into));
    Budget { calls, tokens, cost: own.cost, prices, ..Budget::default() }
}

/// The limits of a worker that may take at most so many turns. A turn and the calls that follow it are two steps.
fn worker_limits(general: &rendered::Limits, turns: Option<u32>) -> Limits {
    let limits = limits(general);
    let steps = turns.map_or(limits.steps, |turns| limits.steps.min(turns.saturating_mul(2)));
    Limits { steps, ..limits }
}

fn limits(limits: &rendered::Limits) -> Limits {
    let Guards { repeated_calls, repeated_errors, ping_pong, empty_turns, plan_rounds } = limits.guards;
    Limits {
        guards: GuardLimits { repeated_calls, repeated_errors, ping_pong, empty_turns, plan_rounds },
        steps: limits.recursion,
        context_tokens: limits.max_context_tokens.into(),
        keep_messages: limits.min_messages_to_keep as usize,
        tool_output_chars: limits.max_tool_output_chars as usize,
        compact_lines: limits.compact_output_lines as usize,
        ..Limits::default()
    }
}

//! A trial of whole runs: the agents work with their tools and models, as in a server, for a person who is not there. Nothing is
//! stored and nobody else is served.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use caipe_engine::{
    ASK_TOOL, BoundDecision, Decision, EventKind, Form, Input, Phase, REQUEST_INPUT_TOOL, RESPONSE_TOOL,
    RunState, builtin_tools,
};
use caipe_model::{Message, Role};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::instance::Runtime;
use super::registry::{AgentRegistry, RegistryError};
use super::trial::TrialResult;
use crate::agent::Agent;
use crate::config::Settings;
use crate::delegation::RunInfo;
use crate::https::https_client;
use crate::run::{Batch, Driver, Sink, SinkError, Withdrawal};

/// What the model reads as the result of a call that needs an approval.
const NOT_APPROVED: &str =
    "Rejected: this is an evaluation, and no person is there who could approve the call. Go on without it.";

/// What the model reads as the answer to a form.
const NOT_ANSWERED: &str = "Not answered: this is an evaluation, and no person is there. Go on with what you know, or say in your \
                            answer what is missing.";

/// Most times that a run asks the absent person.
const MOST_QUESTIONS: usize = 50;

/// How long a run that is stopped may take to stop its agents.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The tools that a model calls without an event.
const UNSHOWN: [&str; 5] = ["task", "write_todos", ASK_TOOL, REQUEST_INPUT_TOOL, RESPONSE_TOOL];

/// How runs are tried.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// How long a case may take.
    pub timeout: Duration,
    /// Whether calls that need an approval run; if not, they are rejected.
    pub approve: bool,
}

/// The names of the tools that an agent of a trial can call; `None` for an agent in another process.
pub type OfferedNames = Option<BTreeSet<String>>;

/// A supervisor whose agents work.
#[derive(Debug)]
pub struct RunTrial {
    registry: Arc<AgentRegistry>,
    options: RunOptions,
    shutdown: CancellationToken,
}

impl RunTrial {
    /// Starts the supervisor and its agents, and waits until their tool servers are ready or have failed once.
    ///
    /// # Errors
    /// As [`AgentRegistry::start`].
    pub async fn start(settings: &Settings, options: RunOptions) -> Result<Self, RegistryError> {
        let shutdown = CancellationToken::new();
        let registry = AgentRegistry::start(settings.clone(), https_client()?, &shutdown)?;
        let trial = Self { registry, options, shutdown };
        let skills = trial.registry.skills();
        skills.refresh_local().await;
        tokio::spawn(skills.clone().run(trial.shutdown.clone()));
        let mut agents: Vec<Arc<Agent>> = trial.agents().into_values().flatten().collect();
        agents.push(trial.registry.supervisor());
        futures::future::join_all(agents.iter().map(|agent| agent.settled(&trial.shutdown))).await;
        Ok(trial)
    }

    /// The name of the supervisor's model.
    pub fn model(&self) -> String {
        self.registry.supervisor().model.name().to_owned()
    }

    /// The names of the tools of each agent, and of the supervisor itself, which has no name.
    pub fn offered(&self) -> BTreeMap<String, OfferedNames> {
        let own = (String::new(), Some(self.registry.supervisor()));
        let all = self.agents().into_iter().chain([own]);
        all.map(|(name, agent)| (name, agent.map(|agent| offered_names(&agent)))).collect()
    }

    /// The faults of the tool servers of an agent, a line each.
    pub fn faults(&self, agent: &str) -> Vec<String> {
        let agents = self.registry.status().agents;
        agents.into_iter().find(|it| it.name == agent).map(|it| it.faults).unwrap_or_default()
    }

    /// The agents by name; `None` for one in another process.
    fn agents(&self) -> BTreeMap<String, Option<Arc<Agent>>> {
        let instances = self.registry.instances();
        let agent = |runtime: &Runtime| match runtime {
            Runtime::InProcess(agent) => Some(agent.clone()),
            Runtime::Remote(_) => None,
        };
        instances.current().map(|(name, instance)| (name.to_string(), agent(&instance.runtime))).collect()
    }

    /// Gives the supervisor the requests of a new conversation, one after another.
    pub async fn ask(&self, prompts: &[String]) -> TrialResult {
        let (record, stop) = (SharedResult::default(), self.shutdown.child_token());
        // Stops the agents if the caller waits no longer.
        let _stops = stop.clone().drop_guard();
        let began = Instant::now();
        let mut work = pin!(self.converse(prompts, &record, &stop));
        let is_late = timeout(self.options.timeout, &mut work).await.is_err();
        if is_late {
            stop.cancel();
            drop(timeout(STOP_GRACE, work).await);
        }
        let mut result = std::mem::take(&mut *record.lock());
        if is_late {
            let seconds = self.options.timeout.as_secs();
            result.failure = Some(format!("it took longer than {seconds} s; give it more with --timeout"));
        }
        result.time = began.elapsed();
        result
    }

    async fn converse(&self, prompts: &[String], record: &SharedResult, stop: &CancellationToken) {
        let agent = self.registry.supervisor();
        let run = run_info();
        let mut state = RunState { scope: run.context.to_string(), ..RunState::new(agent.name.clone()) };
        for prompt in prompts {
            let message = Arc::new(Message::text(Role::User, prompt.as_str()));
            let input = Input::Message { message, abilities: agent.abilities(&run) };
            match self.run(&agent, (&run, state), input, (record, stop)).await {
                Ok(ended) if record.lock().failure.is_none() => state = ended,
                Ok(_) => return,
                Err(SinkError(reason)) => {
                    record.lock().failure = Some(reason);
                    return;
                }
            }
        }
    }

    /// Runs to the end, deciding what waits for a person.
    async fn run(
        &self,
        agent: &Arc<Agent>,
        (run, mut state): (&RunInfo, RunState),
        mut input: Input,
        (record, stop): (&SharedResult, &CancellationToken),
    ) -> Result<RunState, SinkError> {
        let mut sink =
            RecordingSink { agent: agent.clone(), record: record.clone(), earlier: record.lock().tokens };
        for _ in 0..MOST_QUESTIONS {
            let limit = agent.time_limit;
            let driver = Driver::new(agent.clone(), run.clone(), state, sink, stop.clone(), limit);
            (state, sink) = driver.run(input).await.map_err(|(error, _)| error)?;
            if state.phase != Phase::Waiting {
                return Ok(state);
            }
            input = self.decide(&state, record);
        }
        Err(SinkError(format!("it asked a person {MOST_QUESTIONS} times, and nobody is there")))
    }

    /// The decisions about all calls that wait for a person.
    fn decide(&self, state: &RunState, record: &SharedResult) -> Input {
        let calls = state.questions().into_iter().flat_map(Form::calls);
        let decisions = calls.map(|call| {
            let decision = if !call.is_approval() {
                record.lock().notes.push(format!("not answered: {}", asked(state, &call, "form")));
                Decision::Reject { message: NOT_ANSWERED.to_owned() }
            } else if self.options.approve {
                Decision::Approve
            } else {
                let call = asked(state, &call, &call.action);
                record.lock().notes.push(format!("rejected, because it needs an approval: {call}"));
                Decision::Reject { message: NOT_APPROVED.to_owned() }
            };
            BoundDecision::about(&call, decision)
        });
        Input::Decided { decisions: decisions.collect() }
    }

    /// Stops all tool servers.
    pub async fn shutdown(&self) {
        drop(timeout(STOP_GRACE, self.registry.shutdown()).await);
    }
}

impl Drop for RunTrial {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// The run of a new conversation. The supervisor counts what its agents use, because it has a limit without numbers.
fn run_info() -> RunInfo {
    let id = || -> Arc<str> { Uuid::new_v4().simple().to_string().into() };
    let remaining = Some(Arc::default());
    RunInfo { context: id(), task: id(), trace_id: id(), remaining, ..RunInfo::default() }
}

/// The names of the tools whose calls are recorded.
fn offered_names(agent: &Agent) -> BTreeSet<String> {
    let abilities = agent.abilities(&RunInfo::default());
    let own = builtin_tools(&abilities).into_iter().map(|tool| tool.name);
    let own: Vec<String> = own.filter(|name| !UNSHOWN.contains(&name.as_str())).collect();
    abilities.tools.into_iter().chain(own).collect()
}

/// A call that waits, after the agent that makes it.
fn asked(state: &RunState, call: &Form, name: &str) -> String {
    let agent = state.asking_agent(&call.id).filter(|agent| **agent != state.agent);
    agent.map_or_else(|| name.to_owned(), |agent| format!("{agent}/{name}"))
}

/// The result so far, which outlives a run that is stopped.
#[derive(Debug, Clone, Default)]
struct SharedResult(Arc<Mutex<TrialResult>>);

impl SharedResult {
    fn lock(&self) -> MutexGuard<'_, TrialResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the events of a run, and stores nothing.
struct RecordingSink {
    agent: Arc<Agent>,
    record: SharedResult,
    /// The tokens of earlier requests of the conversation.
    earlier: u64,
}

impl RecordingSink {
    /// Cancels the task of a remote agent in the background.
    fn withdraw(&self, Withdrawal { agent, task, .. }: Withdrawal) {
        let Some(lease) = self.agent.lease(&agent, None) else { return };
        tokio::spawn(async move {
            if let Err(reason) = lease.backend.cancel_task(&task).await {
                tracing::warn!(%agent, reason, "failed to cancel the task of a remote agent");
            }
        });
    }
}

#[async_trait]
impl Sink for RecordingSink {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        batch.withdrawals.into_iter().for_each(|withdrawal| self.withdraw(withdrawal));
        let mut record = self.record.lock();
        for event in batch.events {
            if let (EventKind::DelegationStarted { call, agent }, true) = (&event.kind, event.path.is_empty())
            {
                record.delegations.push((agent.to_string(), task_of(state, call)));
            }
            record.record(event);
        }
        let mut tokens = self.earlier;
        state.visit(&mut |_, run| tokens += run.counters.spent.tokens);
        record.tokens = tokens;
        Ok(())
    }
}

/// The task that a call hands over.
fn task_of(state: &RunState, call: &str) -> String {
    let call = state.calls.iter().find(|own| own.id == call);
    let task = call.and_then(|call| call.arguments.get("description")?.as_str());
    task.unwrap_or_default().to_owned()
}

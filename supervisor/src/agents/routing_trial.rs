//! A trial of a supervisor's routing: its model gets a request, and every agent and tool that it calls gets a fixed answer. No
//! agent works and no tool runs, so that a trial costs a few model turns and changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caipe_engine::{
    AgentName, DelegateUpdate, DelegationOutcome, Effect, EventKind, Input, ModelFailure, Outcome, RunState,
    ToolOutput, decide,
};
use caipe_model::{Completion, Message, ModelErrorKind, ModelEvent, Role};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::builder::{InstanceFactory, UnavailableBackend};
use super::registry::RegistryError;
use crate::agent::{Agent, Delegate};
use crate::config::Settings;
use crate::delegation::RunInfo;
use crate::skills;

/// What the model reads as the answer of each agent.
const AGENT_ANSWER: &str = "(This is a trial: the agent has not worked. Answer as if its work were done.)";

/// What the model reads as the result of each tool.
const TOOL_RESULT: &str = "(This is a trial: the tool was not run. Go on as if it had succeeded.)";

/// Most model turns of a trial.
const MOST_TURNS: u32 = 12;

/// What a supervisor did with a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Routed {
    /// The agents that it delegated to, in order, each with the task.
    pub delegations: Vec<(String, String)>,
    /// The tools that it called, in order.
    pub tools: Vec<String>,
    /// Its answer, or what it asked the person.
    pub answer: String,
    /// Why there is no answer.
    pub failure: Option<String>,
    /// Tokens that the model read and wrote.
    pub tokens: u64,
    pub time: Duration,
}

/// A supervisor whose agents do not work.
#[derive(Debug)]
pub struct RoutingTrial {
    agent: Agent,
    shutdown: CancellationToken,
}

impl RoutingTrial {
    /// The supervisor of these settings. Its own tool servers start. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// As [`AgentRegistry::start`](super::AgentRegistry::start).
    pub fn start(settings: &Settings) -> Result<Self, RegistryError> {
        let shutdown = CancellationToken::new();
        let service = skills::service(settings)?;
        let factory = InstanceFactory::new(reqwest::Client::new(), service, shutdown.clone())?;
        let delegates = settings.spec.agents.iter().map(|agent| {
            let delegate = Delegate {
                backend: Arc::new(UnavailableBackend { reason: AGENT_ANSWER.to_owned() }),
                active: TaskTracker::new(),
                title: agent.title.clone(),
                routing_hint: agent.routing_hint.clone(),
            };
            (AgentName::new(&agent.name), delegate)
        });
        factory.delegates.replace(delegates, []);
        let build = factory.with(settings);
        Ok(Self { agent: build.supervisor(build.supervisor_toolbox()), shutdown })
    }

    /// The name of the model that routes.
    pub fn model(&self) -> &str {
        self.agent.model.name()
    }

    /// Gives the supervisor a request of a new conversation.
    pub async fn ask(&self, prompt: &str) -> Routed {
        self.agent.settled(&self.shutdown).await;
        let mut state = RunState::new(self.agent.name.clone());
        let (mut routed, began) = (Routed::default(), Instant::now());
        let mut abilities = self.agent.abilities(&RunInfo::default());
        abilities.limits.steps = MOST_TURNS * 2;
        let message = Arc::new(Message::text(Role::User, prompt));
        let mut inputs = VecDeque::from([Input::Message { message, abilities }]);
        while let Some(input) = inputs.pop_front() {
            for effect in decide(&mut state, input) {
                inputs.extend(self.perform(effect, &state, &mut routed).await);
            }
        }
        routed.tokens = state.counters.usage.input_tokens + state.counters.usage.output_tokens;
        routed.time = began.elapsed();
        routed
    }

    /// Records an effect. Returns its result, if it has one.
    async fn perform(&self, effect: Effect, state: &RunState, routed: &mut Routed) -> Option<Input> {
        match effect {
            Effect::CallModel { turn, tools } => {
                let result = self.turn(state, tools).await;
                Some(match result {
                    Ok(completion) => Input::ModelFinished { turn, completion },
                    Err(error) => Input::ModelFailed { turn, error },
                })
            }
            Effect::Delegate { call, agent, prompt, .. } => {
                routed.delegations.push((agent.to_string(), prompt));
                let outcome = DelegationOutcome::Completed { text: AGENT_ANSWER.to_owned() };
                Some(Input::Delegate { call, update: DelegateUpdate::Finished { outcome } })
            }
            Effect::CallTool { call, tool, .. } => {
                routed.tools.push(tool);
                Some(Input::ToolFinished { call, output: ToolOutput::ok(TOOL_RESULT), time_ms: 0 })
            }
            Effect::Emit(event) => {
                match event.kind {
                    EventKind::InputRequired { form } => routed.answer = form.description,
                    EventKind::Finished { outcome: Outcome::Completed { text, .. } } => routed.answer = text,
                    EventKind::Finished { outcome: Outcome::Failed { reason } } => {
                        routed.failure = Some(reason);
                    }
                    _ => {}
                }
                None
            }
            Effect::Abort { .. } | Effect::Withdraw { .. } | Effect::Finish => None,
        }
    }

    async fn turn(&self, state: &RunState, tools: bool) -> Result<Completion, ModelFailure> {
        let request = self.agent.request(state, tools);
        let mut stream = self.agent.next_model(state).stream(request, self.shutdown.child_token());
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::Finish(completion)) => return Ok(completion),
                Ok(_) => {}
                Err(error) => return Err(ModelFailure::from(&error)),
            }
        }
        let message = "the model's stream ended without an answer".to_owned();
        Err(ModelFailure { kind: ModelErrorKind::Truncated, message })
    }
}

impl Drop for RoutingTrial {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

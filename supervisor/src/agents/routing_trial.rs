//! A trial of a supervisor's routing: its model gets a request, and every agent and tool that it calls gets a fixed answer. No
//! agent works and no tool runs, so that a trial costs a few model turns and changes nothing.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use caipe_engine::{
    AgentName, DelegateUpdate, DelegationOutcome, Effect, Input, ModelFailure, RunState, ToolOutput, decide,
};
use caipe_model::{Completion, Message, Role, complete};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::builder::{InstanceFactory, UnavailableBackend};
use super::registry::RegistryError;
use super::trial::TrialResult;
use crate::agent::{Agent, Delegate, sharing};
use crate::config::Settings;
use crate::delegation::RunInfo;
use crate::https::https_client;
use crate::skills;

/// What the model reads as the answer of each agent.
const AGENT_ANSWER: &str = "(This is a trial: the agent has not worked. Answer as if its work were done.)";

/// What the model reads as the result of each tool.
const TOOL_RESULT: &str = "(This is a trial: the tool was not run. Go on as if it had succeeded.)";

/// Most model turns of a trial.
const MOST_TURNS: u32 = 12;

/// A supervisor whose agents do not work.
#[derive(Debug)]
pub struct RoutingTrial {
    agent: Agent,
    shutdown: CancellationToken,
}

impl RoutingTrial {
    /// The supervisor of these settings, once its own tool servers have started.
    ///
    /// # Errors
    /// As [`AgentRegistry::start`](super::AgentRegistry::start).
    pub async fn start(settings: &Settings) -> Result<Self, RegistryError> {
        let shutdown = CancellationToken::new();
        let service = skills::service(settings)?;
        let factory = InstanceFactory::new(https_client()?, service, shutdown.clone())?;
        let delegates = settings.spec.agents.iter().map(|agent| {
            let delegate = Delegate {
                backend: Arc::new(UnavailableBackend { reason: AGENT_ANSWER.to_owned() }),
                active: TaskTracker::new(),
                title: agent.title.clone(),
                routing_hint: agent.routing_hint.clone(),
                sharing: sharing(agent),
            };
            (AgentName::new(&agent.name), delegate)
        });
        factory.delegates.replace(delegates, []);
        let build = factory.with(settings);
        // The model reads the same tools as in a run.
        factory.skills.refresh_local().await;
        let trial = Self { agent: build.supervisor(build.supervisor_toolbox()), shutdown };
        trial.agent.settled(&trial.shutdown).await;
        Ok(trial)
    }

    /// The name of the model that routes.
    pub fn model(&self) -> &str {
        self.agent.model.name()
    }

    /// The names of the supervisor's own tools.
    pub fn offered(&self) -> BTreeSet<String> {
        self.agent.abilities(&RunInfo::default()).tools
    }

    /// Gives the supervisor the requests of a new conversation, one after another.
    pub async fn ask(&self, prompts: &[String]) -> TrialResult {
        let mut state = RunState::new(self.agent.name.clone());
        let (mut result, began) = (TrialResult::default(), Instant::now());
        for prompt in prompts {
            self.run(&mut state, prompt, &mut result).await;
            let usage = state.counters.usage;
            result.tokens += usage.input_tokens + usage.output_tokens;
        }
        result.time = began.elapsed();
        result
    }

    async fn run(&self, state: &mut RunState, prompt: &str, result: &mut TrialResult) {
        let mut abilities = self.agent.abilities(&RunInfo::default());
        abilities.limits.steps = MOST_TURNS * 2;
        let message = Arc::new(Message::text(Role::User, prompt));
        let mut inputs = VecDeque::from([Input::Message { message, abilities }]);
        while let Some(input) = inputs.pop_front() {
            for effect in decide(state, input) {
                inputs.extend(self.perform(effect, state, result).await);
            }
        }
    }

    /// Records an effect. Returns its result, if it has one.
    async fn perform(&self, effect: Effect, state: &RunState, result: &mut TrialResult) -> Option<Input> {
        match effect {
            Effect::CallModel { turn, tools } => {
                let completion = self.turn(state, tools).await;
                Some(match completion {
                    Ok(completion) => Input::ModelFinished { turn, completion },
                    Err(error) => Input::ModelFailed { turn, error },
                })
            }
            Effect::Delegate { call, agent, prompt, .. } => {
                result.delegations.push((agent.to_string(), prompt));
                let outcome = DelegationOutcome::Completed { text: AGENT_ANSWER.to_owned() };
                Some(Input::Delegate { call, update: DelegateUpdate::Finished { outcome } })
            }
            Effect::CallTool { call, .. } => {
                Some(Input::ToolFinished { call, output: ToolOutput::ok(TOOL_RESULT), time_ms: 0 })
            }
            Effect::Emit(event) => {
                result.record(event);
                None
            }
            Effect::Abort { .. } | Effect::Withdraw { .. } | Effect::Finish => None,
        }
    }

    async fn turn(&self, state: &RunState, tools: bool) -> Result<Completion, ModelFailure> {
        let request = self.agent.request(state, tools);
        let model = self.agent.next_model(state);
        complete(&**model, request, self.shutdown.child_token())
            .await
            .map_err(|error| ModelFailure::from(&error))
    }
}

impl Drop for RoutingTrial {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

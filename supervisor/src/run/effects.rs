//! Carries out the effects that the engine decides: model turns, tool calls, delegations.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use caipe_engine::{AgentName, CallId, Effect, Input, Resume, RunState, ToolOutput};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::driver::{EffectRunner, QueuedInput};
use super::model_turn::ModelTurn;
use crate::agent::BackendLease;
use crate::delegation::{Delegation, DelegationEnd, DelegationEvent, RunInfo};
use crate::metrics::metrics;
use crate::tools::{Caller, Progress, RunStatus};

/// Events of a delegation that may wait for the driver; a slow driver slows the reading of the agent's stream.
const EVENT_QUEUE: usize = 64;

/// Lines of progress of a tool that may wait for the driver.
const PROGRESS_QUEUE: usize = 16;

impl EffectRunner {
    /// Starts the effect; its results come back as inputs.
    pub(super) fn run_effect(&mut self, effect: Effect, state: &RunState) {
        match effect {
            Effect::CallModel { turn, tools } => {
                let request = self.agent.request(state, tools);
                self.turn = ModelTurn::start(&self.agent, state, (turn, request), self.scope.child_token());
            }
            Effect::CallTool { call, tool, arguments } => self.call_tool(call, tool, arguments, state),
            Effect::Delegate { call, agent, prompt, resume } => {
                // A person may have allowed more since the run began.
                if *self.run.always_allowed != state.always_allowed {
                    self.run.always_allowed = Arc::new(state.always_allowed.clone());
                }
                let own = state.calls.iter().find(|own| own.id == call);
                let approved = own.map(|own| own.approved.as_slice()).unwrap_or_default().into();
                // A run that is part of a limited one is limited itself, unless the outer one only counts.
                let remaining = state.remaining_budget().map(Arc::new).or_else(|| self.run.remaining.clone());
                let scratchpad = self.agent.shared_with(&agent, state);
                // The client answers the calls of this agent only.
                let client_tools = Arc::default();
                let run = RunInfo { approved, remaining, scratchpad, client_tools, ..self.run.clone() };
                self.delegate(call, &agent, prompt, resume, run);
            }
            Effect::Abort { calls } => self.abort(&calls),
            Effect::Finish => self.stop(),
            // Part of the commit.
            Effect::Emit(_) | Effect::Withdraw { .. } => {}
        }
    }

    fn call_tool(&mut self, call: CallId, tool: String, arguments: Value, state: &RunState) {
        let cancel = self.token_for(&call);
        let sender = self.sender.clone();
        let (progress, received) = mpsc::channel(PROGRESS_QUEUE);
        let files = state.files.clone();
        let span = tracing::debug_span!("tool", agent = %self.agent.name, tool);
        let source = self.agent.tools.source_of(&tool);
        let status = source.reads_status().then(|| {
            let (abilities, counters) = (state.abilities.clone(), &state.counters);
            Arc::new(RunStatus { abilities, spent: counters.spent, tools: counters.budgets.clone() })
        });
        let caller = Caller { call: call.clone(), run: self.run.clone(), files, progress, status };
        let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        let work = async move {
            let started = Instant::now();
            let running = AssertUnwindSafe(source.call(&tool, arguments, caller, cancel)).catch_unwind();
            let (ran, ()) = tokio::join!(running, forward_progress(&call, received, &sender));
            let output = ran.unwrap_or_else(|_| broken(&tool));
            metrics().tool_ended(output.is_error);
            let time_ms = started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
            let _ = sender.send(Input::ToolFinished { call, output, time_ms }.into()).await;
        };
        tokio::spawn(work.instrument(span));
    }

    fn delegate(
        &mut self,
        call: CallId,
        agent: &AgentName,
        prompt: String,
        resume: Option<Resume>,
        run: RunInfo,
    ) {
        let cancel = self.peers.child_token();
        self.calls.insert(call.clone(), cancel.clone());
        let sender = self.sender.clone();
        let lease = self.agent.lease(agent, resume.as_ref());
        let span = tracing::debug_span!("delegation", agent = %agent);
        let Some(lease) = lease else {
            let reason = format!("agent {agent} is not available any more");
            let update = DelegationEnd::failed(reason).into();
            tokio::spawn(async move { sender.send(Input::Delegate { call, update }.into()).await });
            return;
        };
        let delegation = Delegation { call, agent: agent.clone(), prompt, resume, run };
        tokio::spawn(run_delegation(lease, delegation, sender, cancel).instrument(span));
    }

    fn abort(&mut self, calls: &[CallId]) {
        for call in calls {
            if let Some(token) = self.calls.remove(call) {
                token.cancel();
            }
        }
    }

    fn token_for(&mut self, call: &CallId) -> CancellationToken {
        let token = self.scope.child_token();
        self.calls.insert(call.clone(), token.clone());
        token
    }
}

/// Runs a delegation, and passes its events and its end to the driver.
async fn run_delegation(
    lease: BackendLease,
    delegation: Delegation,
    inputs: mpsc::Sender<QueuedInput>,
    cancel: CancellationToken,
) {
    let call = delegation.call.clone();
    let (events, received) = mpsc::channel(EVENT_QUEUE);
    let running = AssertUnwindSafe(lease.backend.run(delegation, events, cancel.clone())).catch_unwind();
    let running = async { tokio::join!(running, forward_events(&call, received, &inputs)).0 };
    let end = tokio::select! {
        biased;
        end = running => end,
        () = run_left(&inputs, &cancel) => return,
    };
    let end = end.unwrap_or_else(|_| DelegationEnd::failed("the agent stopped without an answer"));
    metrics().delegation_ended(&end);
    // Released before the end is sent, so that the delegation does not count as active when its end is processed.
    drop(lease);
    let _ = inputs.send(Input::Delegate { call, update: end.into() }.into()).await;
}

async fn forward_events(
    call: &CallId,
    mut events: mpsc::Receiver<DelegationEvent>,
    inputs: &mpsc::Sender<QueuedInput>,
) {
    while let Some(DelegationEvent { update, committed }) = events.recv().await {
        let input = Input::Delegate { call: call.clone(), update };
        if inputs.send(QueuedInput { input: Box::new(input), committed }).await.is_err() {
            return;
        }
    }
}

/// Waits until the run is left for the next process. If it was cancelled instead, the backend ends by itself.
async fn run_left(inputs: &mpsc::Sender<QueuedInput>, cancel: &CancellationToken) {
    inputs.closed().await;
    if cancel.is_cancelled() {
        std::future::pending::<()>().await;
    }
}

/// The output of a tool that panicked.
fn broken(tool: &str) -> ToolOutput {
    tracing::error!(tool, "a tool panicked");
    ToolOutput::error(format!("The tool `{tool}` broke down. Go on without it."))
}

/// Passes the progress of a tool to the driver until the tool ends.
async fn forward_progress(
    call: &CallId,
    mut received: mpsc::Receiver<Progress>,
    sender: &mpsc::Sender<QueuedInput>,
) {
    while let Some(progress) = received.recv().await {
        let call = call.clone();
        let input = match progress {
            Progress::Line { agent, text } => Input::ToolProgress { call, agent, text },
            Progress::AsksClient => Input::CallClient { call },
        };
        let _ = sender.send(input.into()).await;
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;

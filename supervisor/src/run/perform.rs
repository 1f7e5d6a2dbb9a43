//! Carries out what the engine decided: model turns, tool calls, delegations.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use caipe_engine::{
    AgentName, CallId, DelegateUpdate, DelegationOutcome, Effect, Input, ModelDelta, ModelFailure, Resume,
    ResumePoint, RunState, ToolOutput,
};
use caipe_model::{ChatRequest, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use futures::{FutureExt, StreamExt};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::driver::{Incoming, Performer};
use crate::agents::{Agent, Delegation, Update, Updates};
use crate::tools::{self, A2aTools, Caller, Progress};

/// Lines of progress that may wait for the driver; a slow one slows the reading of the agent's stream down.
const PROGRESS_QUEUE: usize = 16;

impl Performer {
    /// Starts the effect; its results come back as inputs.
    pub(super) fn perform(&mut self, effect: Effect, state: &RunState) {
        match effect {
            Effect::CallModel { turn, tools } => self.call_model(turn, self.agent.request(state, tools)),
            Effect::CallTool { call, tool, arguments } => self.call_tool(call, tool, arguments),
            Effect::Delegate { call, agent, prompt, resume } => self.delegate(call, &agent, prompt, resume),
            Effect::Abort { calls } => self.abort(&calls),
            Effect::Withdraw { call, agent, from } => self.withdraw(call, agent, from),
            Effect::Finish => self.stop(),
            Effect::Emit(_) => {}
        }
    }

    /// A new turn takes the place of the one under way, which ends: nobody pays for what nobody reads.
    fn call_model(&mut self, turn: u32, request: ChatRequest) {
        let model = self.agent.model.clone();
        let cancel = self.scope.child_token();
        self.turn = Some(cancel.clone().drop_guard());
        let stream = model.stream(request, cancel);
        let sender = self.sender.clone();
        let span = tracing::debug_span!("model", agent = %self.agent.name, turn, model = model.name());
        tokio::spawn(pump_model(turn, stream, sender, self.agent.streaming).instrument(span));
    }

    fn call_tool(&mut self, call: CallId, tool: String, arguments: Value) {
        let cancel = self.token_for(&call);
        let (agent, sender) = (self.agent.clone(), self.sender.clone());
        let (progress, told) = mpsc::channel(PROGRESS_QUEUE);
        let caller = Caller { call: call.clone(), run: self.run.clone(), progress };
        let span = tracing::debug_span!("tool", agent = %agent.name, tool);
        let work = async move {
            let running = AssertUnwindSafe(run_tool(&agent, &tool, arguments, caller, cancel)).catch_unwind();
            let (ran, ()) = tokio::join!(running, pump_progress(&call, told, &sender));
            let output = ran.unwrap_or_else(|_| broken(&tool));
            let _ = sender.send(Input::ToolFinished { call, output }.into()).await;
        };
        tokio::spawn(work.instrument(span));
    }

    fn delegate(&mut self, call: CallId, agent: &AgentName, prompt: String, resume: Option<Resume>) {
        let cancel = self.peers.child_token();
        self.calls.insert(call.clone(), cancel.clone());
        let sender = self.sender.clone();
        let home = self.agent.home(agent, resume.as_ref());
        let delegation =
            Delegation { call: call.clone(), agent: agent.clone(), prompt, resume, run: self.run.clone() };
        let Some(home) = home else {
            let update = DelegateUpdate::Finished {
                outcome: DelegationOutcome::Failed {
                    reason: format!("agent {agent} is not available any more"),
                },
            };
            tokio::spawn(async move { sender.send(Input::Delegate { call, update }.into()).await });
            return;
        };
        let span = tracing::debug_span!("delegation", agent = %agent);
        let updates = home.run(delegation, cancel);
        tokio::spawn(pump_updates(call, updates, sender).instrument(span));
    }

    fn abort(&mut self, calls: &[CallId]) {
        for call in calls {
            if let Some(token) = self.calls.remove(call) {
                token.cancel();
            }
        }
    }

    /// Has a remote agent stop a task whose question nobody will answer. Outlives the run, within the home's own limits.
    fn withdraw(&self, call: CallId, agent: AgentName, from: ResumePoint) {
        let resume = Some(Resume { from: Some(from), answered: None });
        let Some(home) = self.agent.home(&agent, resume.as_ref()) else { return };
        let delegation = Delegation { call, agent, prompt: String::new(), resume, run: self.run.clone() };
        let cancel = CancellationToken::new();
        cancel.cancel();
        let mut updates = home.run(delegation, cancel);
        tokio::spawn(async move { while updates.next().await.is_some() {} }.in_current_span());
    }

    fn token_for(&mut self, call: &CallId) -> CancellationToken {
        let token = self.scope.child_token();
        self.calls.insert(call.clone(), token.clone());
        token
    }
}

/// Hands news of a delegation to the driver. One whose home falls silent has failed: nobody waits for it for ever.
async fn pump_updates(call: CallId, mut updates: Updates, sender: mpsc::Sender<Incoming>) {
    let incoming = |Update { news: update, kept }| {
        let input = Input::Delegate { call: call.clone(), update };
        Incoming { input, kept }
    };
    while let Some(update) = next_update(&mut updates, &sender).await {
        let last = update.is_last();
        if sender.send(incoming(update)).await.is_err() || last {
            return;
        }
    }
    if sender.is_closed() {
        return;
    }
    let reason = "the agent stopped without an answer".to_owned();
    let silent = DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { reason } };
    let _ = sender.send(incoming(silent.into())).await;
}

/// The next news; nothing once nobody listens any more, and there is none to hand on.
async fn next_update(updates: &mut Updates, sender: &mpsc::Sender<Incoming>) -> Option<Update> {
    tokio::select! {
        biased;
        update = updates.next() => update,
        () = sender.closed() => None,
    }
}

/// What the model reads of a tool that broke down in our own code.
fn broken(tool: &str) -> ToolOutput {
    tracing::error!(tool, "a tool panicked");
    ToolOutput { content: format!("The tool `{tool}` broke down. Go on without it."), is_error: true }
}

/// Hands a model turn to the driver, piece by piece.
async fn pump_model(turn: u32, mut stream: ModelStream, sender: mpsc::Sender<Incoming>, live: bool) {
    while let Some(item) = stream.next().await {
        let Some(input) = model_input(turn, item) else { continue };
        if !live && matches!(input, Input::ModelDelta { .. }) {
            continue;
        }
        let last = matches!(input, Input::ModelFinished { .. } | Input::ModelFailed { .. });
        if sender.send(input.into()).await.is_err() || last {
            return;
        }
    }
    let error = ModelFailure {
        kind: ModelErrorKind::Truncated,
        message: "the model's stream ended without an answer".to_owned(),
    };
    let _ = sender.send(Input::ModelFailed { turn, error }.into()).await;
}

fn model_input(turn: u32, item: Result<ModelEvent, ModelError>) -> Option<Input> {
    let delta = match item {
        Ok(ModelEvent::TextDelta(text)) => ModelDelta::Text { text },
        Ok(ModelEvent::ToolCallStart { id, name }) => ModelDelta::CallStart { id, name },
        Ok(ModelEvent::ToolArgsDelta { id, delta }) => ModelDelta::CallArguments { id, text: delta },
        Ok(ModelEvent::ReasoningDelta(_)) => return None,
        Ok(ModelEvent::Finish(completion)) => return Some(Input::ModelFinished { turn, completion }),
        Err(error) if error.kind == ModelErrorKind::Cancelled => {
            return Some(Input::ModelFailed { turn, error: ModelFailure::from(&error) });
        }
        Err(error) => {
            tracing::warn!(kind = error.kind.category(), %error, "model turn failed");
            return Some(Input::ModelFailed { turn, error: ModelFailure::from(&error) });
        }
    };
    Some(Input::ModelDelta { turn, delta })
}

/// Hands what an agent says that a tool asks to the driver, until the tool is done.
async fn pump_progress(call: &CallId, mut told: mpsc::Receiver<Progress>, sender: &mpsc::Sender<Incoming>) {
    while let Some(Progress { agent, text }) = told.recv().await {
        let _ = sender.send(Input::ToolProgress { call: call.clone(), agent, text }.into()).await;
    }
}

async fn run_tool(
    agent: &Arc<Agent>,
    tool: &str,
    arguments: Value,
    caller: Caller,
    cancel: CancellationToken,
) -> ToolOutput {
    let arguments: Map<String, Value> = match arguments {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    // A server's tool takes the place of a built-in one of the same name.
    if agent.toolbox.has(tool) {
        return agent.toolbox.call(tool, arguments, cancel).await;
    }
    if let Some(a2a) = agent.a2a.as_ref().filter(|_| A2aTools::tools().any(|name| name == tool)) {
        return a2a.call(tool, &arguments, caller, cancel).await;
    }
    if let Some(output) = tools::call(tool, &arguments, cancel.clone()).await {
        return output;
    }
    agent.toolbox.call(tool, arguments, cancel).await
}

#[cfg(test)]
#[path = "perform_tests.rs"]
mod tests;

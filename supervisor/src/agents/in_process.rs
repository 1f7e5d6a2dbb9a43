//! The home of an agent in this process: the same engine, on a nested frame.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::{
    DelegateUpdate, DelegationOutcome, EventKind, Form, Input, Outcome, Resume, ResumePoint, RunEvent,
    RunState,
};
use caipe_model::{Message, Role};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::agent::Agent;
use super::home::{Delegation, Home, Updates};
use crate::run::{Batch, Driver, Sink, SinkError};

/// Updates that may wait for the delegating run.
const UPDATE_QUEUE: usize = 64;

/// An agent in this process.
#[derive(Debug, Clone)]
pub struct InProcess(pub Arc<Agent>);

impl Home for InProcess {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let (sender, receiver) = mpsc::channel(UPDATE_QUEUE);
        let work = run_nested(self.0.clone(), delegation, sender, cancel);
        tokio::spawn(work.in_current_span());
        futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|update| (update, receiver))
        })
        .boxed()
    }
}

async fn run_nested(
    agent: Arc<Agent>,
    delegation: Delegation,
    sender: mpsc::Sender<DelegateUpdate>,
    cancel: CancellationToken,
) {
    agent.settled(&cancel).await;
    let (state, first) = opening(&agent, delegation.prompt, delegation.resume);
    let sink = Upward { sender: sender.clone(), form: None, outcome: None };
    let driver = Driver::new(agent, delegation.run, state, sink, cancel, None);
    let last = match driver.run(first).await {
        Ok((_, sink)) => sink.last(),
        Err((SinkError(reason), _)) => {
            DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { reason } }
        }
    };
    let _ = sender.send(last).await;
}

/// The state and the input that a delegation begins with.
fn opening(agent: &Agent, prompt: String, resume: Option<Resume>) -> (RunState, Input) {
    let begin = || {
        let message = Arc::new(Message::text(Role::User, prompt));
        (RunState::new(agent.name.clone()), Input::Message { message, abilities: agent.abilities() })
    };
    match resume {
        Some(Resume { from: Some(ResumePoint::Nested(frame)), decision: Some(decision) }) => {
            (*frame, Input::Decided { decisions: vec![decision] })
        }
        Some(Resume { from: Some(ResumePoint::Nested(frame)), decision: None }) => (*frame, Input::Recovered),
        _ => begin(),
    }
}

/// Passes what a nested run decides up to the run that asked for it, which keeps and shows it.
struct Upward {
    sender: mpsc::Sender<DelegateUpdate>,
    form: Option<Form>,
    outcome: Option<Outcome>,
}

impl Upward {
    /// The update that ends the delegation.
    fn last(self) -> DelegateUpdate {
        let failed = |reason: &str| DelegationOutcome::Failed { reason: reason.to_owned() };
        let outcome = match (self.outcome, self.form) {
            (Some(Outcome::Completed { text, .. }), _) => DelegationOutcome::Completed { text },
            (Some(Outcome::Failed { reason }), _) => DelegationOutcome::Failed { reason },
            (Some(Outcome::Canceled), _) => DelegationOutcome::Canceled,
            (Some(Outcome::InputRequired), Some(form)) => return DelegateUpdate::Asks { form },
            _ => failed("the agent stopped without an answer"),
        };
        DelegateUpdate::Finished { outcome }
    }

    /// What of an event goes up: the agent's calls, not its words, which come once, as its answer.
    fn forward(&mut self, event: RunEvent) -> Option<RunEvent> {
        if !event.path.is_empty() {
            return Some(event);
        }
        match event.kind {
            EventKind::ToolStarted { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::DelegationStarted { .. }
            | EventKind::DelegationFinished { .. } => return Some(event),
            EventKind::InputRequired { form } => self.form = Some(form),
            EventKind::Finished { outcome } => self.outcome = Some(outcome),
            _ => {}
        }
        None
    }
}

#[async_trait]
impl Sink for Upward {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        let closed = |_| SinkError("the run that asked for this is gone".to_owned());
        if batch.snapshot || !batch.appends.is_empty() {
            let update = DelegateUpdate::Checkpoint { frame: Box::new(state.clone()) };
            self.sender.send(update).await.map_err(closed)?;
        }
        for event in batch.events {
            if let Some(event) = self.forward(event) {
                self.sender.send(DelegateUpdate::Event { event }).await.map_err(closed)?;
            }
        }
        Ok(())
    }
}

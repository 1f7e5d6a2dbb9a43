//! The home of an agent in this process: the same engine, on a nested frame.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::{
    DelegateUpdate, DelegationOutcome, EventKind, Form, Input, Outcome, Phase, Resume, ResumePoint, RunEvent,
    RunState,
};
use caipe_model::{Message, Role};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::agent::Agent;
use super::home::{Delegation, Home, MOVED, Update, Updates};
use super::question::one_form;
use crate::run::{Batch, Driver, RunInfo, Sink, SinkError};

/// Updates that may wait for the delegating run.
const UPDATE_QUEUE: usize = 64;

/// An agent in this process.
#[derive(Debug, Clone)]
pub struct InProcess(pub Arc<Agent>);

impl Home for InProcess {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let (sender, receiver) = mpsc::channel(UPDATE_QUEUE);
        // Whoever does not listen any more wants nothing done any more.
        let heard = cancel.child_token();
        let work = run_nested(self.0.clone(), delegation, sender, heard.clone());
        tokio::spawn(work.in_current_span());
        futures::stream::unfold((receiver, heard.drop_guard()), |(mut receiver, heard)| async {
            receiver.recv().await.map(|update| (update, (receiver, heard)))
        })
        .boxed()
    }
}

async fn run_nested(
    agent: Arc<Agent>,
    delegation: Delegation,
    sender: mpsc::Sender<Update>,
    cancel: CancellationToken,
) {
    agent.settled(&cancel).await;
    let run = delegation.run;
    let last = match opening(&agent, &run, delegation.prompt, delegation.resume) {
        Opening::Asks(form) => DelegateUpdate::Asks { form },
        Opening::Elsewhere => {
            DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { reason: MOVED.to_owned() } }
        }
        Opening::Run(state, first) => {
            let sink = Upward::new(agent.name.as_str(), run.agents_words, sender.clone());
            match Driver::new(agent, run, *state, sink, cancel, None).run(first).await {
                Ok((_, sink)) => sink.last(),
                Err((SinkError(reason), _)) => {
                    DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { reason } }
                }
            }
        }
    };
    let _ = sender.send(last.into()).await;
}

/// What a delegation begins with.
#[derive(Debug)]
enum Opening {
    /// A run.
    Run(Box<RunState>, Input),
    /// The question that it stopped at, which nobody has answered yet.
    Asks(Form),
    /// Nothing: it was begun by another process, which this one cannot take over from.
    Elsewhere,
}

fn opening(agent: &Agent, run: &RunInfo, prompt: String, resume: Option<Resume>) -> Opening {
    let (frame, answered) = match resume {
        Some(Resume { from: Some(ResumePoint::Nested(frame)), answered }) => (frame, answered),
        Some(Resume { from: Some(ResumePoint::Remote { .. }), .. }) => return Opening::Elsewhere,
        Some(Resume { from: None, .. }) | None => {
            let message = Arc::new(Message::text(Role::User, prompt));
            let state = Box::new(RunState::new(agent.name.clone()));
            let abilities = agent.abilities(&run.require_approval);
            return Opening::Run(state, Input::Message { message, abilities });
        }
    };
    let open: Vec<Form> = frame.questions().into_iter().cloned().collect();
    match answered {
        Some(answered) => Opening::Run(frame, Input::Decided { decisions: answered.decisions }),
        // The process died after the question was saved and before it was told.
        None if frame.phase == Phase::Waiting => Opening::Asks(one_form(agent.name.as_str(), open)),
        None => Opening::Run(frame, Input::Recovered),
    }
}

/// Passes what a nested run decides up to the run that asked for it, which keeps and shows it.
struct Upward {
    agent: String,
    /// Whether the agent's words go up too.
    words: bool,
    sender: mpsc::Sender<Update>,
    questions: Vec<Form>,
    outcome: Option<Outcome>,
}

impl Upward {
    fn new(agent: &str, words: bool, sender: mpsc::Sender<Update>) -> Self {
        Self { agent: agent.to_owned(), words, sender, questions: Vec::new(), outcome: None }
    }

    /// The update that ends the delegation.
    fn last(self) -> DelegateUpdate {
        let failed = |reason: &str| DelegationOutcome::Failed { reason: reason.to_owned() };
        let outcome = match self.outcome {
            Some(Outcome::Completed { text, .. }) => DelegationOutcome::Completed { text },
            Some(Outcome::Failed { reason }) => DelegationOutcome::Failed { reason },
            Some(Outcome::Canceled) => DelegationOutcome::Canceled,
            Some(Outcome::InputRequired) => {
                return DelegateUpdate::Asks { form: one_form(&self.agent, self.questions) };
            }
            None => failed("the agent stopped without an answer"),
        };
        DelegateUpdate::Finished { outcome }
    }

    /// What of an event goes up: the agent's calls, and its words only where the client wants them; its answer comes once.
    fn forward(&mut self, event: RunEvent) -> Option<RunEvent> {
        if !event.path.is_empty() {
            return Some(event);
        }
        match event.kind {
            EventKind::ToolStarted { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::DelegationStarted { .. }
            | EventKind::DelegationFinished { .. } => return Some(event),
            EventKind::Text { .. } | EventKind::TextReset if self.words => return Some(event),
            EventKind::InputRequired { form } => self.questions.push(form),
            EventKind::Finished { outcome } => self.outcome = Some(outcome),
            _ => {}
        }
        None
    }

    /// Hands the state up and returns once it is kept: until then the run must not act on what it decided, or a
    /// crash would make it act twice.
    /// What it did goes with it: a crash leaves both or none.
    async fn keep(&self, state: &RunState, events: Vec<RunEvent>) -> Result<(), SinkError> {
        let frame = Box::new(state.clone());
        let (update, kept) = Update::awaited(DelegateUpdate::Checkpoint { frame, events });
        self.sender.send(update).await.map_err(|_| gone())?;
        kept.await.map_err(|_| gone())
    }
}

fn gone() -> SinkError {
    SinkError("the run that asked for this is gone".to_owned())
}

#[async_trait]
impl Sink for Upward {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        let keeps = batch.snapshot || !batch.appends.is_empty();
        let events: Vec<_> = batch.events.into_iter().filter_map(|event| self.forward(event)).collect();
        // A run that is over has nothing to go on with; its outcome is what counts.
        if keeps && state.phase != Phase::Idle {
            return self.keep(state, events).await;
        }
        for event in events {
            let update = DelegateUpdate::Event { event, place: None };
            self.sender.send(update.into()).await.map_err(|_| gone())?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "in_process_tests.rs"]
mod tests;

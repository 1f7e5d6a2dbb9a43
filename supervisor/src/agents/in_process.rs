//! The backend of an agent in this process: the same engine, in a nested run.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::{
    DelegateUpdate, DelegationOutcome, EventKind, FileChanges, Form, Input, Outcome, Phase, Resume,
    ResumePoint, RunEvent, RunState,
};
use caipe_model::{Message, Role};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::binding::limit_notice;
use crate::delegation::{
    AgentBackend, Delegation, DelegationEnd, DelegationEvent, MOVED, RunInfo, Scratchpad, one_form,
};
use crate::remote;
use crate::run::{Batch, Driver, Sink, SinkError};

/// Runs an agent in this process.
#[derive(Debug, Clone)]
pub struct InProcessBackend(pub Arc<Agent>);

#[async_trait]
impl AgentBackend for InProcessBackend {
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd {
        let Self(agent) = self;
        agent.settled(&cancel).await;
        let scope = remote::conversation(&delegation);
        let run = RunInfo { parents: delegation.path(), ..delegation.run };
        match first_input(agent, (&run, scope), delegation.prompt, delegation.resume) {
            FirstInput::Asks(form) => DelegationEnd::Asks(form),
            FirstInput::StartedElsewhere => DelegationEnd::failed(MOVED),
            FirstInput::Run(state, first) => {
                let sink = ParentSink::new(agent.name.as_str(), &run, events);
                match Driver::new(agent.clone(), run, *state, sink, cancel, agent.time_limit).run(first).await
                {
                    Ok((_, sink)) => sink.end(),
                    Err((SinkError(reason), _)) => DelegationEnd::failed(reason),
                }
            }
        }
    }

    /// It has no tasks of its own.
    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// The start of a delegation.
#[derive(Debug)]
enum FirstInput {
    Run(Box<RunState>, Input),
    /// The unanswered question at which it stopped.
    Asks(Form),
    /// Nothing: a remote agent started it.
    StartedElsewhere,
}

fn first_input(
    agent: &Agent,
    (run, scope): (&RunInfo, String),
    prompt: String,
    resume: Option<Resume>,
) -> FirstInput {
    let (frame, answered) = match resume {
        Some(Resume { from: Some(ResumePoint::Nested(mut frame)), answered }) => {
            frame.identify_questions();
            frame.always_allowed.clone_from(&run.always_allowed);
            (frame, answered)
        }
        Some(Resume { from: Some(ResumePoint::Remote { .. }), .. }) => return FirstInput::StartedElsewhere,
        Some(Resume { from: None, .. }) | None => {
            let message = Arc::new(Message::text(Role::User, prompt));
            let always_allowed = (*run.always_allowed).clone();
            let approved = agent.offered_calls(&run.approved);
            let mut state =
                Box::new(RunState { scope, always_allowed, approved, ..RunState::new(agent.name.clone()) });
            if let Some(shared) = &run.scratchpad {
                state.receive_scratchpad((*shared.files).clone());
            }
            // The delegating run has the state of this one, so nobody starts it again.
            let abilities = agent.abilities(run).within_run(false);
            return FirstInput::Run(state, Input::Message { message, abilities });
        }
    };
    let open: Vec<Form> = frame.questions().into_iter().cloned().collect();
    match answered {
        Some(answered) => {
            let misfit =
                || Input::Undecided { reason: "The decisions do not fit the calls that wait.".to_owned() };
            let decided = answered.bound().map(|decisions| Input::Decided { decisions });
            FirstInput::Run(frame, decided.unwrap_or_else(misfit))
        }
        // The process ended after the question was saved and before it was shown.
        None if frame.phase == Phase::Waiting => FirstInput::Asks(one_form(agent.name.as_str(), open)),
        None => FirstInput::Run(frame, Input::Recovered),
    }
}

/// Sends the decisions of a nested run to the delegating run, which commits and shows them.
struct ParentSink {
    agent: String,
    /// Whether the agent's text is sent too.
    agents_words: bool,
    /// Whether the delegating run is limited, so that it counts what this one uses.
    is_limited: bool,
    /// The files that the two runs share.
    shared: Option<Scratchpad>,
    /// What the agent has changed in them.
    changed: FileChanges,
    sender: mpsc::Sender<DelegationEvent>,
    questions: Vec<Form>,
    outcome: Option<Outcome>,
}

impl ParentSink {
    fn new(agent: &str, run: &RunInfo, sender: mpsc::Sender<DelegationEvent>) -> Self {
        let (agents_words, is_limited) = (run.agents_words, run.remaining.is_some());
        let (agent, shared, changed) = (agent.to_owned(), run.scratchpad.clone(), FileChanges::new());
        Self {
            agent,
            agents_words,
            is_limited,
            shared,
            changed,
            sender,
            questions: Vec::new(),
            outcome: None,
        }
    }

    fn end(self) -> DelegationEnd {
        DelegationEnd::Finished(match self.outcome {
            Some(Outcome::Completed { text, .. }) => DelegationOutcome::Completed { text },
            Some(Outcome::Failed { reason }) => DelegationOutcome::Failed { reason },
            Some(Outcome::Canceled) => DelegationOutcome::Canceled,
            Some(Outcome::InputRequired) => {
                return DelegationEnd::Asks(one_form(&self.agent, self.questions));
            }
            None => return DelegationEnd::failed("the agent stopped without an answer"),
        })
    }

    /// The event for the parent: the agent's calls, and its text only if the client wants it. Its answer is sent once, at
    /// the end.
    fn forward(&mut self, event: RunEvent) -> Option<RunEvent> {
        if !event.path.is_empty() {
            return Some(event);
        }
        match event.kind {
            EventKind::ToolStarted { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::DelegationStarted { .. }
            | EventKind::DelegationFinished { .. } => return Some(event),
            // As a remote agent reports it.
            EventKind::Limited { text, .. } => {
                return Some(RunEvent::own(EventKind::Noticed { text: limit_notice(&text), end: None }));
            }
            EventKind::TurnStarted | EventKind::Text { .. } | EventKind::TextReset if self.agents_words => {
                return Some(event);
            }
            EventKind::ScratchpadChanged { files } => self.changed = files,
            EventKind::InputRequired { form } => self.questions.push(form),
            EventKind::Finished { outcome } => self.outcome = Some(outcome),
            _ => {}
        }
        None
    }

    /// Sends the state with the events that led to it, and waits until the parent has committed both. The nested run
    /// acts on its decision only then: otherwise a crash would make it act twice.
    async fn checkpoint(&self, state: &RunState, events: Vec<RunEvent>) -> Result<(), SinkError> {
        let frame = Box::new(state.clone());
        let (event, committed) = DelegationEvent::acknowledged(DelegateUpdate::Checkpoint { frame, events });
        self.sender.send(event).await.map_err(|_| parent_ended())?;
        committed.await.map_err(|_| parent_ended())
    }
}

fn parent_ended() -> SinkError {
    SinkError("the run that asked for this is gone".to_owned())
}

#[async_trait]
impl Sink for ParentSink {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        let events: Vec<_> = batch.events.into_iter().filter_map(|event| self.forward(event)).collect();
        // A run that has ended is not resumed; only its outcome counts.
        if batch.changes_state && state.phase != Phase::Idle {
            return self.checkpoint(state, events).await;
        }
        if state.phase == Phase::Idle && self.is_limited {
            let update = DelegateUpdate::Spent { spent: state.counters.spent };
            self.sender.send(update.into()).await.map_err(|_| parent_ended())?;
        }
        if let Some(update) = Scratchpad::update(self.shared.as_ref(), std::mem::take(&mut self.changed)) {
            self.sender.send(update.into()).await.map_err(|_| parent_ended())?;
        }
        for event in events {
            let update = DelegateUpdate::Event { event, place: None };
            self.sender.send(update.into()).await.map_err(|_| parent_ended())?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "in_process_tests.rs"]
mod tests;

//! One call of an agent: as a delegation that no plan knows of.

use std::sync::Arc;

use caipe_engine::{
    ANSWER_FIELD, Answered, Decision, DelegateUpdate, Form, RemotePlace, Resume, ResumePoint, RunEvent,
};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::progress::{MOST_LINES, line};
use super::registry::Callee;
use super::request::{Ask, What};
use super::{A2aTools, Caller, Progress, report};
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent, RunInfo};
use crate::remote::{RemoteTaskStatus, in_words};

impl A2aTools {
    /// Reads an agent's card.
    pub(super) async fn discover(&self, agent: &str, cancel: &CancellationToken) -> Result<String, String> {
        let Callee { name, remote, .. } = self.callee(agent)?;
        let card = unless_cancelled(cancel, remote.card()).await?;
        card.map(|card| report::card(&card)).map_err(|reason| failure(name.as_str(), &reason))
    }

    /// Asks an agent, or about a task of its.
    pub(super) async fn ask(
        &self,
        ask: Ask,
        origin: Caller,
        cancel: CancellationToken,
    ) -> Result<String, String> {
        let callee = self.callee(&ask.agent)?;
        let run = run(&callee, origin.run);
        let progress = ask.streaming.then_some(origin.progress);
        let call = Call { callee, id: origin.call, run, progress, cancel };
        if let What::Answer { task, .. } = &ask.what {
            call.refuse_for_a_person(task).await?;
        }
        match (&ask.what, ask.blocking) {
            (What::Begin { .. }, false) => call.begin(&ask.what).await,
            (What::Result { task }, blocking) => call.result(task, &ask.what, blocking).await,
            _ => call.follow(&ask.what).await,
        }
    }
}

/// Events of a call that may wait to be reported.
const EVENT_QUEUE: usize = 64;

/// One call.
struct Call {
    callee: Callee,
    id: String,
    run: RunInfo,
    /// The receiver of progress, if any.
    progress: Option<mpsc::Sender<Progress>>,
    cancel: CancellationToken,
}

impl Call {
    /// Begins a task, and waits no longer than the agent takes to take it.
    async fn begin(&self, what: &What) -> Result<String, String> {
        let delegation = self.delegation(what);
        let begun = unless_cancelled(&self.cancel, self.callee.remote.begin(&delegation)).await?;
        report::task_status(self.name(), begun.map_err(|reason| failure(self.name(), &reason))?)
    }

    /// What became of a task, or becomes of it.
    async fn result(&self, task: &str, what: &What, blocking: bool) -> Result<String, String> {
        let seen = self.status(task).await?;
        if !blocking || !seen.is_under_way() {
            return report::task_status(self.name(), seen);
        }
        match self.follow(what).await {
            // It may have ended just before anybody could follow it.
            Err(reason) => match self.status(task).await {
                Ok(seen) if !seen.is_under_way() => report::task_status(self.name(), seen),
                _ => Err(reason),
            },
            other => other,
        }
    }

    /// A form or an approval is put to a person; a model that answers it would approve its own calls.
    async fn refuse_for_a_person(&self, task: &str) -> Result<(), String> {
        match self.status(task).await? {
            RemoteTaskStatus::Asks { is_for_a_person: true, question, .. } => {
                Err(report::for_a_person(self.name(), task, &question))
            }
            _ => Ok(()),
        }
    }

    async fn status(&self, task: &str) -> Result<RemoteTaskStatus, String> {
        let seen = unless_cancelled(&self.cancel, self.callee.remote.status(task, &self.run)).await?;
        seen.map_err(|reason| failure(self.name(), &reason))
    }

    /// Follows the work to its end. Cancelling the token cancels it at the agent.
    async fn follow(&self, what: &What) -> Result<String, String> {
        let (mut task, mut lines) = (what.task().map(str::to_owned), 0);
        let (events, mut received) = mpsc::channel(EVENT_QUEUE);
        let running = self.callee.remote.run(self.delegation(what), events, self.cancel.clone());
        let reporting = async {
            while let Some(DelegationEvent { update, .. }) = received.recv().await {
                match update {
                    DelegateUpdate::Accepted { task: accepted, .. } => task = Some(accepted),
                    DelegateUpdate::Event { event, .. } => self.tell(&event, &mut lines).await,
                    _ => {}
                }
            }
        };
        match tokio::join!(running, reporting).0 {
            DelegationEnd::Asks(form) => Ok(self.asked(task.as_deref(), &form)),
            DelegationEnd::Finished(outcome) => report::outcome(self.name(), outcome),
        }
    }

    fn asked(&self, task: Option<&str>, form: &Form) -> String {
        let in_words = matches!(form.fields.as_slice(), [field] if field.field_name == ANSWER_FIELD);
        match task.filter(|_| form.is_approval() || !in_words) {
            Some(task) => report::for_a_person(self.name(), task, &form.description),
            None => report::question(self.name(), task, &form.description),
        }
    }

    async fn tell(&self, event: &RunEvent, lines: &mut usize) {
        let (Some(progress), Some(text)) = (&self.progress, line(event)) else { return };
        *lines += 1;
        if *lines <= MOST_LINES {
            // Nobody listens any more once the run is over.
            let _ = progress.send(Progress { agent: self.callee.name.clone(), text }).await;
        }
    }

    fn delegation(&self, what: &What) -> Delegation {
        let from = what.task().map(|task| ResumePoint::Remote {
            task: task.to_owned(),
            context: String::new(),
            place: RemotePlace::default(),
        });
        let (prompt, answered) = match what {
            What::Begin { message } => (message.clone(), None),
            What::Result { .. } => (String::new(), None),
            What::Answer { message, .. } => (message.clone(), Some(answered(self.name(), message))),
        };
        let resume = from.map(|from| Resume { from: Some(from), answered });
        let (call, agent, run) = (self.id.clone(), self.callee.name.clone(), self.run.clone());
        Delegation { call, agent, prompt, resume, run }
    }

    fn name(&self) -> &str {
        self.callee.name.as_str()
    }
}

/// The message as the answer to a question in words.
fn answered(agent: &str, message: &str) -> Answered {
    let form = in_words(agent, None);
    let values = form.fields.iter().map(|field| (field.field_name.clone(), message.into()));
    let decisions = vec![Decision::Submit { values: values.collect::<Map<_, _>>() }];
    Answered { form, decisions }
}

/// What the agent may know of the run: a stranger does not learn who asks.
fn run(callee: &Callee, run: RunInfo) -> RunInfo {
    if callee.is_known { run } else { RunInfo { user: None, require_approval: Arc::default(), ..run } }
}

fn failure(agent: &str, reason: &str) -> String {
    format!("ERROR: agent {agent}: {reason}")
}

async fn unless_cancelled<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::select! {
        done = work => Ok(done),
        () = cancel.cancelled() => Err("The call was stopped.".to_owned()),
    }
}

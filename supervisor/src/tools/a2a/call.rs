//! One call of an agent: a delegation that is not part of a plan.

use std::sync::Arc;

use caipe_engine::{Answered, Decision, DelegateUpdate, Form, RemotePlace, Resume, ResumePoint, RunEvent};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::arguments::{Action, AgentCall};
use super::progress::{MAX_LINES, line};
use super::registry::TargetAgent;
use super::{A2aTools, Caller, Progress, report};
use crate::binding::takes_any_text;
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent, RunInfo};
use crate::remote::{RemoteTaskStatus, in_words};

impl A2aTools {
    /// Reads an agent's card.
    pub(super) async fn discover(&self, agent: &str, cancel: &CancellationToken) -> Result<String, String> {
        let TargetAgent { name, remote, .. } = self.target(agent)?;
        let card = unless_cancelled(cancel, remote.card()).await?;
        card.map(|card| report::card(&card)).map_err(|reason| failure(name.as_str(), &reason))
    }

    /// Sends a message to an agent, or returns the result of one of its tasks.
    pub(super) async fn ask(
        &self,
        ask: AgentCall,
        caller: Caller,
        cancel: CancellationToken,
    ) -> Result<String, String> {
        let target = self.target(&ask.agent)?;
        let _permit = match &ask.action {
            Action::Answer { task, .. } => {
                Some(self.answer_permit(task).ok_or_else(|| report::is_being_answered(task))?)
            }
            Action::Begin { .. } | Action::Result { .. } => None,
        };
        let run = run_for(&target, caller.run);
        let progress = ask.streaming.then_some(caller.progress);
        let call = Call { target, id: caller.call, run, progress, cancel };
        if let Action::Answer { task, .. } = &ask.action {
            call.refuse_if_for_a_person(task).await?;
        }
        match (&ask.action, ask.blocking) {
            (Action::Begin { .. }, false) => call.begin(&ask.action).await,
            (Action::Result { task }, blocking) => call.result(task, &ask.action, blocking).await,
            _ => call.follow(&ask.action).await,
        }
    }
}

const EVENT_QUEUE: usize = 64;

struct Call {
    target: TargetAgent,
    id: String,
    run: RunInfo,
    progress: Option<mpsc::Sender<Progress>>,
    cancel: CancellationToken,
}

impl Call {
    /// Starts a task and returns once the agent has accepted it.
    async fn begin(&self, action: &Action) -> Result<String, String> {
        let delegation = self.delegation(action);
        let begun = unless_cancelled(&self.cancel, self.target.remote.begin(&delegation)).await?;
        report::task_status(self.name(), begun.map_err(|reason| failure(self.name(), &reason))?)
    }

    /// The result of a task; with `blocking`, after its end.
    async fn result(&self, task: &str, action: &Action, blocking: bool) -> Result<String, String> {
        let seen = self.status(task).await?;
        if !blocking || !seen.is_under_way() {
            return report::task_status(self.name(), seen);
        }
        match self.follow(action).await {
            // The task may have ended before the subscription.
            Err(reason) => match self.status(task).await {
                Ok(seen) if !seen.is_under_way() => report::task_status(self.name(), seen),
                _ => Err(reason),
            },
            other => other,
        }
    }

    /// Refuses to answer a form or an approval: a model that answers it would approve its own calls.
    async fn refuse_if_for_a_person(&self, task: &str) -> Result<(), String> {
        match self.status(task).await? {
            RemoteTaskStatus::Asks { is_for_a_person: true, question, .. } => {
                Err(report::for_a_person(self.name(), task, &question))
            }
            _ => Ok(()),
        }
    }

    async fn status(&self, task: &str) -> Result<RemoteTaskStatus, String> {
        let seen = unless_cancelled(&self.cancel, self.target.remote.status(task, &self.run)).await?;
        seen.map_err(|reason| failure(self.name(), &reason))
    }

    /// Follows the task to its end. Cancelling the token cancels it at the agent.
    async fn follow(&self, action: &Action) -> Result<String, String> {
        let (mut task, mut lines) = (action.task().map(str::to_owned), 0);
        let (events, mut received) = mpsc::channel(EVENT_QUEUE);
        let running = self.target.remote.run(self.delegation(action), events, self.cancel.clone());
        let reporting = async {
            while let Some(DelegationEvent { update, .. }) = received.recv().await {
                match update {
                    DelegateUpdate::Accepted { task: accepted, .. } => task = Some(accepted),
                    DelegateUpdate::Event { event, .. } => self.report_progress(&event, &mut lines).await,
                    _ => {}
                }
            }
        };
        match tokio::join!(running, reporting).0 {
            DelegationEnd::Asks(form) => Ok(self.question(task.as_deref(), &form)),
            DelegationEnd::Finished(outcome) => report::outcome(self.name(), outcome),
        }
    }

    fn question(&self, task: Option<&str>, form: &Form) -> String {
        // A question in plain text has no id.
        match task.filter(|_| !form.id.is_empty() || form.is_approval() || !takes_any_text(form)) {
            Some(task) => report::for_a_person(self.name(), task, &form.description),
            None => report::question(self.name(), task, &form.description),
        }
    }

    async fn report_progress(&self, event: &RunEvent, lines: &mut usize) {
        let (Some(progress), Some(text)) = (&self.progress, line(event)) else { return };
        *lines += 1;
        if *lines <= MAX_LINES {
            // The receiver is gone once the run is over.
            let _ = progress.send(Progress::Line { agent: self.target.name.clone(), text }).await;
        }
    }

    fn delegation(&self, action: &Action) -> Delegation {
        let from = action.task().map(|task| ResumePoint::Remote {
            task: task.to_owned(),
            context: String::new(),
            place: RemotePlace::default(),
        });
        let (prompt, answered) = match action {
            Action::Begin { message } => (message.clone(), None),
            Action::Result { .. } => (String::new(), None),
            Action::Answer { message, .. } => (message.clone(), Some(answered(self.name(), message))),
        };
        let resume = from.map(|from| Resume { from: Some(from), answered });
        let (call, agent, run) = (self.id.clone(), self.target.name.clone(), self.run.clone());
        Delegation { call, agent, prompt, resume, run }
    }

    fn name(&self) -> &str {
        self.target.name.as_str()
    }
}

/// The message as the answer to a question in plain text.
fn answered(agent: &str, message: &str) -> Answered {
    let form = in_words(agent, None);
    let values = form.fields.iter().map(|field| (field.field_name.clone(), message.into()));
    let decisions = vec![Decision::Submit { values: values.collect::<Map<_, _>>() }];
    Answered { form, decisions, ..Answered::default() }
}

/// The run as the agent may know it: only a registered agent learns the user.
fn run_for(target: &TargetAgent, run: RunInfo) -> RunInfo {
    if target.is_registered { run } else { RunInfo { user: None, require_approval: Arc::default(), ..run } }
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

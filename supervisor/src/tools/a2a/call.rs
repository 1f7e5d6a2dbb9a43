//! One call of an agent: as a delegation that no plan knows of.

use caipe_engine::{Answered, Decision, DelegateUpdate, RemotePlace, Resume, ResumePoint};
use futures::StreamExt;
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use super::progress::{MOST_LINES, line};
use super::registry::Callee;
use super::request::{Ask, What};
use super::{A2aTools, Caller, Progress, report};
use crate::agents::{Delegation, Home, in_words};
use crate::run::RunInfo;

impl A2aTools {
    /// Reads an agent's card.
    pub(super) async fn discover(&self, agent: &str, cancel: &CancellationToken) -> Result<String, String> {
        let Callee { name, remote, .. } = self.callee(agent)?;
        let card = unless_cancelled(cancel, remote.card()).await?;
        card.map(|card| report::card(&card)).map_err(|reason| format!("ERROR: agent {name}: {reason}"))
    }

    /// Asks an agent, or about a task of its.
    pub(super) async fn ask(
        &self,
        ask: Ask,
        origin: Caller,
        cancel: CancellationToken,
    ) -> Result<String, String> {
        let callee = self.callee(&ask.agent)?;
        let run = run(&callee, origin.run.clone());
        let failed = |reason| format!("ERROR: agent {}: {reason}", callee.name);
        let name = callee.name.as_str();
        match (&ask.what, ask.blocking) {
            (What::Begin { .. }, false) => {
                let delegation = delegation(&callee, &ask.what, &origin.call, run);
                let begun = unless_cancelled(&cancel, callee.remote.begin(&delegation)).await?;
                report::glance(name, begun.map_err(failed)?)
            }
            (What::Result { task }, false) => {
                let seen = unless_cancelled(&cancel, callee.remote.look(task, &run)).await?;
                report::glance(name, seen.map_err(failed)?)
            }
            _ => {
                let delegation = delegation(&callee, &ask.what, &origin.call, run);
                let told = ask.streaming.then_some(&origin);
                follow(&callee, delegation, told, cancel).await
            }
        }
    }
}

/// Follows the work to its end. The home of the agent carries the cancellation to it.
async fn follow(
    callee: &Callee,
    delegation: Delegation,
    told: Option<&Caller>,
    cancel: CancellationToken,
) -> Result<String, String> {
    let mut task = known_task(&delegation);
    let mut lines = 0;
    let mut updates = callee.remote.run(delegation, cancel);
    while let Some(update) = updates.next().await {
        match update.news {
            DelegateUpdate::Accepted { task: accepted, .. } => task = Some(accepted),
            DelegateUpdate::Event { event, .. } => {
                let text = line(&event).filter(|_| lines < MOST_LINES);
                if let (Some(origin), Some(text)) = (told, text) {
                    lines += 1;
                    // Nobody listens any more once the run is over.
                    let _ = origin.progress.send(Progress { agent: callee.name.clone(), text }).await;
                }
            }
            DelegateUpdate::Asks { form } => {
                return Ok(report::question(callee.name.as_str(), task.as_deref(), &form.description));
            }
            DelegateUpdate::Finished { outcome } => return report::outcome(callee.name.as_str(), outcome),
            DelegateUpdate::Checkpoint { .. } => {}
        }
    }
    Err(format!("ERROR: agent {}: it stopped without an answer.", callee.name))
}

fn delegation(callee: &Callee, what: &What, call: &str, run: RunInfo) -> Delegation {
    let agent = callee.name.clone();
    let from = |task: &String| {
        Some(ResumePoint::Remote {
            task: task.clone(),
            context: String::new(),
            place: RemotePlace::default(),
        })
    };
    let (prompt, resume) = match what {
        What::Begin { message } => (message.clone(), None),
        What::Result { task } => (String::new(), Some(Resume { from: from(task), decision: None })),
        What::Answer { task, message } => {
            let decision = Some(answered(agent.as_str(), message));
            (message.clone(), Some(Resume { from: from(task), decision }))
        }
    };
    Delegation { call: call.to_owned(), agent, prompt, resume, run }
}

/// The message as the answer to a question in words.
fn answered(agent: &str, message: &str) -> Answered {
    let form = in_words(agent, None);
    let values = form.fields.iter().map(|field| (field.field_name.clone(), message.into()));
    let decision = Decision::Submit { values: values.collect::<Map<_, _>>() };
    Answered { form, decision }
}

fn known_task(delegation: &Delegation) -> Option<String> {
    match &delegation.resume.as_ref()?.from {
        Some(ResumePoint::Remote { task, .. }) => Some(task.clone()),
        _ => None,
    }
}

/// What the agent may know of the run: a stranger does not learn who asks.
fn run(callee: &Callee, run: RunInfo) -> RunInfo {
    if callee.is_known { run } else { RunInfo { user: None, ..run } }
}

async fn unless_cancelled<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::select! {
        done = work => Ok(done),
        () = cancel.cancelled() => Err("The call was stopped.".to_owned()),
    }
}

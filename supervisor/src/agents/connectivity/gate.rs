//! Stands before a remote home: whoever asks an agent that cannot be reached learns it at once.

use std::sync::Arc;

use caipe_crds::resource::status::AgentPhase;
use caipe_engine::{AgentName, DelegateUpdate, DelegationOutcome};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::link::{Link, Outlook};
use crate::agents::home::{Delegation, Home, Update, Updates};

/// A remote home with what is known of whether it can be reached.
#[derive(Debug)]
pub(in crate::agents) struct Gate {
    home: Arc<dyn Home>,
    link: Arc<Link>,
}

impl Gate {
    /// Asks `home` unless `link` has it that nobody would answer.
    pub(in crate::agents) fn new(home: Arc<dyn Home>, link: Arc<Link>) -> Self {
        Self { home, link }
    }
}

impl Home for Gate {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let (home, link) = (self.home.clone(), self.link.clone());
        // What was begun there is not given up lightly: the home has patience of its own.
        if delegation.resume.is_some() || link.outlook().phase != AgentPhase::Unreachable {
            return watched(home.run(delegation, cancel), link);
        }
        let late = async move {
            let agent = delegation.agent.clone();
            // It may have come back a moment ago.
            let Some(outlook) = cancel.run_until_cancelled(link.look_now()).await else {
                return single(DelegationOutcome::Canceled);
            };
            match outlook.phase {
                AgentPhase::Unreachable => single(unreachable(&agent, &outlook)),
                _ => watched(home.run(delegation, cancel), link),
            }
        };
        futures::stream::once(late).flatten().boxed()
    }
}

/// A delegation that fails is a reason to look whether the agent is there.
fn watched(updates: Updates, link: Arc<Link>) -> Updates {
    updates
        .inspect(move |update| {
            if let DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { .. } } = &update.news {
                link.doubt();
            }
        })
        .boxed()
}

fn single(outcome: DelegationOutcome) -> Updates {
    futures::stream::iter([Update::from(DelegateUpdate::Finished { outcome })]).boxed()
}

/// What the model reads (edge case of the unification seed: the connection error is told to it).
fn unreachable(agent: &AgentName, outlook: &Outlook) -> DelegationOutcome {
    let why = outlook.message.as_deref().unwrap_or("it does not answer");
    let reason = format!("{why}. Say so, and go on without agent {agent}; it may be back later.");
    DelegationOutcome::Failed { reason }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

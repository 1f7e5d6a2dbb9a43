//! Which principals may decide which interactions. Pure.
//!
//! An approval is for the approvers of the agent that asks, or, if there are none, for the owner of the conversation. A form
//! is for the owner, and for the approvers of its agent.

use caipe_crds::resource::approver::Approver;
use caipe_engine::{BoundDecision, Form, RunState};

use super::caller::Caller;
use super::error::RunError;
use super::service::Runs;
use crate::agent::Agent;
use crate::binding::Request;
use caipe_store::{TaskPhase, TaskRecord};

/// The rules for the answers to a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Authority<'a> {
    pub(super) agent: &'a Agent,
    /// The owner of the task; none if callers are not distinguished.
    pub(super) owner: Option<&'a str>,
}

impl Authority<'_> {
    /// Why the sender must not make one of these decisions; none if it may make all of them.
    pub(super) fn refusal(
        &self,
        state: &RunState,
        request: &Request,
        decisions: &[BoundDecision],
    ) -> Option<String> {
        let calls: Vec<Form> = state.questions().into_iter().flat_map(Form::calls).collect();
        let decided = calls.iter().filter(|call| decisions.iter().any(|decision| decision.is_about(call)));
        decided.into_iter().find_map(|call| self.refusal_of(state, request, call))
    }

    fn refusal_of(&self, state: &RunState, request: &Request, call: &Form) -> Option<String> {
        let approvers = approvers(self.agent, state, call);
        let is_approver = approvers.iter().any(|it| request.approver_as.contains(&it.to_string()));
        let is_owner = self.owner.is_none() || self.owner == request.sent_by.as_deref();
        if is_approver || (is_owner && (approvers.is_empty() || !call.is_approval())) {
            return None;
        }
        let sender = request.sent_by.as_deref().unwrap_or("without a token");
        if approvers.is_empty() || !call.is_approval() {
            return Some(format!(
                "Nothing was decided: this question is for the owner of the conversation, and the message is by {sender}."
            ));
        }
        let listed: Vec<String> = approvers.iter().map(ToString::to_string).collect();
        Some(format!(
            "Nothing was decided: {} waits for an approver ({}), and the message is by {sender}.",
            call.action,
            listed.join(", ")
        ))
    }
}

/// The approvers of the agent that asks a question.
fn approvers<'a>(agent: &'a Agent, state: &RunState, call: &Form) -> &'a [Approver] {
    agent.approvers(state.asking_agent(&call.id).unwrap_or(&state.agent))
}

impl Runs {
    /// Admits a caller to read or answer a task: its owner, an approver whose decision the task waits for, and an approver that
    /// has decided in it. For all others the task is unknown.
    ///
    /// # Errors
    /// [`RunError::UnknownTask`], or when the store cannot be read.
    pub async fn admit_participant(&self, caller: &Caller, id: &str) -> Result<(), RunError> {
        let refused = match self.admit(caller.owner.as_deref(), id).await {
            Err(refused @ RunError::UnknownTask(_)) => refused,
            other => return other,
        };
        let supervisor = self.supervisor.get();
        if caller.listed(supervisor.all_approvers()).next().is_none() {
            return Err(refused);
        }
        let record = self.record(id).await?;
        let takes_part = has_decided(&record, caller) || self.waits_for(&record, caller, &supervisor).await?;
        if takes_part { Ok(()) } else { Err(refused) }
    }

    /// Whether an approval waits for the caller.
    async fn waits_for(
        &self,
        record: &TaskRecord,
        caller: &Caller,
        supervisor: &Agent,
    ) -> Result<bool, RunError> {
        if record.phase != TaskPhase::InputRequired {
            return Ok(false);
        }
        let (state, _) = self.conversations.load(&record.context, &supervisor.name).await?;
        let mut calls = state.questions().into_iter().flat_map(Form::calls).filter(Form::is_approval);
        Ok(calls.any(|call| caller.listed(approvers(supervisor, &state, &call).iter()).next().is_some()))
    }
}

/// Whether a task has received a message of the caller as an approver.
fn has_decided(record: &TaskRecord, caller: &Caller) -> bool {
    let mut replies = record.replies.iter().filter_map(|reply| Request::of_stored(&reply.message).ok());
    replies.any(|reply| reply.sent_by == caller.principal && !reply.approver_as.is_empty())
}

#[cfg(test)]
#[path = "approvers_tests.rs"]
pub(super) mod tests;

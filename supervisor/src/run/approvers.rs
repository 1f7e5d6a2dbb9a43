//! Which principals may decide which interactions. Pure.
//!
//! An approval is for the approvers of the agent that asks, or, if there are none, for the owner of the conversation. A form
//! is for the owner, and for the approvers of its agent.

use caipe_crds::resource::approver::Approver;
use caipe_engine::{BoundDecision, Form, RunState};

use crate::agent::Agent;
use crate::binding::Request;

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
pub(super) fn approvers<'a>(agent: &'a Agent, state: &RunState, call: &Form) -> &'a [Approver] {
    agent.approvers(state.asking_agent(&call.id).unwrap_or(&state.agent))
}

#[cfg(test)]
#[path = "approvers_tests.rs"]
pub(super) mod tests;

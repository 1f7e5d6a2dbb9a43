//! An answer to a question of an agent.

use serde::{Deserialize, Serialize};

use super::{BoundDecision, Decision, Form};

/// A question and a person's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub form: Form,
    /// One decision for each call of [`Form::calls`].
    pub decisions: Vec<Decision>,
    /// Whether an earlier process may have passed it on already.
    #[serde(skip)]
    pub is_repeated: bool,
}

impl Answered {
    /// Each call or question of the agent with its decision; `None` if there is not one decision for each call.
    pub fn each(&self) -> Option<Vec<(Form, Decision)>> {
        self.form.split(&self.decisions)
    }

    /// As [`Answered::each`], each decision with the id of what it is about.
    pub fn bound(&self) -> Option<Vec<BoundDecision>> {
        let bound = |(call, decision): (Form, Decision)| BoundDecision::about(&call, decision);
        Some(self.each()?.into_iter().map(bound).collect())
    }
}

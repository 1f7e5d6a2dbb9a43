//! What a supervisor did with the requests of one case of an evaluation.

use std::time::Duration;

use caipe_engine::{EventKind, Outcome, RunEvent};

/// The result of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialResult {
    /// The agents that the supervisor delegated to, in order, each with the task.
    pub delegations: Vec<(String, String)>,
    /// The tools that were called, in order: the supervisor's own by their names, those of an agent as `AGENT/TOOL`.
    pub tools: Vec<String>,
    /// The answer to the last request, or what the person was asked.
    pub answer: String,
    /// Why there is no answer.
    pub failure: Option<String>,
    /// What restricted the work: rejected calls and limits, a line each.
    pub notes: Vec<String>,
    /// Tokens that the models read and wrote.
    pub tokens: u64,
    pub time: Duration,
}

impl TrialResult {
    /// Records an event of the supervisor or of an agent that works for it.
    pub(super) fn record(&mut self, event: RunEvent) {
        let agent = event.agent().map(|agent| format!("{agent}/")).unwrap_or_default();
        match event.kind {
            EventKind::ToolStarted { tool, .. } => self.tools.push(format!("{agent}{tool}")),
            EventKind::Limited { text, .. } => self.notes.push(format!("limited: {text}")),
            EventKind::InputRequired { form } => self.answer = form.description,
            EventKind::Finished { outcome } => self.end(outcome),
            _ => {}
        }
    }

    fn end(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Completed { text, .. } => self.answer = text,
            Outcome::Failed { reason } => self.failure = Some(reason),
            Outcome::Canceled => self.failure = Some("it was canceled".to_owned()),
            Outcome::InputRequired => {}
        }
    }
}

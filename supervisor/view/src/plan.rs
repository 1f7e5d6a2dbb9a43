//! The plan for the user.

use serde::Deserialize;
use serde_json::Value;

use super::clean::one_line;

/// Most steps of a plan; further ones are ignored.
const MOST_STEPS: usize = 500;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    InProgress,
    Completed,
    Failed,
    /// Failed, because an earlier step failed.
    #[serde(skip)]
    Skipped,
    /// Not started, or a status that this version does not know.
    #[default]
    #[serde(other)]
    Pending,
}

impl StepStatus {
    /// The sign before a step.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Pending => "⏳",
            Self::InProgress => "🔄",
            Self::Completed => "✅",
            Self::Failed => "❌",
            Self::Skipped => "⏭️",
        }
    }

    /// Whether the status is final.
    const fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    id: String,
    /// The display name of the agent; empty for the supervisor.
    pub agent: String,
    pub title: String,
    pub status: StepStatus,
    order: usize,
}

impl Step {
    /// The id, which stays the same while the step changes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `🔄 [Jira] Search for tickets`.
    pub fn line(&self) -> String {
        let mark = self.status.mark();
        match self.agent.as_str() {
            "" => format!("{mark} {}", self.title),
            agent => format!("{mark} [{agent}] {}", self.title),
        }
    }
}

/// The steps in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct WirePlan {
    #[serde(default)]
    steps: Vec<WireStep>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireStep {
    step_id: String,
    title: String,
    agent: String,
    status: StepStatus,
    skipped: bool,
    order: usize,
}

impl Plan {
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The numbers of completed and of failed steps.
    pub fn tally(&self) -> (usize, usize) {
        let count = |status| self.steps.iter().filter(|step| step.status == status).count();
        (count(StepStatus::Completed), count(StepStatus::Failed))
    }

    /// Applies a plan of the wire. If `whole`, it replaces the known plan; otherwise it changes steps by their ids, and a
    /// final status stays. Returns the indexes of the changed steps, or `None` if the value is not a plan.
    pub(super) fn apply(&mut self, value: &Value, whole: bool) -> Option<Vec<usize>> {
        let wire: WirePlan = serde_json::from_value(value.clone()).ok()?;
        let before = self.steps.clone();
        if whole || wire.steps.len() >= self.steps.len() {
            // A status update that names every step reports a rewritten plan.
            self.steps.clear();
        }
        for step in wire.steps.into_iter().take(MOST_STEPS) {
            self.merge(step.into(), if whole { &[] } else { &before });
        }
        self.steps.sort_by_key(|step| step.order);
        let changed = |(_, step): &(usize, &Step)| !before.contains(step);
        Some(self.steps.iter().enumerate().filter(changed).map(|(place, _)| place).collect())
    }

    fn merge(&mut self, mut step: Step, before: &[Step]) {
        if let Some(old) = before.iter().find(|old| old.id == step.id && old.status.is_settled()) {
            step.status = old.status;
        }
        match self.steps.iter_mut().find(|known| known.id == step.id) {
            Some(known) => *known = step,
            None => self.steps.push(step),
        }
    }
}

impl From<WireStep> for Step {
    fn from(wire: WireStep) -> Self {
        let agent = one_line(&wire.agent);
        let title = one_line(&wire.title);
        let id = if wire.step_id.is_empty() { format!("{agent}::{title}") } else { wire.step_id };
        // The supervisor's own steps need no agent name.
        let agent = if agent.eq_ignore_ascii_case("supervisor") { String::new() } else { agent };
        let skipped = wire.skipped && wire.status == StepStatus::Failed;
        let status = if skipped { StepStatus::Skipped } else { wire.status };
        Self { id, agent, title, status, order: wire.order }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! Turns to-do lists and tasks into the steps that the user sees.

use sha2::{Digest, Sha256};

use super::{Plan, PlanTask, Todo};
use crate::plan_step::{PlanStep, StepStatus};

/// The agent of a step that names none.
pub(super) const NOBODY: &str = "Supervisor";

impl Plan {
    /// The steps of the newest to-do list, or else of the tasks.
    ///
    /// A step that was shown as completed or failed keeps that status. If no step of the first plan is in progress, its
    /// first pending step is shown as such until the model changes it.
    pub(super) fn derive(&self) -> Vec<PlanStep> {
        let mut steps = if self.todos.is_empty() {
            numbered(self.tasks.iter().map(of_task))
        } else {
            numbered(self.todos.iter().map(of_todo))
        };
        for step in &mut steps {
            let shown = self.steps.iter().find(|shown| shown.step_id == step.step_id);
            if let Some(shown) = shown.filter(|shown| shown.status.is_closed()) {
                step.status = shown.status;
            }
        }
        let idle = steps.iter().all(|step| step.status != StepStatus::InProgress);
        let open = |step: &&mut PlanStep| {
            step.status == StepStatus::Pending && (!self.shown || self.was_under_way(&step.step_id))
        };
        if let Some(first) = steps.iter_mut().find(open).filter(|_| idle) {
            first.status = StepStatus::InProgress;
        }
        steps
    }

    fn was_under_way(&self, id: &str) -> bool {
        self.steps.iter().any(|step| step.step_id == id && step.status == StepStatus::InProgress)
    }
}

impl StepStatus {
    /// Whether the status is final.
    pub(crate) const fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// The status of a step that represents two entries of the same agent and title.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Completed | Self::Failed, Self::Completed | Self::Failed) => Self::Failed,
            _ => Self::InProgress,
        }
    }
}

/// Numbers the steps and merges those with the same id.
fn numbered(steps: impl Iterator<Item = PlanStep>) -> Vec<PlanStep> {
    let mut unique: Vec<PlanStep> = Vec::new();
    for step in steps {
        match unique.iter_mut().find(|known| known.step_id == step.step_id) {
            Some(known) => {
                known.status = known.status.with(step.status);
                known.skipped &= step.skipped;
            }
            None => unique.push(PlanStep { order: unique.len(), ..step }),
        }
    }
    unique
}

fn of_task(task: &PlanTask) -> PlanStep {
    step(&display_name(task.agent.as_str()), &task.title, task.status)
}

fn of_todo(todo: &Todo) -> PlanStep {
    let (agent, title) = split_agent(&todo.content).unwrap_or((NOBODY, &todo.content));
    PlanStep { skipped: todo.skipped, ..step(agent, title, todo.status) }
}

fn step(agent: &str, title: &str, status: StepStatus) -> PlanStep {
    let (agent, title) = (agent.trim(), title.trim());
    PlanStep {
        step_id: step_id(agent, title),
        title: title.to_owned(),
        agent: agent.to_owned(),
        status,
        skipped: false,
        order: 0,
    }
}

/// The two parts of `[Agent] title`.
fn split_agent(content: &str) -> Option<(&str, &str)> {
    let (agent, title) = content.trim_start().strip_prefix('[')?.split_once(']')?;
    (!agent.trim().is_empty() && !title.trim().is_empty()).then_some((agent, title))
}

/// The id of a step on the wire, the same in every version of a plan.
pub(super) fn step_id(agent: &str, title: &str) -> String {
    let hash = Sha256::digest(format!("{}::{}", agent.trim().to_lowercase(), title.trim()));
    hash.iter().take(6).fold("step-".to_owned(), |id, byte| id + &format!("{byte:02x}"))
}

/// A name in title case: a letter that does not follow a letter is a capital, the others are small.
pub(super) fn display_name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    let mut after_letter = false;
    for c in name.chars() {
        if after_letter {
            shown.extend(c.to_lowercase());
        } else {
            shown.extend(c.to_uppercase());
        }
        after_letter = c.is_alphabetic();
    }
    shown
}

//! The plan on the wire.

use caipe_a2a::model::{Event, Metadata, Part};
use caipe_engine::{PlanCause, PlanStep, StepStatus};
use serde_json::json;

use super::event_builders::{Chunk, Wire};

/// The plan as the client knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct PlanView {
    artifact: Option<String>,
    steps: Vec<PlanStep>,
    /// The position of the last step that was under way. Upstream's Slack bot stays in it until another step starts.
    entered: Option<usize>,
}

impl PlanView {
    /// The event of a changed plan. A status update can neither add nor remove steps (rule 1), so changed steps are sent as
    /// a plan, under the same id. The client knows a plan that continues after a question from the task that asked the
    /// question (rule 8).
    pub(super) fn event(&mut self, wire: &mut Wire, steps: &[PlanStep], cause: PlanCause) -> Event {
        let first = self.artifact.is_none();
        let same = |(old, new): (&PlanStep, &PlanStep)| old.step_id == new.step_id;
        let unchanged = self.steps.len() == steps.len() && self.steps.iter().zip(steps).all(same);
        let known = if first { cause == PlanCause::Resumed } else { unchanged };
        self.steps = steps.to_vec();
        self.entered = self.current().map(|step| step.order).or(self.entered);
        let id = self.artifact.get_or_insert_with(|| wire.id()).clone();
        wire.artifact(Chunk {
            id,
            name: if known { "execution_plan_status_update" } else { "execution_plan_update" },
            description: description(cause, first),
            part: Part::data(json!({ "steps": steps })),
            metadata: Metadata::new(),
            append: known && cause == PlanCause::Closing,
            last: false,
        })
    }

    /// Notes the end of a request: the client of the next one has entered no step.
    pub(super) fn leave(&mut self) {
        self.entered = None;
    }

    /// The step under way.
    pub(super) fn current(&self) -> Option<&PlanStep> {
        self.steps.iter().find(|step| step.status == StepStatus::InProgress)
    }

    /// Whether there is a plan.
    pub(super) fn is_shown(&self) -> bool {
        self.artifact.is_some()
    }

    /// Whether a step has started.
    pub(super) fn has_step(&self) -> bool {
        self.entered.is_some()
    }

    /// Whether the step that started last is the plan's last.
    pub(super) fn in_last_step(&self) -> bool {
        self.entered.is_some_and(|order| order + 1 == self.steps.len())
    }

    /// The step that an event of `source` belongs to: the open step of `source`, else the one under way (rule 4).
    pub(super) fn step_of(&self, source: &str) -> Option<&str> {
        let open = |step: &&PlanStep| {
            matches!(step.status, StepStatus::InProgress | StepStatus::Pending)
                && step.agent.eq_ignore_ascii_case(source)
        };
        let step = self.steps.iter().find(open).or_else(|| self.current())?;
        Some(&step.step_id)
    }
}

fn description(cause: PlanCause, first: bool) -> &'static str {
    match cause {
        PlanCause::Todos if first => "Execution plan",
        PlanCause::Todos | PlanCause::Progress | PlanCause::Resumed => "Execution plan progress update",
        PlanCause::Delegation => "Execution plan from subagent delegation",
        PlanCause::TaskCompleted => "Task completed",
        PlanCause::Closing => "All execution steps completed",
        PlanCause::GivenUp => "Execution stopped",
    }
}

//! The changes of a plan during a run.

use caipe_model::truncated;

use crate::event::EventKind;
use crate::names::{AgentName, CallId};

use super::steps::{NOBODY, display_name};
use super::{Plan, PlanTask, Todo};
use crate::plan_step::{PlanCause, StepStatus};
use crate::workflow::{Workflow, WorkflowStep};

/// Most characters of a task's description that its step shows.
const TITLE_CHARS: usize = 120;

impl Plan {
    /// Replaces the to-do list with this one, sorted by numeric id. Returns an event for each entry that began or ended.
    pub(crate) fn write(&mut self, mut todos: Vec<Todo>) -> Vec<EventKind> {
        todos.sort_by_key(|todo| todo.id.parse::<u64>().unwrap_or(u64::MAX));
        let changes = todos.iter().filter_map(|todo| self.change(todo)).collect();
        // The steps of workflows stay in a plan that the model rewrites.
        let steps = self.todos.drain(..).filter(|todo| todo.id.starts_with(WORKFLOW_ID));
        let steps: Vec<Todo> =
            steps.filter(|step| todos.iter().all(|todo| todo.content != step.content)).collect();
        todos.extend(steps);
        self.todos = todos;
        changes
    }

    /// Adds the steps of a workflow to the plan.
    pub(crate) fn begin_workflow(&mut self, call: &str, workflow: &Workflow) {
        let todo = |(at, step): (usize, &WorkflowStep)| Todo {
            id: workflow_step_id(call, at),
            content: format!("[{}] {}", display_name(step.agent.as_str()), step.title),
            status: StepStatus::Pending,
            skipped: false,
        };
        self.todos.extend(workflow.steps.iter().enumerate().map(todo));
    }

    /// Sets the status of a workflow's step. Returns the event of its begin or end.
    pub(crate) fn set_workflow_step(
        &mut self,
        call: &str,
        at: usize,
        status: StepStatus,
    ) -> Option<EventKind> {
        let id = workflow_step_id(call, at);
        let known = self.todos.iter().position(|todo| todo.id == id)?;
        let todo = Todo { status, ..self.todos.get(known)?.clone() };
        let change = self.change(&todo);
        self.todos[known] = todo;
        change
    }

    /// Notes that a workflow's step is not run, because an earlier one failed.
    pub(crate) fn skip_workflow_step(&mut self, call: &str, at: usize) {
        let id = workflow_step_id(call, at);
        if let Some(todo) = self.todos.iter_mut().find(|todo| todo.id == id) {
            (todo.status, todo.skipped) = (StepStatus::Failed, true);
        }
    }

    pub(crate) fn delegate(&mut self, call: &CallId, agent: &AgentName, description: &str) {
        self.tasks.push(PlanTask {
            call: call.clone(),
            agent: agent.clone(),
            title: title(description),
            status: StepStatus::InProgress,
        });
    }

    pub(crate) fn end_task(&mut self, call: &str, completed: bool) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.call == call) {
            task.status = if completed { StepStatus::Completed } else { StepStatus::Failed };
        }
    }

    /// The plan as an event, if it has changed since it was last emitted.
    pub(crate) fn changed(&mut self, cause: PlanCause) -> Option<EventKind> {
        let steps = self.derive();
        if steps.is_empty() || steps == self.steps {
            return None;
        }
        self.steps = steps;
        Some(self.event(cause))
    }

    /// The plan as it was last emitted; `None` if it never was.
    pub(crate) fn last_emitted(&self) -> Option<EventKind> {
        let plan = || EventKind::Plan { steps: self.steps.clone(), cause: PlanCause::Resumed, first: false };
        self.shown.then(plan)
    }

    /// Closes every open step. Returns the plan if it was ever emitted.
    pub(crate) fn close(&mut self) -> Option<EventKind> {
        for step in &mut self.steps {
            if !step.status.is_closed() {
                step.status = StepStatus::Completed;
            }
        }
        self.shown.then(|| self.event(PlanCause::Closing))
    }

    /// Closes the steps in progress of a run that ends before its plan is carried out, and returns the plan if that
    /// changed it. A step is completed if the last task of its agent was, or, in a run that was `answered`, if it is the
    /// supervisor's own. Steps that never started stay pending.
    pub(crate) fn give_up(&mut self, answered: bool) -> Option<EventKind> {
        let mut changed = false;
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::InProgress) {
            let agent = plain_name(&step.agent);
            let last = self.tasks.iter().rev().find(|task| plain_name(task.agent.as_str()) == agent);
            let is_done = match last {
                Some(task) => task.status == StepStatus::Completed,
                None => answered && step.agent == NOBODY,
            };
            step.status = if is_done { StepStatus::Completed } else { StepStatus::Failed };
            changed = true;
        }
        (self.shown && changed).then(|| self.event(PlanCause::GivenUp))
    }

    fn event(&mut self, cause: PlanCause) -> EventKind {
        let first = !std::mem::replace(&mut self.shown, true);
        EventKind::Plan { steps: self.steps.clone(), cause, first }
    }

    fn change(&self, todo: &Todo) -> Option<EventKind> {
        let same_text = || self.todos.iter().filter(|known| known.content == todo.content);
        let before = same_text().find(|known| known.id == todo.id).or_else(|| same_text().next());
        let before = before.map_or(StepStatus::Pending, |known| known.status);
        match todo.status {
            now if now == before => None,
            StepStatus::InProgress => Some(EventKind::TodoStarted { content: todo.content.clone() }),
            StepStatus::Completed => Some(EventKind::TodoFinished { content: todo.content.clone() }),
            StepStatus::Pending | StepStatus::Failed => None,
        }
    }
}

/// The begin of the ids of the steps of workflows.
const WORKFLOW_ID: &str = "workflow/";

fn workflow_step_id(call: &str, at: usize) -> String {
    format!("{WORKFLOW_ID}{call}/{at}")
}

/// A name by which a step and a task of the same agent are matched.
fn plain_name(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '-'], " ")
}

/// The beginning of a description, on one line.
fn title(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    truncated(&line, TITLE_CHARS, "...").into_owned()
}

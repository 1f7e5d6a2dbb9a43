//! Reads the tasks of a principal for the agents that work for it.

use async_trait::async_trait;
use caipe_a2a::model::{Artifact, Message};
use caipe_store::{TaskFilter, TaskPhase, TaskRecord};
use serde::Deserialize as _;

use super::error::RunError;
use super::service::Runs;
use crate::binding::{self, Request};
use crate::tools::{ListedTask, ReadTask, TaskReader};

/// The newest tasks of an owner among which those of the person are found.
const MOST_SCANNED: usize = 1000;

/// The phases of tasks.
const PHASES: [TaskPhase; 6] = [
    TaskPhase::Submitted,
    TaskPhase::Working,
    TaskPhase::InputRequired,
    TaskPhase::Completed,
    TaskPhase::Failed,
    TaskPhase::Canceled,
];

#[async_trait]
impl TaskReader for Runs {
    async fn list(&self, own: &str, state: Option<&str>, limit: usize) -> Result<Vec<ListedTask>, String> {
        self.tasks_of_owner(own, state, limit).await.map_err(|error| error.to_string())
    }

    async fn read(&self, own: &str, id: &str) -> Result<Option<ReadTask>, String> {
        self.task_of_owner(own, id).await.map_err(|error| error.to_string())
    }
}

impl Runs {
    async fn tasks_of_owner(
        &self,
        own: &str,
        state: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedTask>, RunError> {
        let person = TaskPerson::of(&self.record(own).await?);
        let phases = PHASES.into_iter().filter(|phase| state.is_some_and(|state| name(*phase) == state));
        let (phases, owner) = (phases.collect(), person.owner.clone());
        let filter = TaskFilter { phases, owner, limit: MOST_SCANNED, ..TaskFilter::default() };
        let records = self.store.tasks(&filter).await?;
        Ok(records.iter().filter(|record| TaskPerson::of(record) == person).take(limit).map(listed).collect())
    }

    async fn task_of_owner(&self, own: &str, id: &str) -> Result<Option<ReadTask>, RunError> {
        let person = TaskPerson::of(&self.record(own).await?);
        let Some(record) = self.store.task(id).await?.filter(|record| TaskPerson::of(record) == person)
        else {
            return Ok(None);
        };
        let mut task = self.log(id).await?.snapshot();
        binding::retain_answer(&mut task);
        let artifacts: Vec<String> = task.artifacts.iter().map(Artifact::text).collect();
        let is_final = record.phase == TaskPhase::Completed && !artifacts.is_empty();
        let status = task.status.message.as_ref().map(Message::text).filter(|_| !is_final);
        let answer = status.filter(|text| !text.is_empty()).unwrap_or_else(|| artifacts.join("\n\n"));
        Ok(Some(ReadTask { task: listed(&record), answer }))
    }
}

/// For whom a task is: its owner, and the user that the owner's client names. A client that acts for several people owns the
/// tasks of all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskPerson {
    pub(super) owner: Option<String>,
    pub(super) user: Option<String>,
}

impl TaskPerson {
    pub(super) fn of(record: &TaskRecord) -> Self {
        let user = Request::of_stored(&record.request).ok().and_then(|request| request.user);
        Self { owner: record.owner.clone(), user }
    }
}

fn listed(record: &TaskRecord) -> ListedTask {
    let request = Message::deserialize(&record.request).map(|message| message.text()).unwrap_or_default();
    ListedTask {
        id: record.id.clone(),
        context: record.context.clone(),
        state: name(record.phase),
        updated: record.updated.to_string(),
        request,
    }
}

/// The name of the state on the wire.
fn name(phase: TaskPhase) -> String {
    binding::state(phase).to_string()
}

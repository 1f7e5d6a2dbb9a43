//! The runs as an A2A agent.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_a2a::A2aError;
use caipe_a2a::model::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, Task, TaskState};
use caipe_a2a::server::{Agent, CallContext, Sent, Subscription};
use caipe_store::{TaskFilter, TaskPhase};

use crate::run::{RunError, Runs};

/// The runs, as the A2A server sees them.
pub struct Facade {
    runs: Arc<Runs>,
    card: Arc<AgentCard>,
    extended: Arc<AgentCard>,
}

impl Facade {
    /// Serves `runs` under `card`, and shows callers who are known the `extended` one.
    pub fn new(runs: Arc<Runs>, card: AgentCard, extended: AgentCard) -> Self {
        Self { runs, card: Arc::new(card), extended: Arc::new(extended) }
    }
}

#[async_trait]
impl Agent for Facade {
    fn card(&self) -> Arc<AgentCard> {
        self.card.clone()
    }

    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        match call.principal {
            Some(_) => Ok(self.extended.clone()),
            None => Err(A2aError::ExtendedAgentCardNotConfigured),
        }
    }

    async fn send(&self, request: SendMessageRequest, _call: &CallContext) -> Result<Sent, A2aError> {
        let (log, after) = self.runs.send(request.message).await.map_err(told)?;
        Ok(Subscription { log, after }.into())
    }

    async fn task(
        &self,
        id: &str,
        history_length: Option<u32>,
        _call: &CallContext,
    ) -> Result<Task, A2aError> {
        let mut task = self.runs.log(id).await.map_err(told)?.snapshot();
        task.trim_history(history_length);
        Ok(task)
    }

    async fn cancel(&self, id: &str, _call: &CallContext) -> Result<Task, A2aError> {
        self.runs.cancel(id).await.map_err(told)
    }

    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        _call: &CallContext,
    ) -> Result<Subscription, A2aError> {
        let log = self.runs.log(id).await.map_err(told)?;
        Ok(Subscription::after(log, after))
    }

    async fn list(
        &self,
        request: ListTasksRequest,
        _call: &CallContext,
    ) -> Result<ListTasksResponse, A2aError> {
        let offset = offset(&request.page_token.clone().unwrap_or_default())?;
        let size = request.page_size();
        let filter = filter(&request)?;
        let all = self.runs.tasks(&filter).await.map_err(told)?;
        let newer = |record: &&caipe_store::TaskRecord| {
            request.status_timestamp_after.is_none_or(|after| record.updated >= after)
        };
        let matching: Vec<_> = all.iter().filter(newer).collect();
        let page = matching.iter().skip(offset).take(size as usize);
        let mut tasks = Vec::new();
        for record in page {
            let mut task = match self.runs.log(&record.id).await {
                Ok(log) => log.snapshot(),
                // Removed for its age since the list was read.
                Err(RunError::UnknownTask(_)) => continue,
                Err(error) => return Err(told(error)),
            };
            task.status.timestamp = Some(record.updated);
            task.trim_history(request.history_length);
            if !request.include_artifacts {
                task.artifacts.clear();
            }
            tasks.push(task);
        }
        let next = offset.saturating_add(size as usize).min(matching.len());
        let next_page_token = if next < matching.len() { next.to_string() } else { String::new() };
        Ok(ListTasksResponse { tasks, next_page_token, page_size: size, total_size: matching.len() as u64 })
    }
}

fn offset(token: &str) -> Result<usize, A2aError> {
    if token.is_empty() {
        return Ok(0);
    }
    token
        .parse()
        .map_err(|_| A2aError::invalid("pageToken", "this is not a token of ours; leave it out to start"))
}

fn filter(request: &ListTasksRequest) -> Result<TaskFilter, A2aError> {
    let phases = match request.status {
        None => Vec::new(),
        Some(TaskState::Submitted) => vec![TaskPhase::Submitted],
        Some(TaskState::Working) => vec![TaskPhase::Working],
        Some(TaskState::InputRequired) => vec![TaskPhase::InputRequired],
        Some(TaskState::Completed) => vec![TaskPhase::Completed],
        Some(TaskState::Failed) => vec![TaskPhase::Failed],
        Some(TaskState::Canceled) => vec![TaskPhase::Canceled],
        Some(other) => return Err(A2aError::invalid("status", format!("no task is ever {other}"))),
    };
    Ok(TaskFilter { context: request.context_id.clone(), phases, ..TaskFilter::default() })
}

/// An error of a run in the protocol's words.
fn told(error: RunError) -> A2aError {
    match error {
        RunError::UnknownTask(id) => A2aError::TaskNotFound(id),
        RunError::NotOpen { .. } => A2aError::UnsupportedOperation(error.to_string()),
        RunError::NotCancelable { task, phase } => {
            A2aError::TaskNotCancelable { id: task, state: state(phase) }
        }
        RunError::ContextMismatch { task } => {
            A2aError::invalid("message.contextId", format!("task {task} belongs to another context"))
        }
        RunError::Invalid(reason) => match reason.split_once(": ") {
            Some((field, reason)) => A2aError::invalid(field, reason),
            None => A2aError::invalid("message", reason),
        },
        RunError::Busy | RunError::Store(_) => A2aError::Internal(error.to_string()),
    }
}

fn state(phase: TaskPhase) -> TaskState {
    match phase {
        TaskPhase::Submitted => TaskState::Submitted,
        TaskPhase::Working => TaskState::Working,
        TaskPhase::InputRequired => TaskState::InputRequired,
        TaskPhase::Completed => TaskState::Completed,
        TaskPhase::Failed => TaskState::Failed,
        TaskPhase::Canceled => TaskState::Canceled,
    }
}

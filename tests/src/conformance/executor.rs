//! An agent that stores its tasks in memory and behaves as a message's first word selects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use caipe_a2a::A2aError;
use caipe_a2a::model::{
    AgentCard, ListTasksRequest, ListTasksResponse, Message, SendMessageRequest, Task, TaskState,
};
use caipe_a2a::server::{Agent, CallContext, Principal, Pushes, Sent, Subscription, TaskLog};
use jiff::Timestamp;
use uuid::Uuid;

use super::behaviour::Behaviour;
use super::steps::{self, Ids};

/// Most tasks of one process; a suite needs a few hundred.
const MAX_TASKS: usize = 20_000;

#[derive(Debug)]
pub(super) struct Executor {
    card: Arc<AgentCard>,
    extended: Arc<AgentCard>,
    pushes: Option<Arc<Pushes>>,
    rules: Rules,
    /// In the order of their creation.
    tasks: Mutex<Vec<TaskEntry>>,
}

/// The rules that the suites want applied differently.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rules {
    /// Whether the extended card needs authentication.
    pub(super) has_users: bool,
    /// Whether to reject context ids that this server did not create.
    pub(super) reject_contexts: bool,
}

#[derive(Debug, Clone)]
struct TaskEntry {
    ids: Ids,
    owner: Option<Principal>,
    log: Arc<TaskLog>,
}

impl Executor {
    pub(super) fn new(
        card: AgentCard,
        extended: AgentCard,
        pushes: Option<Arc<Pushes>>,
        rules: Rules,
    ) -> Self {
        let (card, extended) = (Arc::new(card), Arc::new(extended));
        Self { card, extended, pushes, rules, tasks: Mutex::default() }
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<TaskEntry>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task of the caller. Another principal's task is reported as unknown.
    fn find(&self, id: &str, call: &CallContext) -> Result<TaskEntry, A2aError> {
        let tasks = self.tasks();
        let found = tasks.iter().find(|entry| entry.ids.task == id && entry.owner == call.principal);
        found.cloned().ok_or_else(|| A2aError::TaskNotFound(id.to_owned()))
    }

    fn start_task(&self, message: Message, call: &CallContext) -> Result<TaskEntry, A2aError> {
        let mut tasks = self.tasks();
        if tasks.len() >= MAX_TASKS {
            return Err(A2aError::Internal(format!(
                "this server stores at most {MAX_TASKS} tasks; restart it"
            )));
        }
        let context = match &message.context_id {
            Some(given) if self.rules.reject_contexts => {
                let is_known =
                    |entry: &TaskEntry| entry.ids.context == *given && entry.owner == call.principal;
                if !tasks.iter().any(is_known) {
                    return Err(A2aError::invalid("message.contextId", "was not created by this server"));
                }
                given.clone()
            }
            Some(given) => given.clone(),
            None => Uuid::new_v4().to_string(),
        };
        let ids = Ids { task: Uuid::new_v4().to_string(), context };
        let log = Arc::new(TaskLog::new(Task::submitted(&ids.task, &ids.context, message)));
        let entry = TaskEntry { ids, owner: call.principal.clone(), log };
        tasks.push(entry.clone());
        Ok(entry)
    }

    fn continue_task(
        &self,
        id: &str,
        message: Message,
        call: &CallContext,
    ) -> Result<Subscription, A2aError> {
        let entry = self.find(id, call)?;
        let TaskEntry { ids, log, .. } = &entry;
        let state = log.state();
        if message.context_id.as_ref().is_some_and(|given| *given != ids.context) {
            return Err(A2aError::invalid(
                "message.contextId",
                format!("task {id} belongs to another context"),
            ));
        }
        if state.is_terminal() {
            return Err(A2aError::UnsupportedOperation(format!("task {id} is {state}; start another")));
        }
        let behaviour = Behaviour::of(&message);
        log.note(Timestamp::now(), message.within(&ids.task, &ids.context));
        let subscription = Subscription::from_now(Arc::clone(log));
        // A working task records the message and continues.
        if state.is_interrupted() {
            tokio::spawn(steps::run(Arc::clone(log), ids.clone(), behaviour.steps()));
        }
        Ok(subscription)
    }
}

#[async_trait]
impl Agent for Executor {
    fn card(&self) -> Arc<AgentCard> {
        Arc::clone(&self.card)
    }

    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        if self.rules.has_users && call.principal.is_none() {
            return Err(A2aError::ExtendedAgentCardNotConfigured);
        }
        Ok(Arc::clone(&self.extended))
    }

    async fn send(&self, request: SendMessageRequest, call: &CallContext) -> Result<Sent, A2aError> {
        let message = request.message;
        if let Some(id) = message.task_id.clone() {
            return self.continue_task(&id, message, call).map(Sent::from);
        }
        let behaviour = Behaviour::of(&message);
        if behaviour == Behaviour::Reply {
            return Ok(Message::agent(Uuid::new_v4(), "Direct message response").into());
        }
        let entry = self.start_task(message, call)?;
        let subscription = Subscription::from_start(Arc::clone(&entry.log));
        tokio::spawn(steps::run(entry.log, entry.ids, behaviour.steps()));
        Ok(subscription.into())
    }

    async fn task(&self, id: &str, _: Option<u32>, call: &CallContext) -> Result<Task, A2aError> {
        Ok(self.find(id, call)?.log.snapshot())
    }

    async fn cancel(&self, id: &str, call: &CallContext) -> Result<Task, A2aError> {
        let TaskEntry { ids, log, .. } = self.find(id, call)?;
        match log.state() {
            TaskState::Canceled => {}
            state if state.is_terminal() => {
                return Err(A2aError::TaskNotCancelable { id: id.to_owned(), state });
            }
            _ => {
                log.push(steps::status(&ids, TaskState::Canceled, None));
                log.close();
            }
        }
        Ok(log.snapshot())
    }

    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        call: &CallContext,
    ) -> Result<Subscription, A2aError> {
        Ok(Subscription::after(self.find(id, call)?.log, after))
    }

    fn pushes(&self) -> Option<Arc<Pushes>> {
        self.pushes.clone()
    }

    async fn list(
        &self,
        request: ListTasksRequest,
        call: &CallContext,
    ) -> Result<ListTasksResponse, A2aError> {
        let own = |entry: &&TaskEntry| entry.owner == call.principal;
        let tasks: Vec<Task> = self.tasks().iter().filter(own).map(|entry| entry.log.snapshot()).collect();
        page(tasks, &request)
    }
}

/// The requested page of `tasks`, newest status first. A page token is the number of tasks before it.
fn page(mut tasks: Vec<Task>, request: &ListTasksRequest) -> Result<ListTasksResponse, A2aError> {
    tasks.retain(|task| {
        let newer = |after| task.status.timestamp.is_some_and(|changed| changed >= after);
        request.context_id.as_ref().is_none_or(|context| *context == task.context_id)
            && request.status.is_none_or(|state| state == task.status.state)
            && request.status_timestamp_after.is_none_or(newer)
    });
    tasks.sort_by_key(|task| std::cmp::Reverse(task.status.timestamp));
    let token = request.page_token.as_deref().unwrap_or("0");
    let start: usize =
        token.parse().map_err(|_| A2aError::invalid("pageToken", "was not created by this server"))?;
    let (size, total) = (request.page_size(), tasks.len());
    let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(total);
    let mut tasks: Vec<Task> = tasks.into_iter().take(end).skip(start).collect();
    for task in &mut tasks {
        task.trim_history(request.history_length);
        if !request.include_artifacts {
            task.artifacts.clear();
        }
    }
    let next_page_token = if end < total { end.to_string() } else { String::new() };
    let total_size = u64::try_from(total).unwrap_or(u64::MAX);
    Ok(ListTasksResponse { tasks, next_page_token, page_size: size, total_size })
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;

//! Incoming messages: each one starts a task, answers a waiting task, or repeats an earlier message.
//!
//! A message acts once. Its id, within its principal and context, determines the id of the task that it starts, so the
//! store refuses to start it twice; the record of a task lists the messages that it has received.

use std::sync::Arc;

use caipe_a2a::model::Message;
use caipe_a2a::server::TaskLog;
use caipe_store::{Commit, MAX_ID_BYTES, StoreError, TaskFilter, TaskPhase, TaskRecord};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::active_tasks::Handle;
use super::caller::Caller;
use super::error::{MOST_RUNS, RunError};
use super::event_log::{TaskEventLog, now, wire_log};
use super::service::Runs;
use super::start::RunTrigger;
use crate::binding::{self, ClientToolResult, Reply, Request};
use crate::metrics::metrics;

/// The namespace of the ids of tasks.
const TASK_IDS: Uuid = Uuid::from_u128(0x4c0e_8a77_13d5_5b0f_9f4e_6d1b_2c83_a590);

/// The tasks of a context among which a copy of a message is found: the newest.
const NEWEST_TASKS: usize = 50;

impl Runs {
    /// Starts a task with a message, or continues the one that it names or answers. Returns the task's log and the number of
    /// the last event that the sender has seen.
    pub async fn send(self: &Arc<Self>, message: Message) -> Result<(Arc<TaskLog>, u64), RunError> {
        self.send_as(&Caller::default(), message).await
    }

    /// As [`Runs::send`], for an authenticated caller: it owns the new task, and must own the task or context that the
    /// message names, or be an approver whose decision the task waits for.
    pub async fn send_as(
        self: &Arc<Self>,
        caller: &Caller,
        mut message: Message,
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        self.presentation.place(&mut message);
        caller.mark(&mut message, self.supervisor.get().all_approvers());
        let request = Request::read(&message).map_err(RunError::Invalid)?;
        let owner = caller.owner.as_deref();
        if let Some((result, text)) = ClientToolResult::read(&message).map_err(RunError::Invalid)? {
            return self.answer_call(owner, message.task_id, (result, text)).await;
        }
        if let Some(task) = message.task_id.clone() {
            self.admit_participant(caller, &task).await?;
            return self.continue_task(&task, message, request).await;
        }
        let mut id = task_id(owner, &message);
        if let Some(known) = &id
            && let Some(started) = self.store.task(known).await?
        {
            if is_same(&started.request, &message.message_id, &request) {
                return Ok((self.log(&started.id).await?, 0));
            }
            // Some clients reuse ids: another content is another message.
            id = None;
        }
        match self.in_context(owner, &message, &request).await? {
            Some(ContextTask::Received(task)) => self.follow(&task).await,
            Some(ContextTask::Answered(task)) => {
                // Another answer came first.
                let late = |error| match error {
                    RunError::NotOpen { .. } => RunError::NothingWaits,
                    other => other,
                };
                self.continue_task(&task, message, request).await.map_err(late)
            }
            None if request.is_decision() => Err(RunError::NothingWaits),
            None => self.begin(owner, message, request, id).await.map(|log| (log, 0)),
        }
    }

    /// The task of the message's context that has received the message before, or that waits for it.
    async fn in_context(
        &self,
        owner: Option<&str>,
        message: &Message,
        request: &Request,
    ) -> Result<Option<ContextTask>, RunError> {
        let Some(context) = &message.context_id else { return Ok(None) };
        let filter =
            TaskFilter { context: Some(context.clone()), limit: NEWEST_TASKS, ..TaskFilter::default() };
        let tasks = self.store.tasks(&filter).await?;
        admit_to_context(owner, &tasks)?;
        if let Some(known) = tasks.iter().find(|task| has_received(task, message, request)) {
            return Ok(Some(ContextTask::Received(known.id.clone())));
        }
        let waiting = tasks.into_iter().find(|task| task.phase == TaskPhase::InputRequired);
        let Some(waiting) = waiting else { return Ok(None) };
        let (state, _) = self.conversations.load(context, &self.supervisor.get().name).await?;
        let reply = request.clone().reply(&state.questions(), false);
        let answers = request.is_decision() || !matches!(reply, Reply::Message(_));
        Ok(answers.then_some(ContextTask::Answered(waiting.id)))
    }

    /// Reports a task of another caller as unknown. Without a caller's name every task is accessible.
    pub async fn admit(&self, caller: Option<&str>, id: &str) -> Result<(), RunError> {
        let record = self.record(id).await?;
        if caller.is_none_or(|caller| record.owner.as_deref() == Some(caller)) {
            return Ok(());
        }
        Err(RunError::UnknownTask(id.to_owned()))
    }

    async fn begin(
        self: &Arc<Self>,
        owner: Option<&str>,
        mut message: Message,
        request: Request,
        id: Option<String>,
    ) -> Result<Arc<TaskLog>, RunError> {
        if self.tracker.len() >= MOST_RUNS {
            return Err(RunError::Busy);
        }
        let fresh = message.context_id.is_none();
        let context = message.context_id.get_or_insert_with(|| Uuid::now_v7().to_string()).clone();
        if context.len() > MAX_ID_BYTES {
            let bytes = context.len();
            return Err(RunError::Invalid(format!(
                "message.contextId: it has {bytes} bytes; at most {MAX_ID_BYTES} are taken"
            )));
        }
        let record = TaskRecord {
            owner: owner.map(Into::into),
            is_repeatable: self.supervisor.get().begins_repeatable_runs(),
            ..new_task(&mut message, &request, context, id)?
        };
        let lease = match self.active_tasks.lease(&record.id) {
            Ok(lease) => lease,
            Err(other) => return self.started_concurrently(&other, &record.id, &message, &request).await,
        };
        let recorded = lease.recorded();
        let (create, before) = (Some(self.leases.term.clone()), Instant::now());
        let (context, task) = (record.context.clone(), Some(record.clone()));
        match metrics()
            .committed(self.store.commit(Commit { context, task, create, ..Commit::default() }))
            .await
        {
            // Another process has received the same message.
            Err(StoreError::Exists { .. }) => {
                return self.started_elsewhere(&record.id, &message, &request).await;
            }
            // Another caller has begun a conversation of this name at the same time.
            Err(StoreError::ForeignConversation { .. }) => return Err(foreign_context()),
            created => created?,
        }
        let held = self.leases.of_new(&record.id, before, lease.stop());
        let log = Arc::new(wire_log(binding::opening(&record, message), &self.active_tasks.budget));
        let turn = if fresh {
            self.conversations.queue_in_new(&record.context)
        } else {
            self.conversations.queue(&record.context)
        };
        let event_log =
            TaskEventLog::new(self.leases.clone(), record, log.clone(), (lease, held), &self.presentation);
        self.spawn(
            event_log,
            turn,
            if fresh { RunTrigger::First(request) } else { RunTrigger::Request(request) },
        );
        recorded.cancel();
        Ok(log)
    }

    /// The log of a task that a concurrent copy of the message starts.
    async fn started_concurrently(
        &self,
        other: &Handle,
        id: &str,
        message: &Message,
        request: &Request,
    ) -> Result<Arc<TaskLog>, RunError> {
        other.until_recorded().await;
        self.started_elsewhere(id, message, request).await
    }

    /// The log of a task that a copy of the message has started.
    async fn started_elsewhere(
        &self,
        id: &str,
        message: &Message,
        request: &Request,
    ) -> Result<Arc<TaskLog>, RunError> {
        match self.store.task(id).await? {
            Some(started) if is_same(&started.request, &message.message_id, request) => self.log(id).await,
            _ => Err(RunError::Busy),
        }
    }

    /// Continues a task that waits for a message.
    async fn continue_task(
        self: &Arc<Self>,
        id: &str,
        message: Message,
        request: Request,
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        let record = self.record(id).await?;
        if message.context_id.as_ref().is_some_and(|context| *context != record.context) {
            return Err(RunError::ContextMismatch { task: id.to_owned() });
        }
        if has_received(&record, &message, &request) {
            return self.follow(id).await;
        }
        let not_open = |phase| RunError::NotOpen { task: id.to_owned(), phase };
        if record.phase != TaskPhase::InputRequired {
            return Err(not_open(record.phase));
        }
        let lease = match self.active_tasks.lease(id) {
            Ok(lease) => lease,
            Err(other) => {
                other.until_recorded().await;
                if has_received(&self.record(id).await?, &message, &request) {
                    return self.follow(id).await;
                }
                return Err(not_open(TaskPhase::Working));
            }
        };
        let recorded = lease.recorded();
        let (mut event_log, turn) = match self.take_over(id, &record.context, lease).await {
            // Another process has received a message to the task.
            Err(RunError::Store(StoreError::LeaseTaken { .. })) => {
                if has_received(&self.record(id).await?, &message, &request) {
                    return self.follow(id).await;
                }
                return Err(not_open(TaskPhase::Working));
            }
            taken => taken?,
        };
        if has_received(event_log.record(), &message, &request) {
            drop(event_log);
            return self.follow(id).await;
        }
        if event_log.phase() != TaskPhase::InputRequired {
            return Err(not_open(event_log.phase()));
        }
        event_log.record_reply(&message).await?;
        recorded.cancel();
        let log = event_log.log();
        let seen = log.last_seq();
        self.spawn(event_log, turn, RunTrigger::Answer(request));
        Ok((log, seen))
    }

    /// The log of a task, from now on.
    pub(super) async fn follow(&self, id: &str) -> Result<(Arc<TaskLog>, u64), RunError> {
        let log = self.log(id).await?;
        let seen = log.last_seq();
        Ok((log, seen))
    }
}

/// What a message that names only its context is for one of the tasks there.
enum ContextTask {
    /// The task has received a copy of the message before.
    Received(String),
    /// The message answers the question of the task.
    Answered(String),
}

/// Rejects a context of another caller, because the model would read its messages.
fn admit_to_context(caller: Option<&str>, tasks: &[TaskRecord]) -> Result<(), RunError> {
    match (caller, tasks.first()) {
        (Some(caller), Some(record)) if record.owner.as_deref() != Some(caller) => Err(foreign_context()),
        _ => Ok(()),
    }
}

fn foreign_context() -> RunError {
    let reason = "message.contextId: this context cannot be used; leave it out, or choose another";
    RunError::Invalid(reason.to_owned())
}

/// The id of the task that a message starts, the same for each copy of the message.
fn task_id(owner: Option<&str>, message: &Message) -> Option<String> {
    if message.message_id.is_empty() {
        return None;
    }
    let context = message.context_id.as_deref().unwrap_or_default();
    let parts = owner.into_iter().chain([context, &message.message_id]);
    let id = parts.fold(TASK_IDS, |namespace, part| Uuid::new_v5(&namespace, part.as_bytes()));
    Some(id.to_string())
}

/// Whether a stored message is a copy of another one.
fn is_same(stored: &Value, id: &str, request: &Request) -> bool {
    stored["messageId"] == id && Request::of_stored(stored).is_ok_and(|stored| stored == *request)
}

/// Whether a task has received a copy of a message while it waited.
fn has_received(record: &TaskRecord, message: &Message, request: &Request) -> bool {
    record.replies.iter().any(|reply| is_same(&reply.message, &message.message_id, request))
}

/// The record of the task that a message starts; sets the message's task id.
fn new_task(
    message: &mut Message,
    request: &Request,
    context: String,
    id: Option<String>,
) -> Result<TaskRecord, RunError> {
    let id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
    message.task_id = Some(id.clone());
    let now = now();
    let trace_id = request.trace_id.clone().unwrap_or_else(|| Uuid::new_v4().simple().to_string());
    let body = serde_json::to_value(&*message).map_err(|error| RunError::Invalid(error.to_string()))?;
    Ok(TaskRecord {
        id,
        context,
        phase: TaskPhase::Submitted,
        created: now,
        updated: now,
        owner: None,
        trace_id,
        request: body,
        replies: Vec::new(),
        is_repeatable: false,
        recoveries: 0,
        status_message: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_message_start_the_same_task() {
        let id = |owner: Option<&str>, context: Option<&str>, message: &str| {
            let context_id = context.map(str::to_owned);
            task_id(owner, &Message { context_id, ..Message::user(message, "hi") })
        };
        let first = id(Some("ann"), Some("c"), "m");
        assert!(first.is_some());
        assert_eq!(first, id(Some("ann"), Some("c"), "m"));
        for other in [
            id(Some("bob"), Some("c"), "m"),
            id(None, Some("c"), "m"),
            id(Some("ann"), None, "m"),
            id(Some("ann"), Some("d"), "m"),
            id(Some("ann"), Some("c"), "n"),
        ] {
            assert_ne!(first, other);
        }
        assert_eq!(id(Some("ann"), Some("c"), ""), None);
    }
}

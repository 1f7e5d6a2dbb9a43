//! A task's record, its event log in the store, and its log on the wire, written in that order.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_a2a::model::{Event, Message};
use caipe_a2a::server::TaskLog;
use caipe_engine::{EventKind, Outcome, RunEvent, RunState};
use caipe_store::{Commit, Snapshot, Store, StoreError, TaskPhase, TaskRecord, TaskReply};
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::active_tasks::TaskLease;
use super::driver::{Batch, Sink, SinkError};
use crate::binding::{self, Binding, Presentation, Request};
use crate::delegation::RunInfo;
use crate::metrics::metrics;

/// Events read from the store at a time.
const PAGE: usize = 1024;

/// Commits and shows the decisions of one task's runs.
#[derive(Debug)]
pub(super) struct TaskEventLog {
    store: Arc<dyn Store>,
    record: TaskRecord,
    log: Arc<TaskLog>,
    binding: Binding,
    next_seq: u64,
    /// The exclusive right to run the task; none if it is only read.
    lease: Option<TaskLease>,
}

impl TaskEventLog {
    /// The event log of a new task, whose record is in the store.
    pub(super) fn new(
        store: Arc<dyn Store>,
        record: TaskRecord,
        log: Arc<TaskLog>,
        lease: Option<TaskLease>,
        presentation: &Presentation,
    ) -> Self {
        let binding = Binding::new(&record.id, &record.context, &record.trace_id, presentation);
        Self { store, record, log, binding, next_seq: 1, lease }
    }

    /// The event log of a stored task; its wire log is rebuilt from its events.
    pub(super) async fn reopen(
        store: Arc<dyn Store>,
        record: TaskRecord,
        lease: Option<TaskLease>,
        presentation: &Presentation,
    ) -> Result<Self, StoreError> {
        let request = message_of(&record, &record.request)?;
        let log = Arc::new(TaskLog::new(binding::opening(&record, request)));
        let mut replies = Vec::new();
        for reply in &record.replies {
            replies.push((reply.after, reply.at, message_of(&record, &reply.message)?));
        }
        let mut replies = replies.into_iter().peekable();
        let mut event_log = Self::new(store, record, log, lease, presentation);
        loop {
            let page = event_log.store.events(&event_log.record.id, event_log.next_seq - 1, PAGE).await?;
            let end = page.is_empty();
            for logged in page {
                while let Some((_, at, message)) = replies.next_if(|(after, ..)| *after < logged.seq) {
                    event_log.log.note(at, message);
                }
                event_log.log.push_many_at(logged.at, event_log.binding.bind(&logged.event));
                event_log.next_seq = logged.seq + 1;
            }
            if end {
                break;
            }
        }
        for (_, at, message) in replies {
            event_log.log.note(at, message);
        }
        if event_log.record.phase == TaskPhase::Working {
            event_log.log.mark_working(event_log.record.updated);
        }
        Ok(event_log)
    }

    /// Records the message that a waiting task received; the task is working again.
    pub(super) async fn record_reply(&mut self, message: &Message) -> Result<(), StoreError> {
        let reply = message.clone().within(&*self.record.id, &*self.record.context);
        let value = serde_json::to_value(&reply).map_err(|error| StoreError::Encode(error.to_string()))?;
        let at = now();
        let mut record = self.record.clone();
        record.replies.push(TaskReply { after: self.next_seq - 1, at, message: value });
        (record.phase, record.updated, record.status_message) = (TaskPhase::Working, at, None);
        let context = record.context.clone();
        let commit = Commit { context, task: Some(record.clone()), ..Commit::default() };
        metrics().committed(self.store.commit(commit)).await?;
        self.record = record;
        self.log.note(at, reply);
        Ok(())
    }

    pub(super) fn task(&self) -> &str {
        &self.record.id
    }

    pub(super) fn context(&self) -> &str {
        &self.record.context
    }

    /// The user that the first message names.
    pub(super) fn user(&self) -> Option<String> {
        Request::of_stored(&self.record.request).ok()?.user
    }

    pub(super) const fn record(&self) -> &TaskRecord {
        &self.record
    }

    pub(super) fn phase(&self) -> TaskPhase {
        self.record.phase
    }

    /// Cancelled to stop the task.
    pub(super) fn stop(&self) -> CancellationToken {
        self.lease.as_ref().map(TaskLease::stop).unwrap_or_default()
    }

    pub(super) fn log(&self) -> Arc<TaskLog> {
        self.log.clone()
    }

    /// The information about a run, from its user and its first message.
    pub(super) fn info(&self, user: Option<String>) -> RunInfo {
        let request = Request::of_stored(&self.record.request).ok();
        RunInfo {
            context: self.record.context.as_str().into(),
            task: self.record.id.as_str().into(),
            trace_id: self.record.trace_id.as_str().into(),
            user: user.map(Into::into),
            agents_words: request.as_ref().is_some_and(|request| request.agents_words),
            require_approval: request.map(|request| request.require_approval).unwrap_or_default().into(),
        }
    }

    /// Ends the task as failed.
    pub(super) async fn fail(&mut self, reason: &str) -> Result<(), StoreError> {
        self.end(Outcome::Failed { reason: format!("Agent execution failed: {reason}") }).await
    }

    /// Ends the task without a run, on the wire even if the store fails.
    pub(super) async fn end(&mut self, outcome: Outcome) -> Result<(), StoreError> {
        let event = RunEvent::own(EventKind::Finished { outcome });
        let committed = self.commit_events(Commit::default(), vec![event.clone()]).await;
        if committed.is_err() {
            self.lease = None;
            self.log.push_many(self.binding.bind(&event));
        }
        committed
    }

    /// Writes the commit with these events, then shows them.
    async fn commit_events(&mut self, commit: Commit, events: Vec<RunEvent>) -> Result<(), StoreError> {
        let phase = events.iter().fold(self.open_phase(), |phase, event| phase_after(event).unwrap_or(phase));
        let count = events.len() as u64;
        // If the commit fails, the ids must not change.
        let mut binding = self.binding.clone();
        let wire: Vec<Event> = events.iter().flat_map(|event| binding.bind(event)).collect();
        let at = now();
        let task = (phase != self.record.phase).then(|| TaskRecord {
            phase,
            updated: at,
            status_message: status_message(&wire),
            ..self.record.clone()
        });
        let commit = Commit {
            context: self.record.context.clone(),
            task: task.clone(),
            events,
            at,
            first_seq: self.next_seq,
            events_of: self.record.id.clone(),
            ..commit
        };
        metrics().committed(self.store.commit(commit)).await?;
        self.next_seq += count;
        self.binding = binding;
        if let Some(task) = task {
            self.record = task;
            if self.record.phase == TaskPhase::Working {
                self.log.mark_working(at);
            }
        }
        if !self.record.phase.is_under_way() {
            // Before the question is shown, because a client may answer it then.
            self.lease = None;
        }
        if !wire.is_empty() {
            self.log.push_many_at(at, wire);
        }
        Ok(())
    }

    /// The phase of a task that an event happens to.
    fn open_phase(&self) -> TaskPhase {
        match self.record.phase {
            TaskPhase::Submitted | TaskPhase::InputRequired => TaskPhase::Working,
            phase => phase,
        }
    }
}

/// The current time, in the precision of the store.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

fn message_of(record: &TaskRecord, message: &Value) -> Result<Message, StoreError> {
    serde::Deserialize::deserialize(message).map_err(|error: serde_json::Error| StoreError::Corrupt {
        what: format!("task {}", record.id),
        reason: error.to_string(),
    })
}

/// The message of the last status among these events.
fn status_message(wire: &[Event]) -> Option<Value> {
    let status = wire.iter().rev().find_map(|event| match event {
        Event::StatusUpdate(update) => Some(&update.status),
        _ => None,
    });
    serde_json::to_value(status?.message.as_ref()?).ok()
}

/// The phase that an event changes its task to, if any.
fn phase_after(event: &RunEvent) -> Option<TaskPhase> {
    match &event.kind {
        EventKind::Finished { outcome } if event.path.is_empty() => Some(match outcome {
            Outcome::Completed { .. } => TaskPhase::Completed,
            Outcome::Failed { .. } => TaskPhase::Failed,
            Outcome::Canceled => TaskPhase::Canceled,
            Outcome::InputRequired => TaskPhase::InputRequired,
        }),
        _ => None,
    }
}

#[async_trait]
impl Sink for TaskEventLog {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        let failed = |error: StoreError| SinkError(error.to_string());
        let snapshot = batch.snapshot.then(|| Snapshot::of(state)).transpose().map_err(failed)?;
        let commit = Commit { snapshot, appends: batch.appends, ..Commit::default() };
        self.commit_events(commit, batch.events).await.map_err(failed)
    }
}

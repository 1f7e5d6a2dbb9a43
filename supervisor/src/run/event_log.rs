//! A task's record, its event log in the store, and its log on the wire. They are written in that order, except pieces of
//! text, which are shown first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::event_id;
use caipe_a2a::model::{Event, Message, Metadata, Task};
use caipe_a2a::server::{Addition, LogBudget, TaskLog};
use caipe_engine::{AgentName, ApprovedCall, CallId, EventKind, Outcome, RunEvent, RunState};
use caipe_store::{Follower, SavedConversation, StoreError, TaskPhase, TaskRecord, TaskReply};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::active_tasks::TaskLease;
use super::driver::{Batch, Sink, SinkError};
use super::leases::{HeldLease, Leases};
use super::log_writer::{LogWriter, Writing};
use super::outbox::{self, Outbox};
use crate::binding::{self, Binding, Presentation, Request};
use crate::delegation::{ParentCall, RunInfo};

/// How often a log that follows another process looks for readers.
const UNREAD_INTERVAL: Duration = Duration::from_secs(5);

/// Events read from the store at a time.
const PAGE: usize = 1024;

/// Commits and shows the decisions of one task's runs.
pub(super) struct TaskEventLog {
    writer: LogWriter,
    record: TaskRecord,
    log: Arc<TaskLog>,
    binding: Binding,
    /// What of the conversation is stored.
    saved: SavedConversation,
    /// The exclusive right to run the task; none if it is only read.
    lease: Option<TaskLease>,
    /// Carries out what follows the commits of a run.
    outbox: Option<Arc<Outbox>>,
    /// The time of the last event or change. Later ones are not before it, also if the clock is set back.
    latest: Timestamp,
}

impl TaskEventLog {
    /// The event log of a new task, whose record is in the store.
    pub(super) fn new(
        leases: Arc<Leases>,
        record: TaskRecord,
        log: Arc<TaskLog>,
        (lease, held): (TaskLease, HeldLease),
        presentation: &Presentation,
    ) -> Self {
        let binding = binding_of(&record, presentation);
        let writer = LogWriter::after(leases, &record, 0, Some(held));
        let (saved, latest) = (SavedConversation::default(), record.updated);
        Self { writer, record, log, binding, saved, lease: Some(lease), outbox: None, latest }
    }

    /// The event log of a stored task. Its wire log is rebuilt from its events.
    pub(super) async fn reopen(
        leases: Arc<Leases>,
        record: TaskRecord,
        (lease, held): (Option<TaskLease>, Option<HeldLease>),
        (presentation, budget): (&Presentation, &Arc<LogBudget>),
    ) -> Result<Self, StoreError> {
        let request = message_of(&record, &record.request)?;
        let log = Arc::new(wire_log(binding::opening(&record, request), budget));
        let mut replies = Vec::new();
        for reply in &record.replies {
            replies.push((reply.after, reply.at, message_of(&record, &reply.message)?));
        }
        let mut replies = replies.into_iter().peekable();
        let mut binding = binding_of(&record, presentation);
        let (mut last, mut latest) = (0, record.updated);
        loop {
            let page = leases.store.events(&record.id, last, PAGE).await?;
            let end = page.is_empty();
            for logged in page {
                while let Some((_, at, message)) = replies.next_if(|(after, ..)| *after < logged.seq) {
                    log.note(at, message);
                }
                let addition = binding.addition(logged.seq, &logged.event);
                log.push_from(logged.at, [(event_id::first_of(logged.seq), addition)]);
                (last, latest) = (logged.seq, latest.max(logged.at));
            }
            if end {
                break;
            }
        }
        for (_, at, message) in replies {
            log.note(at, message);
        }
        if record.phase == TaskPhase::Working {
            log.mark_working(record.updated);
        }
        let writer = LogWriter::after(leases, &record, last, held);
        Ok(Self {
            writer,
            record,
            log,
            binding,
            saved: SavedConversation::default(),
            lease,
            outbox: None,
            latest,
        })
    }

    /// The same, which shows its events in the log that clients already read, with those that this log does not have yet.
    pub(super) fn onto(self, log: Arc<TaskLog>) -> Self {
        let mut missing = self.log.cursor(log.last_seq());
        while let Some(event) = missing.ready() {
            let addition = Addition::Events(vec![event.event().into_owned()]);
            log.push_from(event.at(), [(event.seq(), addition)]);
        }
        Self { log, ..self }
    }

    /// Shows the events that another process commits, until the run is over or nobody reads them.
    pub(super) async fn follow(mut self, mut follower: Follower) {
        loop {
            let event = match tokio::time::timeout(UNREAD_INTERVAL, follower.next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    tracing::warn!(task = self.record.id, %error, "failed to follow a task; trying again");
                    tokio::time::sleep(UNREAD_INTERVAL).await;
                    continue;
                }
                Err(_) => {
                    if Arc::strong_count(&self.log) == 1 {
                        return;
                    }
                    continue;
                }
            };
            if self.record.phase == TaskPhase::Submitted {
                self.record.phase = TaskPhase::Working;
                self.log.mark_working(event.at);
            }
            self.show(event.seq, event.at, &[event.event]);
        }
        self.log.close();
    }

    /// Reads the events after those that are shown.
    pub(super) fn follower(&self) -> Follower {
        self.writer.follower()
    }

    /// Cancelled once another process continues the task.
    pub(super) fn lost(&self) -> CancellationToken {
        self.writer.lost()
    }

    /// Keeps the lease of the task until it is dropped too.
    pub(super) fn keep_lease(&self) -> Option<Arc<DropGuard>> {
        self.writer.keep_lease()
    }

    /// What follows the commits is carried out there.
    pub(super) fn set_outbox(&mut self, outbox: Arc<Outbox>) {
        self.outbox = Some(outbox);
    }

    /// Notes what of the conversation is stored.
    pub(super) fn set_saved(&mut self, saved: SavedConversation) {
        self.saved = saved;
    }

    /// Records that this process continues the task after another one crashed during it.
    pub(super) async fn count_recovery(&mut self) -> Result<(), StoreError> {
        let record = TaskRecord { recoveries: self.record.recoveries + 1, ..self.record.clone() };
        self.writer.commit(Writing { task: Some(record.clone()), ..Writing::default() }).await?;
        self.record = record;
        Ok(())
    }

    /// Records the message that a waiting task received; the task is working again.
    pub(super) async fn record_reply(&mut self, message: &Message) -> Result<(), StoreError> {
        let reply = message.clone().within(&*self.record.id, &*self.record.context);
        let value = serde_json::to_value(&reply).map_err(|error| StoreError::Encode(error.to_string()))?;
        let at = self.now();
        let mut record = self.record.clone();
        record.replies.push(TaskReply { after: self.writer.last_seq(), at, message: value });
        (record.phase, record.updated, record.status_message) = (TaskPhase::Working, at, None);
        self.writer.try_commit(Writing { task: Some(record.clone()), ..Writing::default() }).await?;
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

    /// The user that the agents work for: the one of the newest message, or of the first one if that names none. The task of an
    /// owner is always for the user of its first message, because an approver may have sent the newest one.
    pub(super) fn user_with(&self, newest: Option<String>) -> Option<String> {
        let newest = newest.filter(|_| self.record.owner.is_none());
        newest.or_else(|| Request::of_stored(&self.record.request).ok()?.user)
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

    /// The information about a run, from its user and its messages: a later message may require more approvals, not fewer.
    pub(super) fn info(&self, user: Option<String>) -> RunInfo {
        let request = Request::of_stored(&self.record.request).ok();
        let replies = self.record.replies.iter().filter_map(|reply| Request::of_stored(&reply.message).ok());
        let require_approval: Vec<String> =
            request.iter().cloned().chain(replies).flat_map(|request| request.require_approval).collect();
        RunInfo {
            context: self.record.context.as_str().into(),
            task: self.record.id.as_str().into(),
            trace_id: self.record.trace_id.as_str().into(),
            user: user.map(Into::into),
            always_allowed: Arc::default(),
            approved: Arc::default(),
            parents: request.as_ref().map(parents).unwrap_or_default(),
            remaining: None,
            agents_words: request.as_ref().is_some_and(|request| request.agents_words),
            scratchpad: None,
            client_tools: self.client_tools().into(),
            require_approval: require_approval.into(),
        }
    }

    /// The tools that the delegating supervisor says a person has allowed for the rest of the conversation.
    pub(super) fn always_allowed(&self) -> Vec<String> {
        Request::of_stored(&self.record.request).map(|request| request.always_allowed).unwrap_or_default()
    }

    /// The calls that the delegating supervisor says a person has approved with the form of a workflow.
    pub(super) fn approved_calls(&self) -> Vec<ApprovedCall> {
        Request::of_stored(&self.record.request).map(|request| request.approved_calls).unwrap_or_default()
    }

    /// The files that the delegating supervisor shares.
    pub(super) fn scratchpad(&self) -> Option<BTreeMap<String, String>> {
        binding::shared_files(Some(&self.metadata()?)).ok()?
    }

    /// The tools that the delegating supervisor answers.
    fn client_tools(&self) -> Vec<String> {
        let metadata = self.metadata();
        binding::client_tools(metadata.as_ref()).unwrap_or_default()
    }

    /// The metadata of the message that started the task.
    fn metadata(&self) -> Option<Metadata> {
        Metadata::deserialize(self.record.request.get("metadata")?).ok()
    }

    /// Ends the task as failed.
    pub(super) async fn fail(&mut self, reason: &str) -> Result<(), StoreError> {
        self.end(Outcome::Failed { reason: format!("Agent execution failed: {reason}") }).await
    }

    /// Ends the task without a run, on the wire even if the store fails, but not if another process continues the task.
    pub(super) async fn end(&mut self, outcome: Outcome) -> Result<(), StoreError> {
        let event = RunEvent::own(EventKind::Finished { outcome });
        let committed = self.commit_events(Writing::default(), std::slice::from_ref(&event)).await;
        if committed.as_ref().is_err_and(|error| !matches!(error, StoreError::LeaseLost { .. })) {
            self.lease = None;
            let at = self.now();
            self.show(self.writer.last_seq() + 1, at, &[event]);
        }
        committed
    }

    /// Writes the events with what else there is to write, then shows them.
    async fn commit_events(&mut self, writing: Writing<'_>, events: &[RunEvent]) -> Result<(), StoreError> {
        let phase = events.iter().fold(self.open_phase(), |phase, event| phase_after(event).unwrap_or(phase));
        let (at, first) = (self.now(), self.writer.acquire().await?);
        let task = (phase != self.record.phase).then(|| TaskRecord {
            phase,
            updated: at,
            status_message: self.status_message(first, events),
            ..self.record.clone()
        });
        let release = !phase.is_under_way();
        self.writer.commit(Writing { task: task.clone(), events, at, release, ..writing }).await?;
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
        self.show(first, at, events);
        Ok(())
    }

    fn now(&mut self) -> Timestamp {
        self.latest = now().max(self.latest);
        self.latest
    }

    /// Shows events, of which the first has this number.
    fn show(&mut self, first: u64, at: Timestamp, events: &[RunEvent]) {
        let add = |(number, event)| (event_id::first_of(number), self.binding.addition(number, event));
        let mut additions: Vec<_> = (first..).zip(events).map(add).collect();
        additions.retain(|(_, addition)| !addition.is_empty());
        if !additions.is_empty() {
            self.log.push_from(at, additions);
        }
    }

    /// The message of the status that the events lead to, if they end the run.
    fn status_message(&self, first: u64, events: &[RunEvent]) -> Option<Value> {
        events.iter().find_map(phase_after)?;
        let mut binding = self.binding.clone();
        let wire = (first..).zip(events).flat_map(|(number, event)| binding.bind(number, event));
        status_message(&wire.collect::<Vec<_>>())
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

fn binding_of(record: &TaskRecord, presentation: &Presentation) -> Binding {
    Binding::new(&record.id, &record.context, &record.trace_id, presentation)
}

/// The wire log of a task, before its first event.
pub(super) fn wire_log(task: Task, budget: &Arc<LogBudget>) -> TaskLog {
    TaskLog::starting_at(event_id::first_of(0), task, budget)
}

#[async_trait]
impl Sink for Box<TaskEventLog> {
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError> {
        let failed = |error: StoreError| SinkError(error.to_string());
        if !batch.changes_state && batch.events.iter().all(RunEvent::is_transient) {
            let at = self.now();
            if let Some(first) = self.writer.show(&batch.events, at) {
                self.show(first, at, &batch.events);
                return Ok(());
            }
        }
        let conversation =
            batch.changes_state.then(|| self.saved.change(state)).transpose().map_err(failed)?;
        let now = self.now();
        let entry = |withdrawal| outbox::entry(&self.record.id, withdrawal, now);
        let entries: Vec<_> =
            batch.withdrawals.iter().map(entry).collect::<Result<_, _>>().map_err(failed)?;
        let writing = Writing { conversation, outbox: entries.clone(), ..Writing::default() };
        self.commit_events(writing, &batch.events).await.map_err(failed)?;
        if let Some(outbox) = &self.outbox {
            outbox.perform(entries);
        }
        if batch.changes_state {
            self.saved.set(state);
        }
        Ok(())
    }

    fn save_due(&self) -> Option<Instant> {
        self.writer.save_due()
    }

    fn save(&mut self) {
        self.writer.save();
    }
}

/// The agents on the way to this one. Their calls are those of other processes.
fn parents(request: &Request) -> Arc<[ParentCall]> {
    let parent = |name: &String| ParentCall { call: CallId::new(), agent: AgentName::new(name) };
    request.delegation_path.iter().map(parent).collect()
}

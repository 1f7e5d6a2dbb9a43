//! What a message is to the runs: the beginning of a task, the same one said again, or the answer to a question.

use std::sync::Arc;

use caipe_a2a::model::Message;
use caipe_a2a::server::TaskLog;
use caipe_store::{Commit, MAX_ID_BYTES, TaskFilter, TaskPhase, TaskRecord};
use uuid::Uuid;

use super::error::{MOST_RUNS, RunError};
use super::journal::{Journal, now};
use super::live::Handle;
use super::service::{Runs, TURN_DEADLINE};
use super::start::Begin;
use crate::binding::{self, Request};

impl Runs {
    /// Takes a message: a new task, or the answer that an open one waits for. Returns the task's log and how
    /// much of it the sender has seen.
    pub async fn send(self: &Arc<Self>, message: Message) -> Result<(Arc<TaskLog>, u64), RunError> {
        self.send_for(None, message).await
    }

    /// The same for a caller who is told apart from others: the task is theirs, and so must be what it goes on with.
    pub async fn send_for(
        self: &Arc<Self>,
        owner: Option<&str>,
        mut message: Message,
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        self.voice.place(&mut message);
        let request = Request::read(&message).map_err(RunError::Invalid)?;
        if let Some(task) = message.task_id.clone() {
            self.admit(owner, &task).await?;
            return self.go_on(&task, message, request).await;
        }
        if let (Some(owner), Some(context)) = (owner, &message.context_id) {
            self.admit_to_context(owner, context).await?;
        }
        let mut id = self.voice.task_of(&message);
        if let Some(begun) = self.begun_as(id.as_deref()).await? {
            if Request::of_stored(&begun.request).is_ok_and(|said| said == request) {
                return Ok((self.log(&begun.id).await?, 0));
            }
            // Not every client makes ids that are unique: what says something else is something else.
            id = None;
        }
        self.begin(owner, message, request, id).await.map(|log| (log, 0))
    }

    /// The task of this id, if one has begun: who got no answer says the message again, and it must not be done twice.
    async fn begun_as(&self, id: Option<&str>) -> Result<Option<TaskRecord>, RunError> {
        match id {
            Some(id) => Ok(self.store.task(id).await?),
            None => Ok(None),
        }
    }

    /// Refuses a task of somebody else as if it were not there. Nobody is told apart without a caller's name.
    pub async fn admit(&self, caller: Option<&str>, id: &str) -> Result<(), RunError> {
        let Some(caller) = caller else { return Ok(()) };
        if self.record(id).await?.owner.as_deref() == Some(caller) {
            return Ok(());
        }
        Err(RunError::UnknownTask(id.to_owned()))
    }

    /// Refuses a conversation of somebody else, whose messages the model would read.
    async fn admit_to_context(&self, caller: &str, context: &str) -> Result<(), RunError> {
        let filter = TaskFilter { context: Some(context.to_owned()), limit: 1, ..TaskFilter::default() };
        match self.store.tasks(&filter).await?.first() {
            Some(record) if record.owner.as_deref() != Some(caller) => Err(RunError::Invalid(
                "message.contextId: this context cannot be used; leave it out, or choose another".to_owned(),
            )),
            _ => Ok(()),
        }
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
        let record =
            TaskRecord { owner: owner.map(Into::into), ..new_task(&mut message, &request, context, id)? };
        let claim = match self.live.claim(&record.id) {
            Ok(claim) => claim,
            Err(other) => return self.begun_beside(&other, &record).await,
        };
        let begun = claim.begun();
        let commit =
            Commit { context: record.context.clone(), task: Some(record.clone()), ..Commit::default() };
        self.store.commit(commit).await?;
        let log = Arc::new(TaskLog::new(binding::opening(&record, message)));
        let place = self.conversations.queue(&record.context);
        let journal = Journal::new(self.store.clone(), record, log.clone(), Some(claim), &self.voice);
        self.spawn(journal, place, if fresh { Begin::First(request) } else { Begin::Request(request) });
        begun.cancel();
        Ok(log)
    }

    /// The task of the same message, said twice at once: the other one is just beginning it.
    async fn begun_beside(&self, other: &Handle, record: &TaskRecord) -> Result<Arc<TaskLog>, RunError> {
        let begun = async {
            tokio::select! {
                () = other.begun.cancelled() => {}
                () = other.over.cancelled() => {}
            }
        };
        drop(tokio::time::timeout(TURN_DEADLINE, begun).await);
        match self.begun_as(Some(&record.id)).await? {
            Some(begun) if begun.request == record.request => self.log(&begun.id).await,
            _ => Err(RunError::Busy),
        }
    }

    /// A message to a task that waits for one.
    async fn go_on(
        self: &Arc<Self>,
        id: &str,
        message: Message,
        request: Request,
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        let record = self.record(id).await?;
        if message.context_id.as_ref().is_some_and(|context| *context != record.context) {
            return Err(RunError::ContextMismatch { task: id.to_owned() });
        }
        let not_open = |phase| RunError::NotOpen { task: id.to_owned(), phase };
        if record.phase != TaskPhase::InputRequired {
            return Err(not_open(record.phase));
        }
        // Another message has come first.
        let claim = self.live.claim(id).map_err(|_| not_open(TaskPhase::Working))?;
        let (mut journal, place) = self.take_over(id, &record.context, claim).await?;
        if journal.phase() != TaskPhase::InputRequired {
            return Err(not_open(journal.phase()));
        }
        journal.hear(&message).await?;
        let log = journal.log();
        let seen = log.last_seq();
        self.spawn(journal, place, Begin::Answer(request));
        Ok((log, seen))
    }
}

/// The record of a task that a message begins; the message is told which one that is.
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
        status_message: None,
    })
}

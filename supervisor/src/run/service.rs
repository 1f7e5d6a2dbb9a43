//! All runs of this process: begins them, finds them, stops them, takes them over after a crash.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use caipe_a2a::model::{Message, Task, TaskState};
use caipe_a2a::server::{Pushes, TaskLog};
use caipe_engine::{Outcome, Phase, RunState};
use caipe_store::{Commit, MAX_ID_BYTES, Store, StoreError, TaskFilter, TaskPhase, TaskRecord};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use uuid::Uuid;

use super::conversations::{Conversations, Place, end_lost_run};
use super::driver::Driver;
use super::error::{MOST_RUNS, RunError};
use super::journal::{Journal, now};
use super::live::{Claim, Handle, Live};
use super::questions::Askers;
use super::start::{Begin, Start};
use crate::agents::{Agent, Lead};
use crate::binding::{self, Request, Voice};

/// How long a cancelled task may take to say so.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// How long a message to a waiting task may wait until no other task of its conversation runs.
const TURN_DEADLINE: Duration = Duration::from_secs(10);

/// All runs of this process.
pub struct Runs {
    pub(super) lead: Lead,
    voice: Voice,
    pub(super) store: Arc<dyn Store>,
    pub(super) conversations: Arc<Conversations>,
    pub(super) askers: Askers,
    live: Live,
    tracker: TaskTracker,
    /// Cancelled when runs shall be left as they are, for the next process.
    halt: CancellationToken,
    time_limit: Duration,
    /// Told where each task's events are found.
    pushes: OnceLock<Arc<Pushes>>,
}

impl Runs {
    /// Runs of `lead`, told in `voice` and kept in `store`. None may take longer than `time_limit`.
    pub fn new(
        lead: impl Into<Lead>,
        voice: Voice,
        store: Arc<dyn Store>,
        time_limit: Duration,
    ) -> Arc<Self> {
        let conversations = Conversations::new(store.clone());
        let (live, tracker, halt) = (Live::default(), TaskTracker::new(), CancellationToken::new());
        let pushes = OnceLock::new();
        let lead = lead.into();
        Arc::new(Self {
            lead,
            voice,
            store,
            conversations,
            askers: Askers::default(),
            live,
            tracker,
            halt,
            time_limit,
            pushes,
        })
    }

    /// Tells `pushes` of every task's log from now on.
    pub fn push_with(&self, pushes: Arc<Pushes>) {
        // The first one stays: nobody sets two.
        drop(self.pushes.set(pushes));
    }

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

    /// A task as it is once nobody else runs in its conversation.
    async fn take_over(&self, id: &str, context: &str, claim: Claim) -> Result<(Journal, Place), RunError> {
        let mut place = self.conversations.queue(context);
        let busy = |_| RunError::NotOpen { task: id.to_owned(), phase: TaskPhase::Working };
        tokio::time::timeout(TURN_DEADLINE, place.called()).await.map_err(busy)?;
        let record = self.record(id).await?;
        Ok((self.reopen(record, Some(claim)).await?, place))
    }

    /// The log of a task, read from the store if it is not in memory. It is closed where the task waits: who reads it
    /// there gets the task as it is, and then the end. The answer goes on in a log of its own, which is the one found
    /// here from then on.
    pub async fn log(&self, id: &str) -> Result<Arc<TaskLog>, RunError> {
        if let Some(log) = self.live.log(id) {
            return Ok(log);
        }
        let log = self.reopen(self.record(id).await?, None).await?.log();
        // Somebody may have gone on with it meanwhile.
        if let Some(log) = self.live.log(id) {
            return Ok(log);
        }
        log.close();
        Ok(log)
    }

    /// The records of the tasks that match, and how many match in all.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<(Vec<TaskRecord>, u64), RunError> {
        Ok((self.store.tasks(filter).await?, self.store.count_tasks(filter).await?))
    }

    /// A task of this record, without what it has produced.
    pub fn summary(&self, record: &TaskRecord) -> Result<Task, RunError> {
        if let Some(log) = self.live.log(&record.id) {
            return Ok(log.summary());
        }
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            what: format!("task {}", record.id),
            reason: error.to_string(),
        };
        Ok(binding::summary(record).map_err(corrupt)?)
    }

    /// Stops a task, and returns it as it is then.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<Task, RunError> {
        let mut task = self.cancel_once(id).await?;
        if phase_of(task.status.state) == TaskPhase::InputRequired {
            // It came to its question in the same moment.
            task = self.cancel_once(id).await?;
        }
        match phase_of(task.status.state) {
            phase @ (TaskPhase::Completed | TaskPhase::Failed) => {
                Err(RunError::NotCancelable { task: id.to_owned(), phase })
            }
            _ => Ok(task),
        }
    }

    async fn cancel_once(self: &Arc<Self>, id: &str) -> Result<Task, RunError> {
        let record = self.record(id).await?;
        if !record.phase.is_terminal() {
            match self.live.claim(id) {
                Err(handle) => {
                    handle.stop.cancel();
                    drop(tokio::time::timeout(CANCEL_DEADLINE, handle.over.cancelled()).await);
                }
                Ok(claim) => {
                    let (journal, place) = self.take_over(id, &record.context, claim).await?;
                    if !journal.phase().is_terminal() {
                        self.spawn(journal, place, Begin::Cancel);
                    }
                }
            }
        }
        let log = self.log(id).await?;
        drop(tokio::time::timeout(CANCEL_DEADLINE, drained(&log)).await);
        Ok(log.snapshot())
    }

    /// Takes over what a former process left unfinished, each conversation in the order of its tasks. One that
    /// cannot be read is given up, and holds back no other.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, RunError> {
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let mut records = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await?;
        records.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        let mut recovered = 0;
        for record in records {
            tracing::info!(task = record.id, "going on with a task that was interrupted");
            match self.recover_task(record.clone()).await {
                Ok(()) => recovered += 1,
                Err(error) => self.give_up(record, &error).await?,
            }
        }
        Ok(recovered)
    }

    async fn recover_task(self: &Arc<Self>, record: TaskRecord) -> Result<(), RunError> {
        let begin = match (record.phase, record.replies.last()) {
            (TaskPhase::Submitted, _) => {
                Begin::Request(Request::of_stored(&record.request).map_err(RunError::Invalid)?)
            }
            (_, Some(reply)) => {
                Begin::RecoverAnswer(Request::of_stored(&reply.message).map_err(RunError::Invalid)?)
            }
            (_, None) => Begin::Recover,
        };
        let claim = self.live.claim(&record.id).ok();
        let place = self.conversations.queue(&record.context);
        let journal = self.reopen(record, claim).await?;
        self.spawn(journal, place, begin);
        Ok(())
    }

    async fn give_up(&self, record: TaskRecord, error: &RunError) -> Result<(), RunError> {
        tracing::error!(task = record.id, %error, "giving up a task that was interrupted");
        let record = TaskRecord { phase: TaskPhase::Failed, updated: now(), ..record };
        let context = record.context.clone();
        Ok(self.store.commit(Commit { context, task: Some(record), ..Commit::default() }).await?)
    }

    /// Waits for the runs that are under way, at most `grace`. What then still runs is left as it was last saved,
    /// and taken over by the next process.
    pub async fn drain(&self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!(
                runs = self.tracker.len(),
                "stopping in the middle of runs; the next start goes on with them"
            );
            self.halt.cancel();
            self.tracker.wait().await;
        }
    }

    /// Runs that are under way.
    pub fn active(&self) -> usize {
        self.tracker.len()
    }

    fn spawn(self: &Arc<Self>, journal: Journal, place: Place, begin: Begin) {
        let (runs, log) = (self.clone(), journal.log());
        let task = journal.task().to_owned();
        self.show(&task, &log);
        self.tracker.spawn(async move {
            let carried = tokio::select! {
                carried = runs.carry(journal, place, begin) => carried,
                () = runs.halt.cancelled() => Ok(()),
            };
            if let Err(error) = carried {
                tracing::error!(task, %error, "a run ended because it could not be saved");
            }
            log.close();
            runs.live.retire(&task);
        });
    }

    /// Where the task's events are found from now on.
    fn show(&self, task: &str, log: &Arc<TaskLog>) {
        self.live.remember(task, log.clone());
        if let Some(pushes) = self.pushes.get() {
            pushes.follow(task, log);
        }
    }

    /// One run from its first input to its end.
    async fn carry(&self, mut journal: Journal, mut place: Place, begin: Begin) -> Result<(), StoreError> {
        let stop = journal.stop();
        tokio::select! {
            () = place.called() => {}
            () = stop.cancelled() => return journal.end(Outcome::Canceled).await,
        }
        let (user, agent) = (begin.user().or_else(|| journal.user()), self.lead.now());
        // An agent that has just started has no tools for a moment, and would say that there are none.
        agent.settled(&stop).await;
        let (state, start) = match self.prepare(&agent, &journal, begin).await {
            Ok(prepared) => prepared,
            Err(error) => return journal.fail(&error.to_string()).await,
        };
        let input = match start {
            Start::Run(input) => *input,
            Start::End(outcome) => return journal.end(outcome).await,
        };
        let run = journal.info(user);
        let span =
            tracing::info_span!("run", task = %run.task, context = %run.context, trace_id = %run.trace_id);
        let driver = Driver::new(agent, run, state, journal, stop, Some(self.time_limit));
        match driver.run(input).instrument(span).await {
            Ok(_) => Ok(()),
            Err((error, mut journal)) => journal.fail(&error.to_string()).await,
        }
    }

    /// Where the conversation stands, and what the task is to it.
    async fn prepare(
        &self,
        agent: &Agent,
        journal: &Journal,
        begin: Begin,
    ) -> Result<(RunState, Start), StoreError> {
        let mut state = match begin {
            Begin::First(_) => RunState::new(agent.name.clone()),
            _ => self.conversations.load(journal.context(), &agent.name).await?,
        };
        if !matches!(begin, Begin::Recover | Begin::RecoverAnswer(_)) {
            end_lost_run(&mut state);
        }
        let start = begin.start(&state, || agent.abilities());
        if state.phase == Phase::Waiting && matches!(start, Start::Run(_)) {
            self.close_questions(journal).await?;
        }
        Ok((state, start))
    }

    /// Ends every other task that waits in the conversation: this one takes the question over, with an answer or
    /// without, and nobody can answer the same question twice.
    async fn close_questions(&self, journal: &Journal) -> Result<(), StoreError> {
        let (context, phases) = (Some(journal.context().to_owned()), vec![TaskPhase::InputRequired]);
        for record in self.store.tasks(&TaskFilter { context, phases, ..TaskFilter::default() }).await? {
            if record.id != journal.task() {
                let mut asked = self.reopen(record, None).await?;
                asked.end(Outcome::Canceled).await?;
                asked.log().close();
                self.show(asked.task(), &asked.log());
                self.live.retire(asked.task());
            }
        }
        Ok(())
    }

    async fn reopen(&self, record: TaskRecord, claim: Option<Claim>) -> Result<Journal, StoreError> {
        Journal::reopen(self.store.clone(), record, claim, &self.voice).await
    }

    async fn record(&self, id: &str) -> Result<TaskRecord, RunError> {
        self.store.task(id).await?.ok_or_else(|| RunError::UnknownTask(id.to_owned()))
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

/// Waits until nothing more comes.
async fn drained(log: &Arc<TaskLog>) {
    let mut cursor = log.cursor(log.last_seq());
    while cursor.next().await.is_some() {}
}

/// Where a task stands that is in this state on the wire.
fn phase_of(state: TaskState) -> TaskPhase {
    match state {
        TaskState::Submitted => TaskPhase::Submitted,
        TaskState::InputRequired => TaskPhase::InputRequired,
        TaskState::Completed => TaskPhase::Completed,
        TaskState::Failed => TaskPhase::Failed,
        TaskState::Canceled => TaskPhase::Canceled,
        _ => TaskPhase::Working,
    }
}

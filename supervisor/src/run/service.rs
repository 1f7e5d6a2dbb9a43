//! All runs of this process: begins them, finds them, stops them, takes them over after a crash.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caipe_a2a::model::{Message, Task};
use caipe_a2a::server::TaskLog;
use caipe_engine::{Input, Outcome, Phase, RunState};
use caipe_store::{Commit, Store, StoreError, TaskFilter, TaskPhase, TaskRecord};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::conversations::Conversations;
use super::driver::{Driver, RunInfo};
use super::journal::Journal;
use crate::agents::Agent;
use crate::binding::{self, Reply, Request};

/// How long a cancelled task may take to say so.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// Runs that may be under way at once; a queue in front of a model that is slower than its callers only grows.
const MOST_RUNS: usize = 4096;

/// Events of ended tasks that stay in memory for whoever asks again; older tasks are read from the store.
const REMEMBERED: u64 = 20_000;

/// All runs of this process.
pub struct Runs {
    agent: Arc<Agent>,
    store: Arc<dyn Store>,
    conversations: Arc<Conversations>,
    live: Mutex<Live>,
    tracker: TaskTracker,
    time_limit: Duration,
}

/// The tasks in memory.
#[derive(Default)]
struct Live {
    tasks: HashMap<String, LiveTask>,
    /// Ended ones with the number of their events, oldest first.
    ended: VecDeque<(String, u64)>,
    /// The sum of these numbers.
    remembered: u64,
}

#[derive(Clone)]
struct LiveTask {
    log: Arc<TaskLog>,
    stop: CancellationToken,
}

/// Why a request about a run was not met.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such task.
    #[error("task {0} not found")]
    UnknownTask(String),
    /// The task has ended, or is under way, and takes no message.
    #[error(
        "task {task} is {} and takes no message; send it without taskId to go on in its context", phase_name(*.phase)
    )]
    NotOpen {
        /// The task.
        task: String,
        /// Where it stands.
        phase: TaskPhase,
    },
    /// The task has ended.
    #[error("task {task} is {} and cannot be canceled", phase_name(*.phase))]
    NotCancelable {
        /// The task.
        task: String,
        /// Where it stands.
        phase: TaskPhase,
    },
    /// The message names a task of another conversation.
    #[error("message.contextId: task {task} belongs to another context")]
    ContextMismatch {
        /// The task.
        task: String,
    },
    /// Too much is under way.
    #[error("{MOST_RUNS} runs are under way already; try again later")]
    Busy,
    /// The message says nothing.
    #[error("{0}")]
    Invalid(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Runs {
    /// Runs of `agent`, kept in `store`. None may take longer than `time_limit`.
    pub fn new(agent: Arc<Agent>, store: Arc<dyn Store>, time_limit: Duration) -> Arc<Self> {
        let conversations = Conversations::new(store.clone());
        let (live, tracker) = (Mutex::default(), TaskTracker::new());
        Arc::new(Self { agent, store, conversations, live, tracker, time_limit })
    }

    /// Takes a message: a new task, or the answer that an open one waits for. Returns the task's log and how
    /// much of it the sender has seen.
    pub async fn send(self: &Arc<Self>, message: Message) -> Result<(Arc<TaskLog>, u64), RunError> {
        let request = Request::read(&message).map_err(RunError::Invalid)?;
        match message.task_id.clone() {
            Some(task) => self.go_on(&task, message, request).await,
            None => self.begin(message, request).await.map(|log| (log, 0)),
        }
    }

    async fn begin(
        self: &Arc<Self>,
        mut message: Message,
        request: Request,
    ) -> Result<Arc<TaskLog>, RunError> {
        if self.tracker.len() >= MOST_RUNS {
            return Err(RunError::Busy);
        }
        let id = Uuid::now_v7().to_string();
        let fresh = message.context_id.is_none();
        let context = message.context_id.get_or_insert_with(|| Uuid::now_v7().to_string()).clone();
        message.task_id = Some(id.clone());
        let now = Timestamp::now();
        let trace_id = request.trace_id.clone().unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        let body = serde_json::to_value(&message).map_err(|error| RunError::Invalid(error.to_string()))?;
        let record = TaskRecord {
            id,
            context: context.clone(),
            phase: TaskPhase::Submitted,
            created: now,
            updated: now,
            owner: None,
            trace_id,
            request: body,
        };
        self.store.commit(Commit { context, task: Some(record.clone()), ..Commit::default() }).await?;
        let log = Arc::new(TaskLog::new(binding::opening(&record, message)));
        let live = self.remember(&record.id, log.clone());
        let begin = if fresh { Begin::First(request) } else { Begin::Request(request) };
        self.spawn(Journal::new(self.store.clone(), record, log.clone()), live.stop, begin);
        Ok(log)
    }

    /// A message to a task that waits for one.
    async fn go_on(
        self: &Arc<Self>,
        id: &str,
        message: Message,
        request: Request,
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        let record = self.record(id).await?;
        if message.context_id.is_some_and(|context| context != record.context) {
            return Err(RunError::ContextMismatch { task: id.to_owned() });
        }
        if record.phase != TaskPhase::InputRequired {
            return Err(RunError::NotOpen { task: id.to_owned(), phase: record.phase });
        }
        let (journal, log) = self.reopen(record).await?;
        let seen = log.last_seq();
        let live = self.remember(id, log.clone());
        self.spawn(journal, live.stop, Begin::Request(request));
        Ok((log, seen))
    }

    /// The log of a task, read from the store if it is not in memory.
    pub async fn log(&self, id: &str) -> Result<Arc<TaskLog>, RunError> {
        if let Some(task) = self.live(id) {
            return Ok(task.log);
        }
        let record = self.record(id).await?;
        let log = self.reopen(record).await?.1;
        log.close();
        Ok(log)
    }

    /// The tasks that match, without their artifacts.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, RunError> {
        Ok(self.store.tasks(filter).await?)
    }

    /// Stops a task, and returns it as it is then.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<Task, RunError> {
        let record = self.record(id).await?;
        match record.phase {
            TaskPhase::Canceled => return Ok(self.log(id).await?.snapshot()),
            TaskPhase::Completed | TaskPhase::Failed => {
                return Err(RunError::NotCancelable { task: id.to_owned(), phase: record.phase });
            }
            TaskPhase::InputRequired => {
                let (journal, log) = self.reopen(record).await?;
                let live = self.remember(id, log);
                self.spawn(journal, live.stop, Begin::Cancel);
            }
            TaskPhase::Submitted | TaskPhase::Working => {
                if let Some(task) = self.live(id) {
                    task.stop.cancel();
                }
            }
        }
        let log = self.log(id).await?;
        drop(tokio::time::timeout(CANCEL_DEADLINE, drained(&log)).await);
        Ok(log.snapshot())
    }

    /// Takes over what a former process left unfinished, each conversation in the order of its tasks.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, RunError> {
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let mut records = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await?;
        records.sort_by_key(|record| record.created);
        let count = records.len();
        for record in records {
            tracing::info!(task = record.id, "going on with a task that was interrupted");
            let (journal, log) = self.reopen(record.clone()).await?;
            let live = self.remember(&record.id, log);
            let begin = match record.phase {
                TaskPhase::Submitted => {
                    Begin::Request(Request::of_record(&record).map_err(RunError::Invalid)?)
                }
                _ => Begin::Recover,
            };
            self.spawn(journal, live.stop, begin);
        }
        Ok(count)
    }

    /// Waits for the runs that are under way, at most `grace`. What then still runs is taken over by the next
    /// process.
    pub async fn drain(&self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!(
                runs = self.tracker.len(),
                "stopping in the middle of runs; the next start goes on with them"
            );
        }
    }

    /// Runs that are under way.
    pub fn active(&self) -> usize {
        self.tracker.len()
    }

    fn spawn(self: &Arc<Self>, journal: Journal, stop: CancellationToken, begin: Begin) {
        let runs = self.clone();
        self.tracker.spawn(async move {
            let (task, log) = (journal.task().to_owned(), journal.log());
            if let Err(error) = runs.carry(journal, stop, begin).await {
                tracing::error!(task, %error, "a run ended because it could not be saved");
            }
            log.close();
            runs.retire(task, log.last_seq());
        });
    }

    /// One run from its first input to its end.
    async fn carry(
        &self,
        mut journal: Journal,
        stop: CancellationToken,
        begin: Begin,
    ) -> Result<(), StoreError> {
        let context = journal.context().to_owned();
        let _turn = tokio::select! {
            turn = self.conversations.turn(&context) => turn,
            () = stop.cancelled() => return journal.end(Outcome::Canceled).await,
        };
        let state = match begin {
            Begin::First(_) => Ok(RunState::new(self.agent.name.clone())),
            _ => self.conversations.load(&context, &self.agent.name).await,
        };
        let state = match state {
            Ok(state) => state,
            Err(error) => return journal.fail(&error.to_string()).await,
        };
        let (input, run) = self.first_input(&state, &journal, begin);
        let driver = Driver::new(self.agent.clone(), run, state, journal, stop, Some(self.time_limit));
        match driver.run(input).await {
            Ok(_) => Ok(()),
            Err((error, mut journal)) => journal.fail(&error.to_string()).await,
        }
    }

    fn first_input(&self, state: &RunState, journal: &Journal, begin: Begin) -> (Input, RunInfo) {
        let (user, input) = match begin {
            Begin::First(request) | Begin::Request(request) => {
                let user = request.user.clone();
                let waiting = state.phase == Phase::Waiting;
                let input = match request.reply(waiting) {
                    Reply::Decisions(decisions) => Input::Decided { decisions },
                    Reply::Message(message) => {
                        Input::Message { message: Arc::new(message), abilities: self.agent.abilities() }
                    }
                };
                (user, input)
            }
            Begin::Recover => (None, Input::Recovered),
            Begin::Cancel => (None, Input::Cancel),
        };
        (input, journal.info(user))
    }

    async fn record(&self, id: &str) -> Result<TaskRecord, RunError> {
        self.store.task(id).await?.ok_or_else(|| RunError::UnknownTask(id.to_owned()))
    }

    /// A task's journal and log as the store has them.
    async fn reopen(&self, record: TaskRecord) -> Result<(Journal, Arc<TaskLog>), RunError> {
        let journal = Journal::reopen(self.store.clone(), record).await?;
        let log = journal.log();
        Ok((journal, log))
    }

    fn live(&self, id: &str) -> Option<LiveTask> {
        self.locked().tasks.get(id).cloned()
    }

    fn remember(&self, id: &str, log: Arc<TaskLog>) -> LiveTask {
        let task = LiveTask { log, stop: CancellationToken::new() };
        self.locked().tasks.insert(id.to_owned(), task.clone());
        task
    }

    /// Keeps an ended task in memory for a while, at the cost of older ones.
    fn retire(&self, id: String, events: u64) {
        let mut live = self.locked();
        live.ended.push_back((id, events));
        live.remembered += events;
        while live.remembered > REMEMBERED
            && let Some((oldest, events)) = live.ended.pop_front()
        {
            live.remembered -= events;
            if live.tasks.get(&oldest).is_some_and(|task| task.log.is_closed()) {
                live.tasks.remove(&oldest);
            }
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nothing more comes.
async fn drained(log: &Arc<TaskLog>) {
    let mut cursor = log.cursor(log.last_seq());
    while cursor.next().await.is_some() {}
}

/// What a run begins with.
enum Begin {
    /// The first message of a conversation that nobody can have saved yet.
    First(Request),
    Request(Request),
    Recover,
    Cancel,
}

/// The protocol's name of a phase.
fn phase_name(phase: TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Submitted => "submitted",
        TaskPhase::Working => "working",
        TaskPhase::InputRequired => "input-required",
        TaskPhase::Completed => "completed",
        TaskPhase::Failed => "failed",
        TaskPhase::Canceled => "canceled",
    }
}

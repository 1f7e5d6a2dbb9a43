//! Starts and finds the runs of this process.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use caipe_a2a::model::{Task, TaskState};
use caipe_a2a::server::{Pushes, TaskLog};
use caipe_engine::{Outcome, Phase, RunState};
use caipe_store::{LeaseTerm, Store, StoreError, TaskFilter, TaskPhase, TaskRecord};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

use super::active_tasks::{ActiveTasks, TaskLease};
use super::approvers::Authority;
use super::asking_agents::AskingAgents;
use super::conversations::{Conversations, Turn, end_lost_run};
use super::driver::Driver;
use super::error::RunError;
use super::event_log::TaskEventLog;
use super::leases::{HeldLease, Leases};
use super::outbox::Outbox;
use super::pauses::until_available;
use super::start::{RunStart, RunTrigger};
use crate::agent::{Agent, CurrentSupervisor};
use crate::binding::{self, Presentation};
use crate::delegation::RunInfo;
use crate::tools::ClientCalls;

/// How long a message to a waiting task may wait until no other task of its conversation runs.
pub(super) const TURN_DEADLINE: Duration = Duration::from_secs(10);

/// The bytes that the logs of all tasks may use by default.
pub const LOG_MEMORY: usize = 64 << 20;

/// All runs of this process.
pub struct Runs {
    pub(super) supervisor: CurrentSupervisor,
    pub(super) presentation: Presentation,
    pub(super) store: Arc<dyn Store>,
    pub(super) leases: Arc<Leases>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) conversations: Arc<Conversations>,
    pub(super) asking_agents: AskingAgents,
    pub(super) active_tasks: ActiveTasks,
    pub(super) tracker: TaskTracker,
    /// Requests that may start a run; closed when the process stops.
    requests: TaskTracker,
    /// Cancelled to leave each run to another process at its next commit, where others use the store.
    leaving: CancellationToken,
    /// Cancelled to leave the runs to the next process.
    pub(super) halt: CancellationToken,
    time_limit: Duration,
    /// The push notifications, which follow the log of each task.
    pushes: OnceLock<Arc<Pushes>>,
    /// The calls that clients answer, if this is a process of one agent.
    pub(super) client_calls: OnceLock<ClientCalls>,
}

impl Runs {
    /// Runs of `supervisor`, stored in `store` and shown by `presentation`. Each run may take `time_limit`. The logs of all
    /// tasks may use `log_memory` bytes, usually [`LOG_MEMORY`].
    pub fn new(
        supervisor: impl Into<CurrentSupervisor>,
        presentation: Presentation,
        store: Arc<dyn Store>,
        time_limit: Duration,
        log_memory: usize,
    ) -> Arc<Self> {
        Self::with_term(supervisor, presentation, (store, None), time_limit, log_memory)
    }

    /// The same for one of several processes that share a store, with the term of its leases.
    pub fn with_term(
        supervisor: impl Into<CurrentSupervisor>,
        presentation: Presentation,
        (store, term): (Arc<dyn Store>, Option<LeaseTerm>),
        time_limit: Duration,
        log_memory: usize,
    ) -> Arc<Self> {
        let leases = Leases::new(store.clone(), term);
        let conversations = Conversations::new(store.clone());
        let (active_tasks, tracker, requests) =
            (ActiveTasks::new(log_memory), TaskTracker::new(), TaskTracker::new());
        let (pushes, client_calls) = (OnceLock::new(), OnceLock::new());
        let supervisor = supervisor.into();
        let outbox = Outbox::new(store.clone(), supervisor.clone(), leases.claim_term());
        Arc::new(Self {
            supervisor,
            presentation,
            store,
            leases,
            outbox,
            conversations,
            asking_agents: AskingAgents::default(),
            active_tasks,
            tracker,
            requests,
            leaving: CancellationToken::new(),
            halt: CancellationToken::new(),
            time_limit,
            pushes,
            client_calls,
        })
    }

    /// Whether the questions are those of a supervisor. The supervisor of a remote agent decides when its questions expire.
    pub const fn serves_people(&self) -> bool {
        matches!(self.presentation, Presentation::Supervisor { .. })
    }

    /// Sends push notifications of all tasks that start from now on.
    pub fn push_with(&self, pushes: Arc<Pushes>) {
        // The first one stays.
        drop(self.pushes.set(pushes));
    }

    /// The log of a task, read from the store if it is not in memory. If another process runs the task, the log follows it. If
    /// the task waits, the log is closed: a subscriber gets the task and the end of the stream. The answer continues in a new
    /// log.
    pub async fn log(&self, id: &str) -> Result<Arc<TaskLog>, RunError> {
        let known = self.active_tasks.log(id);
        if let Some(log) = known.as_ref().filter(|log| !log.is_closed() || log.state().is_terminal()) {
            return Ok(log.clone());
        }
        let record = self.record(id).await?;
        if let Some(log) = known.filter(|log| shows(log, &record)) {
            return Ok(log);
        }
        if record.phase.is_under_way()
            && let Some(handle) = self.active_tasks.handle(id)
        {
            // Its recovery has not come so far.
            handle.until_recorded().await;
            if let Some(log) = self.active_tasks.log(id).filter(|log| !log.is_closed()) {
                return Ok(log);
            }
        }
        if let Some(log) = self.active_tasks.followed(id) {
            return Ok(log);
        }
        let is_under_way = record.phase.is_under_way();
        let reader = self.reopen(record, (None, None)).await?;
        // A message may have continued the task meanwhile.
        if let Some(log) = self.active_tasks.log(id).filter(|log| !log.is_closed()) {
            return Ok(log);
        }
        let log = reader.log();
        if is_under_way {
            self.active_tasks.follow(id, &log);
            self.follow_store(reader);
        } else {
            log.close();
        }
        Ok(log)
    }

    /// Shows what another process commits.
    fn follow_store(&self, reader: TaskEventLog) {
        let (leaving, follower, log) =
            (self.leaving.clone(), reader.follower(), Arc::downgrade(&reader.log()));
        tokio::spawn(async move {
            tokio::select! {
                () = reader.follow(follower) => {}
                () = leaving.cancelled() => drop(log.upgrade().map(|log| log.close())),
            }
        });
    }

    /// Whether a task has events after this number, or may get more without a message.
    pub async fn has_events(&self, id: &str, after: u64) -> Result<bool, RunError> {
        let waits = self.record(id).await?.phase == TaskPhase::InputRequired;
        Ok(!waits || !self.store.events(id, after, 1).await?.is_empty())
    }

    /// Whether other processes may run tasks of the same store.
    pub fn has_shared_store(&self) -> bool {
        self.store.is_shared()
    }

    /// The term of the claims of this process.
    pub fn claim_term(&self) -> LeaseTerm {
        self.leases.claim_term()
    }

    /// Waits until this process leaves its work to others.
    pub async fn halted(&self) {
        self.halt.cancelled().await;
    }

    /// The page of tasks that match, and the number of all that match.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<(Vec<TaskRecord>, u64), RunError> {
        Ok((self.store.tasks(filter).await?, self.store.count_tasks(filter).await?))
    }

    /// The task of a record, without its artifacts.
    pub fn summary(&self, record: &TaskRecord) -> Result<Task, RunError> {
        // A closed log of a task that waited may be older than the record.
        if let Some(log) = self.active_tasks.log(&record.id)
            && (!log.is_closed() || log.state().is_terminal())
        {
            return Ok(log.summary());
        }
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            what: format!("task {}", record.id),
            reason: error.to_string(),
        };
        Ok(binding::summary(record).map_err(corrupt)?)
    }

    /// The event log of a task, once no other task of its conversation runs.
    pub(super) async fn take_over(
        &self,
        id: &str,
        context: &str,
        lease: TaskLease,
    ) -> Result<(TaskEventLog, Turn), RunError> {
        let mut turn = self.conversations.queue(context);
        let busy = |_| RunError::NotOpen { task: id.to_owned(), phase: TaskPhase::Working };
        let taken = self.take_turn(id, &mut turn, lease.stop());
        let held = tokio::time::timeout(TURN_DEADLINE, taken).await.map_err(busy)??;
        // Once this process has the lease, because another one may change it until then.
        let record = self.record(id).await?;
        Ok((self.reopen(record, (Some(lease), Some(held))).await?, turn))
    }

    /// The lease of a task that waits, once no other task of its conversation runs.
    async fn take_turn(
        &self,
        id: &str,
        turn: &mut Turn,
        stop: CancellationToken,
    ) -> Result<HeldLease, RunError> {
        turn.reached().await;
        self.record(id).await?;
        loop {
            let held = self.leases.acquire(id, stop.clone()).await?;
            let Some(mut other) = turn.taken_by_another(id).await? else { return Ok(held) };
            // The other task may have to cancel this one.
            drop(held);
            other.changed().await;
        }
    }

    /// Admits a request that may start a run; `None` once the process stops. [`Runs::drain`] waits until the token is
    /// dropped, so that the agent's tools serve each run of an admitted request.
    pub fn admit_request(&self) -> Option<TaskTrackerToken> {
        let token = self.requests.token();
        // Counted first: a request that is not refused here is one that the drain waits for.
        (!self.requests.is_closed()).then_some(token)
    }

    /// Admits no more requests, and waits for the active runs, at most `grace`. The next process continues the runs that
    /// are still active then, from their last commit. Where other processes use the store, they continue each run from its
    /// next commit, and the streams of tasks that they run end at once: their clients resume them there.
    pub async fn drain(&self, grace: Duration) {
        self.requests.close();
        self.tracker.close();
        if self.has_shared_store() {
            self.leaving.cancel();
        }
        let drained = async {
            self.requests.wait().await;
            self.tracker.wait().await;
        };
        if tokio::time::timeout(grace, drained).await.is_err() {
            tracing::warn!(
                runs = self.tracker.len(),
                "stopping before all runs have ended; the next start continues them"
            );
            self.halt.cancel();
            self.tracker.wait().await;
        }
        // Ends the logs that follow other processes.
        self.leaving.cancel();
        self.halt.cancel();
        self.outbox.close().await;
        self.leases.released().await;
    }

    /// The bytes that the logs of tasks use.
    pub fn log_memory(&self) -> usize {
        self.active_tasks.budget.used()
    }

    /// The number of active runs.
    pub fn active(&self) -> usize {
        self.tracker.len()
    }

    pub(super) fn spawn(self: &Arc<Self>, event_log: TaskEventLog, turn: Turn, begin: RunTrigger) {
        let (runs, log) = (self.clone(), event_log.log());
        // Boxed, because each function that awaits the run would have a copy.
        let mut event_log = Box::new(event_log);
        event_log.set_outbox(self.outbox.clone());
        let (task, lost) = (event_log.task().to_owned(), event_log.lost());
        let (recoveries, lease) = (event_log.record().recoveries, event_log.keep_lease());
        self.show(&task, &log);
        self.tracker.spawn(async move {
            let carried = AssertUnwindSafe(runs.carry(event_log, turn, begin)).catch_unwind();
            tokio::select! {
                carried = carried => {
                    runs.note_end(&task, &log, carried).await;
                    if recoveries > 0 && runs.leaving.is_cancelled() {
                        runs.forgive_recoveries(&task).await;
                    }
                }
                () = lost.cancelled() => {}
                () = runs.halt.cancelled() => {
                    if recoveries > 0 {
                        runs.forgive_recoveries(&task).await;
                    }
                }
            }
            drop(lease);
            if lost.is_cancelled() && runs.follow_owner(&task, &log).await {
                return;
            }
            log.close();
            runs.active_tasks.retire(&task);
        });
    }

    /// Passes the readers of a run on to the process that continues it. Returns whether its log can be read.
    async fn follow_owner(&self, task: &str, log: &Arc<TaskLog>) -> bool {
        tracing::warn!(task, "another process continues the task");
        let reopened =
            async { Ok::<_, RunError>(self.reopen(self.record(task).await?, (None, None)).await?) };
        self.active_tasks.forget(task);
        match reopened.await {
            Ok(reader) => {
                self.active_tasks.follow(task, log);
                self.follow_store(reader.onto(log.clone()));
                true
            }
            Err(error) => {
                tracing::error!(task, %error, "failed to follow a task that another process continues");
                false
            }
        }
    }

    /// Reports a run that could not be saved, and fails the task of one that panicked.
    async fn note_end(
        &self,
        task: &str,
        log: &Arc<TaskLog>,
        carried: std::thread::Result<Result<(), StoreError>>,
    ) {
        let ended = match carried {
            // Its readers follow the other process.
            Ok(Err(StoreError::LeaseLost { .. })) => return,
            Ok(carried) => carried.map_err(RunError::from),
            Err(_) => self.fail_panicked(task, log).await,
        };
        if let Err(error) = ended {
            tracing::error!(task, %error, "a run ended because it could not be saved");
        }
    }

    async fn fail_panicked(&self, task: &str, log: &Arc<TaskLog>) -> Result<(), RunError> {
        tracing::error!(task, "a run panicked");
        let record = self.record(task).await?;
        if record.phase.is_terminal() {
            return Ok(());
        }
        let event_log = self.reopen(record, (None, None)).await?;
        Ok(event_log.onto(log.clone()).fail("an internal error").await?)
    }

    /// Publishes the log of a task.
    pub(super) fn show(&self, task: &str, log: &Arc<TaskLog>) {
        self.active_tasks.remember(task, log.clone());
        if let Some(pushes) = self.pushes.get() {
            pushes.follow(task, log);
        }
    }

    /// Carries out one run.
    async fn carry(
        &self,
        mut event_log: Box<TaskEventLog>,
        mut turn: Turn,
        begin: RunTrigger,
    ) -> Result<(), StoreError> {
        let (stop, task, continues) = (event_log.stop(), event_log.task().to_owned(), begin.continues());
        tokio::select! {
            acquired = turn.acquired(&task) => acquired?,
            // The engine ends a run that continues, and its agents with it.
            () = stop.cancelled(), if !continues => return event_log.end(Outcome::Canceled).await,
        }
        let (user, agent) = (event_log.user_with(begin.user()), self.supervisor.get());
        // An agent that has just started has no tools yet.
        agent.settled(&stop).await;
        let mut run = event_log.info(user);
        if self.serves_people() {
            // The agents of a supervisor are not those of its caller.
            run.parents = Arc::default();
        }
        // Boxed, because the run would keep the memory that only its start needs.
        let (state, start) = match Box::pin(self.prepare(&agent, &run, &mut event_log, begin)).await {
            Ok(prepared) => prepared,
            Err(error) => return event_log.fail(&error.to_string()).await,
        };
        let input = match start {
            RunStart::Run(input) => *input,
            RunStart::End(outcome) => return event_log.end(outcome).await,
        };
        let span =
            tracing::info_span!("run", task = %run.task, context = %run.context, trace_id = %run.trace_id);
        let time_limit = agent.time_limit.map_or(self.time_limit, |own| own.min(self.time_limit));
        let driver = Driver::new(agent, run, state, event_log, stop, Some(time_limit));
        let driver = driver.leaving_on(self.leaving.clone());
        match driver.run(input).instrument(span).await {
            Ok(_) => Ok(()),
            Err((error, mut event_log)) => event_log.fail(&error.to_string()).await,
        }
    }

    /// The state of the conversation, and how the run starts in it.
    async fn prepare(
        &self,
        agent: &Agent,
        run: &RunInfo,
        event_log: &mut TaskEventLog,
        begin: RunTrigger,
    ) -> Result<(RunState, RunStart), StoreError> {
        let mut state = RunState::new(agent.name.clone());
        event_log.context().clone_into(&mut state.scope);
        if !matches!(begin, RunTrigger::First(_)) {
            let load = || self.conversations.load(event_log.context(), &agent.name);
            let (loaded, saved) = until_available(event_log.task(), load).await?;
            state = loaded;
            event_log.set_saved(saved);
        }
        if !self.serves_people() {
            let allowed = event_log.always_allowed();
            if !allowed.is_empty() {
                state.always_allowed.entry(agent.name.clone()).or_default().extend(allowed);
            }
        }
        if matches!(begin, RunTrigger::First(_) | RunTrigger::Request(_)) {
            let approved = if self.serves_people() { Vec::new() } else { event_log.approved_calls() };
            state.approved = agent.offered_calls(&approved);
            if let Some(files) = event_log.scratchpad().filter(|_| !self.serves_people()) {
                state.receive_scratchpad(files);
            }
        }
        if !matches!(begin, RunTrigger::Recover | RunTrigger::RecoverAnswer(_)) {
            end_lost_run(&mut state);
        }
        let record = event_log.record();
        let authority = Authority { agent, owner: record.owner.as_deref() };
        let start = begin.start(
            &state,
            || agent.abilities(run).within_run(record.is_repeatable),
            |request, decisions| authority.refusal(&state, request, decisions),
        );
        if state.phase == Phase::Waiting && matches!(start, RunStart::Run(_)) {
            until_available(event_log.task(), || self.close_questions(event_log)).await?;
        }
        Ok((state, start))
    }

    pub(super) async fn reopen(
        &self,
        record: TaskRecord,
        lease: (Option<TaskLease>, Option<HeldLease>),
    ) -> Result<TaskEventLog, StoreError> {
        let wire = (&self.presentation, &self.active_tasks.budget);
        TaskEventLog::reopen(self.leases.clone(), record, lease, wire).await
    }

    pub(super) async fn record(&self, id: &str) -> Result<TaskRecord, RunError> {
        self.store.task(id).await?.ok_or_else(|| RunError::UnknownTask(id.to_owned()))
    }
}

/// Whether a closed log shows the task as it is. Another process may have continued a task that waited.
fn shows(log: &TaskLog, record: &TaskRecord) -> bool {
    let status = log.summary().status;
    !record.phase.is_under_way()
        && phase_of(status.state) == record.phase
        && status.timestamp == Some(record.updated)
}

/// The phase of a task in this state of the protocol.
pub(super) fn phase_of(state: TaskState) -> TaskPhase {
    match state {
        TaskState::Submitted => TaskPhase::Submitted,
        TaskState::InputRequired => TaskPhase::InputRequired,
        TaskState::Completed => TaskPhase::Completed,
        TaskState::Failed => TaskPhase::Failed,
        TaskState::Canceled => TaskPhase::Canceled,
        _ => TaskPhase::Working,
    }
}

//! All runs of this process: carries them out, finds them, stops them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use caipe_a2a::model::{Task, TaskState};
use caipe_a2a::server::{Pushes, TaskLog};
use caipe_engine::{Outcome, Phase, RunState};
use caipe_store::{Store, StoreError, TaskFilter, TaskPhase, TaskRecord};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::conversations::{Conversations, Place, end_lost_run};
use super::driver::{Driver, RunInfo};
use super::error::RunError;
use super::journal::Journal;
use super::live::{Claim, Live};
use super::questions::Askers;
use super::start::{Begin, Start};
use crate::agents::{Agent, Lead};
use crate::binding::{self, Voice};

/// How long a cancelled task may take to say so.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// How long a message to a waiting task may wait until no other task of its conversation runs.
pub(super) const TURN_DEADLINE: Duration = Duration::from_secs(10);

/// All runs of this process.
pub struct Runs {
    pub(super) lead: Lead,
    pub(super) voice: Voice,
    pub(super) store: Arc<dyn Store>,
    pub(super) conversations: Arc<Conversations>,
    pub(super) askers: Askers,
    pub(super) live: Live,
    pub(super) tracker: TaskTracker,
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

    /// A task as it is once nobody else runs in its conversation.
    pub(super) async fn take_over(
        &self,
        id: &str,
        context: &str,
        claim: Claim,
    ) -> Result<(Journal, Place), RunError> {
        let mut place = self.conversations.queue(context);
        let busy = |_| RunError::NotOpen { task: id.to_owned(), phase: TaskPhase::Working };
        tokio::time::timeout(TURN_DEADLINE, place.called()).await.map_err(busy)?;
        let record = self.record(id).await?;
        Ok((self.reopen(record, Some(claim)).await?, place))
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

    pub(super) fn spawn(self: &Arc<Self>, journal: Journal, place: Place, begin: Begin) {
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
        let run = journal.info(user);
        let (state, start) = match self.prepare(&agent, &run, &journal, begin).await {
            Ok(prepared) => prepared,
            Err(error) => return journal.fail(&error.to_string()).await,
        };
        let input = match start {
            Start::Run(input) => *input,
            Start::End(outcome) => return journal.end(outcome).await,
        };
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
        run: &RunInfo,
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
        let start = begin.start(&state, || agent.abilities(&run.require_approval));
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

    pub(super) async fn reopen(
        &self,
        record: TaskRecord,
        claim: Option<Claim>,
    ) -> Result<Journal, StoreError> {
        Journal::reopen(self.store.clone(), record, claim, &self.voice).await
    }

    pub(super) async fn record(&self, id: &str) -> Result<TaskRecord, RunError> {
        self.store.task(id).await?.ok_or_else(|| RunError::UnknownTask(id.to_owned()))
    }
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

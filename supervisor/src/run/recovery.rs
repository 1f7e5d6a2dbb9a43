//! Continues the tasks that another process did not end: a previous one, or one that has died meanwhile.

use std::sync::Arc;
use std::time::Duration;

use caipe_store::{Commit, Fence, StoreError, TaskFilter, TaskPhase, TaskRecord};
use futures::StreamExt as _;
use futures::stream;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::active_tasks::TaskLease;
use super::conversations::Turn;
use super::error::{MOST_RUNS, RunError};
use super::event_log::now;
use super::leases::RELEASE_DEADLINE;
use super::service::Runs;
use super::start::RunTrigger;
use crate::binding::Request;

/// How often a task is continued after a crash. One that crashes each process must not stop the others for good.
const MOST_RECOVERIES: u32 = 3;

/// Tasks that are read from the store at once.
const CONCURRENT: usize = 8;

/// How often a process looks for tasks that no process runs, and the most that it continues each time. A dead process is
/// noticed after the term of its leases and this interval.
const INTERVAL: Duration = Duration::from_secs(1);
const MOST_AT_ONCE: usize = 64;

/// A task that this process continues, and its place in the queue of its conversation.
struct ClaimedTask {
    record: TaskRecord,
    lease: TaskLease,
    turn: Turn,
}

impl Runs {
    /// Takes the tasks that a previous process did not end, oldest first, and continues them in the background. A request for
    /// such a task waits until it is under way. Returns how many there are.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, RunError> {
        self.outbox.take_over().await?;
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let records = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await?;
        Ok(self.take_up(records))
    }

    /// Continues the tasks that no process runs any more, until this process stops.
    pub async fn continue_abandoned(self: Arc<Self>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.halt.cancelled() => return,
            }
            if self.tracker.is_closed() {
                return;
            }
            if let Err(error) = self.outbox.take_over().await {
                tracing::debug!(%error, "failed to look for remote tasks to cancel");
            }
            let room = MOST_RUNS.saturating_sub(self.tracker.len()).min(MOST_AT_ONCE);
            match self.store.abandoned(room).await {
                Ok(records) => drop(self.take_up(records)),
                Err(error) => tracing::debug!(%error, "failed to look for tasks that no process runs"),
            }
        }
    }

    /// Continues these tasks, unless this process runs them. Returns how many there are.
    fn take_up(self: &Arc<Self>, mut records: Vec<TaskRecord>) -> usize {
        records.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        let claim = |record: TaskRecord| {
            let lease = self.active_tasks.lease(&record.id).ok()?;
            let turn = self.conversations.queue(&record.context);
            Some(ClaimedTask { record, lease, turn })
        };
        let claimed: Vec<_> = records.into_iter().filter_map(claim).collect();
        let count = claimed.len();
        if count == 0 {
            return 0;
        }
        let runs = self.clone();
        self.tracker.spawn(async move {
            let resume = |claimed| runs.resume(claimed);
            let all = stream::iter(claimed).for_each_concurrent(CONCURRENT, resume);
            tokio::select! {
                () = all => {}
                () = runs.halt.cancelled() => {}
            }
        });
        count
    }

    /// Continues a task. One that cannot be read fails.
    async fn resume(self: &Arc<Self>, claimed: ClaimedTask) {
        let record = claimed.record.clone();
        tracing::info!(task = record.id, "continuing an interrupted task");
        let error = match self.resume_task(claimed).await {
            Ok(()) => return,
            Err(RunError::Store(error @ (StoreError::LeaseTaken { .. } | StoreError::LeaseLost { .. }))) => {
                return tracing::info!(%error, "another process continues an interrupted task");
            }
            Err(error) => error,
        };
        tracing::error!(task = record.id, %error, "failed to continue an interrupted task");
        let failed = TaskRecord { phase: TaskPhase::Failed, updated: now(), ..record };
        if let Err(error) = self.replace(failed).await {
            tracing::error!(%error, "failed to record that a task has failed");
        }
    }

    async fn resume_task(self: &Arc<Self>, claimed: ClaimedTask) -> Result<(), RunError> {
        let ClaimedTask { record, lease, turn } = claimed;
        let recorded = lease.recorded();
        let held = self.leases.acquire_with_retries(&record.id, lease.stop()).await?;
        // As it is now: another process may have continued it.
        let record = self.record(&record.id).await?;
        if !record.phase.is_under_way() {
            return Ok(());
        }
        let begin = begin(&record)?;
        let mut event_log = self.reopen(record, (Some(lease), Some(held))).await?;
        let recoveries = event_log.record().recoveries;
        if recoveries >= MOST_RECOVERIES {
            let reason = format!("the process crashed {recoveries} times while it worked on this task");
            event_log.fail(&reason).await?;
            event_log.log().close();
            return Ok(());
        }
        event_log.count_recovery().await?;
        self.spawn(event_log, turn, begin);
        recorded.cancel();
        Ok(())
    }

    /// Writes the record of a task that no process runs.
    async fn replace(&self, record: TaskRecord) -> Result<(), StoreError> {
        let held = self.leases.acquire(&record.id, CancellationToken::new()).await?;
        let fence = Fence {
            task: record.id.clone(),
            token: held.state.token,
            number: 1,
            reserved: held.reserved,
            ..Fence::default()
        };
        let (context, task, fence) = (record.context.clone(), Some(record), Some(fence));
        self.store.commit(Commit { context, task, fence, ..Commit::default() }).await
    }

    /// Takes back the recoveries of a task that the stop of this process would count as crashes. This process has its lease.
    pub(super) async fn forgive_recoveries(&self, task: &str) {
        let forgiven = async {
            let record = self.store.task(task).await?;
            match record.filter(|record| record.phase.is_under_way()) {
                Some(record) => self.replace(TaskRecord { recoveries: 0, ..record }).await,
                None => Ok(()),
            }
        };
        if let Ok(Err(error)) = timeout(RELEASE_DEADLINE, forgiven).await {
            tracing::warn!(%error, "the stop of this process counts as a crash of a task");
        }
    }
}

/// How the task continues.
fn begin(record: &TaskRecord) -> Result<RunTrigger, RunError> {
    let read = |message| Request::of_stored(message).map_err(RunError::Invalid);
    Ok(match (record.phase, record.replies.last()) {
        (TaskPhase::Submitted, _) => RunTrigger::Request(read(&record.request)?),
        (_, Some(reply)) => RunTrigger::RecoverAnswer(read(&reply.message)?),
        (_, None) => RunTrigger::Recover,
    })
}

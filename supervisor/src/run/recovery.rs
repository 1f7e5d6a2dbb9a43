//! Continues the tasks that a previous process did not end.

use std::sync::Arc;

use caipe_store::{Commit, StoreError, TaskFilter, TaskPhase, TaskRecord};
use futures::StreamExt as _;
use futures::stream;

use super::active_tasks::TaskLease;
use super::conversations::Turn;
use super::error::RunError;
use super::event_log::now;
use super::service::Runs;
use super::start::RunTrigger;
use crate::binding::Request;

/// How often a task is continued after a crash. One that crashes each process must not stop the others for good.
const MOST_RECOVERIES: u32 = 3;

/// Tasks that are read from the store at once.
const CONCURRENT: usize = 8;

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
        self.outbox.recover().await?;
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let mut records = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await?;
        records.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        let claim = |record: TaskRecord| {
            let lease = self.active_tasks.lease(&record.id).ok()?;
            let turn = self.conversations.queue(&record.context);
            Some(ClaimedTask { record, lease, turn })
        };
        let claimed: Vec<_> = records.into_iter().filter_map(claim).collect();
        let count = claimed.len();
        let runs = self.clone();
        self.tracker.spawn(async move {
            let resume = |claimed| runs.resume(claimed);
            let all = stream::iter(claimed).for_each_concurrent(CONCURRENT, resume);
            tokio::select! {
                () = all => {}
                () = runs.halt.cancelled() => {}
            }
        });
        Ok(count)
    }

    /// Continues a task. One that cannot be read fails.
    async fn resume(self: &Arc<Self>, claimed: ClaimedTask) {
        let record = claimed.record.clone();
        tracing::info!(task = record.id, "continuing an interrupted task");
        let error = match self.resume_task(claimed).await {
            Ok(()) => return,
            Err(RunError::Store(error @ StoreError::LeaseTaken { .. })) => {
                return tracing::info!(%error, "another process continues an interrupted task");
            }
            Err(error) => error,
        };
        tracing::error!(task = record.id, %error, "failed to continue an interrupted task");
        if let Err(error) = self.give_up(record).await {
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
        let mut event_log = self.reopen(record, Some((lease, held))).await?;
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

    async fn give_up(&self, record: TaskRecord) -> Result<(), StoreError> {
        let record = TaskRecord { phase: TaskPhase::Failed, updated: now(), ..record };
        let context = record.context.clone();
        self.store.commit(Commit { context, task: Some(record), ..Commit::default() }).await
    }

    /// Takes back the recoveries that the stop of this process would count as crashes.
    pub(super) async fn forgive_recoveries(&self) {
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let left = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await;
        for record in left.unwrap_or_default().into_iter().filter(|record| record.recoveries > 0) {
            let record = TaskRecord { recoveries: 0, ..record };
            let commit = Commit { context: record.context.clone(), task: Some(record), ..Commit::default() };
            if let Err(error) = self.store.commit(commit).await {
                tracing::warn!(%error, "the stop of this process counts as a crash of a task");
            }
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

//! Continues the tasks that a previous process did not end.

use std::sync::Arc;

use caipe_store::{Commit, TaskFilter, TaskPhase, TaskRecord};

use super::error::RunError;
use super::event_log::now;
use super::service::Runs;
use super::start::RunTrigger;
use crate::binding::Request;

impl Runs {
    /// Continues the tasks that a previous process did not end, oldest first. A task that cannot be read fails without
    /// delaying the others.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, RunError> {
        let phases = vec![TaskPhase::Submitted, TaskPhase::Working];
        let mut records = self.store.tasks(&TaskFilter { phases, ..TaskFilter::default() }).await?;
        records.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        let mut recovered = 0;
        for record in records {
            tracing::info!(task = record.id, "continuing an interrupted task");
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
                RunTrigger::Request(Request::of_stored(&record.request).map_err(RunError::Invalid)?)
            }
            (_, Some(reply)) => {
                RunTrigger::RecoverAnswer(Request::of_stored(&reply.message).map_err(RunError::Invalid)?)
            }
            (_, None) => RunTrigger::Recover,
        };
        let lease = self.active_tasks.lease(&record.id).ok();
        let turn = self.conversations.queue(&record.context);
        let event_log = self.reopen(record, lease).await?;
        self.spawn(event_log, turn, begin);
        Ok(())
    }

    async fn give_up(&self, record: TaskRecord, error: &RunError) -> Result<(), RunError> {
        tracing::error!(task = record.id, %error, "failed to continue an interrupted task");
        let record = TaskRecord { phase: TaskPhase::Failed, updated: now(), ..record };
        let context = record.context.clone();
        Ok(self.store.commit(Commit { context, task: Some(record), ..Commit::default() }).await?)
    }
}

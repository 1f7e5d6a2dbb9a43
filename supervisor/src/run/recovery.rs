//! What a former process left unfinished.

use std::sync::Arc;

use caipe_store::{Commit, TaskFilter, TaskPhase, TaskRecord};

use super::error::RunError;
use super::journal::now;
use super::service::Runs;
use super::start::Begin;
use crate::binding::Request;

impl Runs {
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
}

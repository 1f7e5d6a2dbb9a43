//! Cancels tasks, whichever process runs them.

use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::Task;
use caipe_a2a::server::TaskLog;
use caipe_engine::Outcome;
use caipe_store::{StoreError, TaskFilter, TaskPhase};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::control::ControlRequest;
use super::error::RunError;
use super::event_log::TaskEventLog;
use super::service::{Runs, phase_of};
use super::start::RunTrigger;

/// How long `cancel` waits for the end of the task.
const CANCEL_DEADLINE: Duration = Duration::from_secs(10);

/// How often a run tries to cancel a waiting task that another process holds.
const CLOSE_INTERVAL: Duration = Duration::from_millis(50);

impl Runs {
    /// Cancels a task and returns its last state.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<Task, RunError> {
        let mut task = self.cancel_once(id).await?;
        if phase_of(task.status.state) == TaskPhase::InputRequired {
            // It asked a question at the same time.
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
            match self.active_tasks.lease(id) {
                Ok(_) if record.phase.is_under_way() && self.runs_elsewhere(id).await? => {
                    self.ask_owner(id).await?;
                }
                Err(handle) => {
                    handle.stop.cancel();
                    drop(tokio::time::timeout(CANCEL_DEADLINE, handle.over.cancelled()).await);
                }
                Ok(lease) => match self.take_over(id, &record.context, lease).await {
                    Ok((event_log, turn)) if !event_log.phase().is_terminal() => {
                        self.spawn(event_log, turn, RunTrigger::Cancel);
                    }
                    Ok(_) => {}
                    Err(RunError::Store(StoreError::LeaseTaken { .. })) => self.ask_owner(id).await?,
                    Err(error) => return Err(error),
                },
            }
        }
        let log = self.log(id).await?;
        drop(tokio::time::timeout(CANCEL_DEADLINE, drained(&log)).await);
        Ok(log.snapshot())
    }

    /// Whether another process runs the task.
    async fn runs_elsewhere(&self, id: &str) -> Result<bool, RunError> {
        match self.leases.acquire(id, CancellationToken::new()).await {
            Err(StoreError::LeaseTaken { .. }) => Ok(true),
            acquired => Ok(acquired.map(|_| false)?),
        }
    }

    /// Asks the process that runs the task to cancel it.
    async fn ask_owner(&self, id: &str) -> Result<(), RunError> {
        match self.store.send_control(id, ControlRequest::Cancel.message()?).await {
            // It was asked often enough.
            Err(StoreError::MailboxFull { .. }) => Ok(()),
            sent => Ok(sent?),
        }
    }

    /// Cancels the other waiting tasks of the conversation: this run answers or abandons their question, which must not be
    /// answered twice.
    pub(super) async fn close_questions(&self, event_log: &TaskEventLog) -> Result<(), StoreError> {
        let (context, phases) = (Some(event_log.context().to_owned()), vec![TaskPhase::InputRequired]);
        for record in self.store.tasks(&TaskFilter { context, phases, ..TaskFilter::default() }).await? {
            if record.id != event_log.task() {
                self.close_question(&record.id).await?;
            }
        }
        Ok(())
    }

    async fn close_question(&self, id: &str) -> Result<(), StoreError> {
        let held = loop {
            match self.leases.acquire_with_retries(id, CancellationToken::new()).await {
                // Another process has a message to the task, and sees that it must wait.
                Err(StoreError::LeaseTaken { .. }) => sleep(CLOSE_INTERVAL).await,
                acquired => break acquired?,
            }
        };
        let Some(record) = self.store.task(id).await?.filter(|it| it.phase == TaskPhase::InputRequired)
        else {
            return Ok(());
        };
        let mut asked = self.reopen(record, (None, Some(held))).await?;
        asked.end(Outcome::Canceled).await?;
        asked.log().close();
        self.show(id, &asked.log());
        self.active_tasks.retire(id);
        Ok(())
    }
}

/// Waits for the end of the log.
async fn drained(log: &Arc<TaskLog>) {
    let mut cursor = log.cursor(log.last_seq());
    while cursor.next().await.is_some() {}
}

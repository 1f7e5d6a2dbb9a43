//! Cancels tasks that no client follows any more.

use futures::StreamExt;

use super::A2aClient;
use super::follow_event::{Followed, Steps};

/// Cancels a task when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it cancels the task"]
pub struct CancelOnDrop {
    client: A2aClient,
    task: Option<String>,
}

impl CancelOnDrop {
    pub(super) const fn new(client: A2aClient, task: String) -> Self {
        Self { client, task: Some(task) }
    }

    /// Lets the task continue.
    pub fn disarm(mut self) {
        self.task = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            cancel_in_background(self.client.with(self.client.call.open_ended()), task);
        }
    }
}

pub(super) fn cancel_in_background(client: A2aClient, task: String) {
    spawn(async move { cancel(&client, &task).await });
}

/// Cancels the task that a message creates, once the agent has named it.
pub(super) fn cancel_once_known(client: A2aClient, mut steps: Steps) {
    spawn(async move {
        let known = async {
            while let Some(Ok(step)) = steps.next().await {
                let Followed::Event(event) = step else { continue };
                if let Some(task) = event.event.task_id().filter(|task| !task.is_empty()) {
                    return Some(task.to_owned());
                }
            }
            None
        };
        let known = tokio::time::timeout(client.inner.options.timeout, known).await;
        if let Ok(Some(task)) = known {
            cancel(&client, &task).await;
        }
    });
}

async fn cancel(client: &A2aClient, task: &str) {
    match client.cancel(task).await {
        Ok(task) => tracing::debug!(task = task.id, state = %task.status.state, "canceled a task"),
        Err(error) => tracing::debug!(task, %error, "failed to cancel a task that nobody waits for"),
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn(work));
    } else {
        tracing::debug!("failed to cancel a task: there is no runtime any more");
    }
}

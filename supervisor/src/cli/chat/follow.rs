//! The events of a task, from its first to its last, and the error if they break off.

use caipe_a2a::client::{A2aClient, ClientError, EventStream, Followed};
use caipe_a2a::model::SendMessageRequest;

/// Why following a task failed for good.
#[derive(Debug, thiserror::Error)]
pub(super) enum FollowError {
    /// The message could not be sent, or the agent answered with an error.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The connection broke before the agent named the task: sending again might do the work twice.
    #[error("{0}; the agent may still be working on the message")]
    Unknown(ClientError),
    /// The connection broke, and reconnecting failed.
    #[error("gave up after {tries} tries to follow task {task}: {source}; the task may still be running")]
    Lost {
        task: String,
        /// How often it was tried.
        tries: u32,
        /// The last failure.
        source: Box<ClientError>,
    },
}

/// A task that is followed, or a message that starts one.
pub(super) struct Following {
    events: EventStream,
    tries: u32,
}

/// Sends a message and follows its task. Reconnects if the connection breaks.
pub(super) fn follow(client: &A2aClient, request: SendMessageRequest) -> Following {
    Following { events: client.follow(request), tries: 0 }
}

/// Follows an earlier task.
pub(super) fn rejoin(client: &A2aClient, task: &str) -> Following {
    Following { events: client.follow_task(task, None), tries: 0 }
}

impl Following {
    /// The next event, or a change of the connection. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Followed, FollowError>> {
        let step = self.events.next_step().await?;
        if let Ok(Followed::Lost { attempt, .. }) = &step {
            self.tries = *attempt;
        }
        Some(step.map_err(|error| self.explained(error)))
    }

    fn explained(&self, error: ClientError) -> FollowError {
        match self.events.task_id() {
            Some(task) if error.is_transient() => {
                FollowError::Lost { task: task.to_owned(), tries: self.tries, source: Box::new(error) }
            }
            None if error.is_ambiguous() => FollowError::Unknown(error),
            _ => error.into(),
        }
    }
}

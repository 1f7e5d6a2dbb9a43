//! The start of a remote call: connects to the agent and sends the task once.

use caipe_a2a::client::A2aClient;
use caipe_a2a::model::{ListTasksRequest, SendMessageRequest};
use caipe_engine::{DelegateUpdate, RemotePlace};

use super::call::{Call, RemoteTask};
use super::failure::{self, RemoteFailure};
use super::{FIRST_WAIT, SHORT_CALL, TRIES, request};
use crate::delegation::DelegationEnd;

/// The result of the search for a task that may have been started.
enum Found {
    Task(RemoteTask),
    Nothing,
    /// The agent cannot list its tasks, or did not respond.
    Unknown,
}

impl Call<'_> {
    /// Connects to the agent. Retries for a while if the agent cannot be reached, because it may be starting. `None` if the
    /// delegation was canceled meanwhile.
    pub(super) async fn connect(&self, although_cancelled: bool) -> Result<Option<A2aClient>, RemoteFailure> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let connected = tokio::select! {
                connected = self.backend.client() => connected,
                () = self.cancel.cancelled(), if !although_cancelled => return Ok(None),
            };
            match connected {
                Ok(client) => {
                    self.backend
                        .check(&client.card())
                        .map_err(|error| RemoteFailure::WrongCard(error.to_string()))?;
                    return Ok(Some(client.with(request::traced(&self.delegation.run, &self.ids.message))));
                }
                Err(error) if error.is_unaccepted() && attempt < TRIES && !self.cancel.is_cancelled() => {
                    tracing::debug!(agent = %self.backend.target.name, %error, attempt, "failed to reach the agent; trying again");
                }
                Err(error) => return Err(RemoteFailure::Unreached(error)),
            }
            self.pause(&mut wait).await;
        }
        Ok(None)
    }

    /// Sends the message that starts the task. If it is unknown whether the agent received it, looks for the task at the
    /// agent. Sends the message again only to an agent of this program, which acts on it once.
    pub(super) async fn begin(&self, client: &A2aClient) -> DelegationEnd {
        self.backend.count_call();
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let reader = self.reader(client);
            let is_ours = reader.is_ours();
            let message = request::opening(self.delegation, &self.ids, &self.backend.target.require_approval);
            let message = request::with_client_tools(message, &self.client_tools());
            let stream = client.follow(SendMessageRequest::new(message));
            let error = match self.follow(client, stream, reader, None).await {
                Ok(last) => return last,
                Err(error) => error,
            };
            if attempt == TRIES || !failure::is_cut(&error) {
                return self.fail(&RemoteFailure::Unaccepted(error));
            }
            self.pause(&mut wait).await;
            if let Found::Task(known) = self.find(client).await {
                return self.resume_task(client, known).await;
            }
            if !is_ours {
                return self.fail(&RemoteFailure::Unaccepted(error));
            }
            if self.cancel.is_cancelled() {
                break;
            }
        }
        DelegationEnd::CANCELED
    }

    /// Starts a delegation that an earlier process may have started. A foreign agent acts on each copy of a message, so it
    /// gets no copy if it cannot tell whether it received the first.
    pub(super) async fn begin_again(&self, client: &A2aClient) -> DelegationEnd {
        match self.find(client).await {
            Found::Task(known) => self.resume_task(client, known).await,
            _ if self.cancel.is_cancelled() => DelegationEnd::CANCELED,
            Found::Unknown if !self.reader(client).is_ours() => self.fail(&RemoteFailure::Doubtful),
            Found::Nothing | Found::Unknown => self.begin(client).await,
        }
    }

    /// Looks for a task in the delegation's own context, which contains no other task. Agents of 0.3 cannot list tasks.
    async fn find(&self, client: &A2aClient) -> Found {
        let request = ListTasksRequest {
            context_id: Some(self.ids.context.clone()),
            page_size: Some(1),
            ..Default::default()
        };
        let Ok(Ok(page)) = tokio::time::timeout(SHORT_CALL, client.list(request)).await else {
            return Found::Unknown;
        };
        let Some(task) = page.tasks.into_iter().find(|task| task.context_id == self.ids.context) else {
            return Found::Nothing;
        };
        self.send(DelegateUpdate::Accepted { task: task.id.clone(), context: task.context_id.clone() }).await;
        Found::Task(RemoteTask { task: task.id, context: task.context_id, place: RemotePlace::default() })
    }
}

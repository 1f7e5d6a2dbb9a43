//! Calls to an agent outside of delegations: its card, a task in the background, the status of a task.

use std::sync::Arc;

use caipe_a2a::client::{A2aClient, ClientError};
use caipe_a2a::model::{AgentCard, Event, Reply, SendMessageConfiguration, SendMessageRequest};
use caipe_engine::DelegationOutcome;

use super::failure::{self, End, RemoteFailure};
use super::reader::Reader;
use super::request::{self, Ids};
use super::{ProbeError, RemoteBackend, form};
use crate::delegation::{Delegation, RunInfo};

/// The status of an agent's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteTaskStatus {
    UnderWay {
        /// The task's id at the agent.
        task: String,
        /// Its state in A2A.
        state: String,
    },
    /// The task waits for an answer.
    Asks {
        /// The task's id at the agent.
        task: String,
        question: String,
        /// Whether the question is a form or an approval, which only a person may answer.
        is_for_a_person: bool,
    },
    Ended(DelegationOutcome),
}

impl RemoteTaskStatus {
    /// Whether the task runs without waiting for an answer.
    pub const fn is_under_way(&self) -> bool {
        matches!(self, Self::UnderWay { .. })
    }
}

impl RemoteBackend {
    /// The agent's card.
    ///
    /// # Errors
    /// The reason for a model.
    pub async fn card(&self) -> Result<Arc<AgentCard>, String> {
        Ok(self.connected().await?.card())
    }

    /// Starts the task and waits only until the agent has accepted it.
    ///
    /// # Errors
    /// The reason for a model.
    pub async fn begin(&self, delegation: &Delegation) -> Result<RemoteTaskStatus, String> {
        let ids = Ids::of(delegation);
        let client = self.connected().await?.with(request::traced(&delegation.run, &ids.message));
        let rejected = |error: ProbeError| self.words(&RemoteFailure::WrongCard(error.to_string()));
        self.check(&client.card()).map_err(rejected)?;
        let configuration = SendMessageConfiguration { return_immediately: true, ..Default::default() };
        let message = request::opening(delegation, &ids, &self.target.require_approval);
        let request =
            SendMessageRequest { configuration: Some(configuration), ..SendMessageRequest::new(message) };
        self.count_call();
        let reply =
            client.send(request).await.map_err(|error| self.words(&RemoteFailure::Unaccepted(error)))?;
        let event = match reply {
            Reply::Task(task) => Event::from(*task),
            Reply::Message(message) => Event::Message(message),
        };
        Ok(self.status_of(&client, event))
    }

    /// The status of a task.
    ///
    /// # Errors
    /// The reason for a model.
    pub async fn status(&self, task: &str, run: &RunInfo) -> Result<RemoteTaskStatus, String> {
        let client = self.connected().await?.with(request::traced(run, task));
        let task = client.get(task, None).await.map_err(|error| match error {
            ClientError::Remote(error) => {
                self.scrubbed(format!("it says: {}", failure::excerpt(&error.message)))
            }
            error => self.words(&RemoteFailure::Unreached(error)),
        })?;
        Ok(self.status_of(&client, Event::from(task)))
    }

    async fn connected(&self) -> Result<A2aClient, String> {
        self.client().await.map_err(|error| self.words(&RemoteFailure::Unreached(error)))
    }

    fn status_of(&self, client: &A2aClient, event: Event) -> RemoteTaskStatus {
        let task = event.task_id().unwrap_or_default().to_owned();
        let state = event.state().map(|state| state.to_string()).unwrap_or_default();
        let name = &self.target.name;
        let mut reader = Reader::new(name, &client.card(), &task);
        reader.read(event.into());
        match reader.end().cloned() {
            None => RemoteTaskStatus::UnderWay { task, state },
            Some(End::Asks(words)) => {
                let forms = reader.forms();
                let is_for_a_person = !forms.is_empty();
                let form = forms.into_iter().next();
                let form = form.unwrap_or_else(|| form::in_words(name.as_str(), words.as_deref()));
                RemoteTaskStatus::Asks { task, question: form.description, is_for_a_person }
            }
            Some(end) => {
                let outcome = failure::of(&end, reader.answer(), reader.is_ours());
                RemoteTaskStatus::Ended(failure::scrubbed_outcome(outcome, &self.target.headers))
            }
        }
    }

    /// The text of a failure without secrets.
    fn words(&self, failure: &RemoteFailure) -> String {
        self.scrubbed(failure.reason(self.target.silence))
    }

    fn scrubbed(&self, text: String) -> String {
        failure::scrubbed(text, &self.target.headers)
    }
}

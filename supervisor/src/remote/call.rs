//! One remote call: starts or resumes a task of an agent and follows it to its end.

use std::time::Duration;

use caipe_a2a::ProtocolVersion;
use caipe_a2a::client::{A2aClient, ClientError, EventStream, Followed, StreamEvent};
use caipe_a2a::model::{Event, SendMessageRequest};
use caipe_engine::{Answered, CallEnd, DelegateUpdate, DelegationOutcome, RemotePlace, Resume, ResumePoint};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failure::{self, End, RemoteFailure};
use super::reader::Reader;
use super::request::{self, Ids};
use super::{FIRST_WAIT, RemoteBackend, SHORT_CALL, TRIES, form};
use crate::delegation::{
    CLIENT_CALL_TIME, ClientCall, ClientTools, Delegation, DelegationEnd, DelegationEvent, MOVED, Scratchpad,
    one_form,
};

/// Most times that a delegation is started again because the agent has lost its task.
const MOST_REPEATS: u32 = 3;

/// The code of a JSON-RPC error of the server itself.
const INTERNAL_ERROR: i64 = -32603;

/// The interval for polling a task that cannot be followed.
const POLL: Duration = Duration::from_secs(1);

/// Carries out a delegation. The remote task is canceled only if the token is: if the future is dropped, the task
/// continues, and the next process resumes it.
pub(super) async fn run(
    backend: &RemoteBackend,
    delegation: &Delegation,
    events: &mpsc::Sender<DelegationEvent>,
    cancel: &CancellationToken,
) -> DelegationEnd {
    Call { backend, delegation, ids: Ids::of(delegation), repeats: 0, events, cancel }.run().await
}

/// One delegation.
pub(super) struct Call<'a> {
    pub(super) backend: &'a RemoteBackend,
    pub(super) delegation: &'a Delegation,
    pub(super) ids: Ids,
    /// How often the delegation was started again because the agent had lost its task.
    repeats: u32,
    events: &'a mpsc::Sender<DelegationEvent>,
    pub(super) cancel: &'a CancellationToken,
}

/// A task of the agent.
#[derive(Debug, Clone)]
pub(super) struct RemoteTask {
    pub(super) task: String,
    pub(super) context: String,
    pub(super) place: RemotePlace,
}

impl Call<'_> {
    async fn run(&self) -> DelegationEnd {
        let resume = self.delegation.resume.as_ref();
        let known = match resume.and_then(|resume| resume.from.as_ref()) {
            Some(ResumePoint::Nested(_)) => return self.failed(MOVED.to_owned()),
            Some(ResumePoint::Remote { task, context, place }) => {
                Some(RemoteTask { task: task.clone(), context: context.clone(), place: *place })
            }
            None => None,
        };
        let client = match self.connect(resume.is_some()).await {
            Ok(Some(client)) => client,
            Ok(None) => return DelegationEnd::CANCELED,
            Err(failure) => return self.fail(&failure),
        };
        if self.cancel.is_cancelled() && (known.is_some() || resume.is_none()) {
            self.stop(&client, known.as_ref().map(|known| known.task.as_str())).await;
            return DelegationEnd::CANCELED;
        }
        match (known, resume) {
            (Some(known), Some(Resume { answered: Some(answered), .. })) => {
                self.answer(&client, known, answered).await
            }
            (Some(known), _) => self.resume_task(&client, known).await,
            (None, Some(_)) => self.begin_again(&client).await,
            (None, None) => self.begin(&client).await,
        }
    }

    /// Passes on the answer to the question of a waiting task. An agent of this program acts on it once, so it gets the answer
    /// again if it may not have received it. A foreign agent could take a second copy for the answer to its next question.
    async fn answer(&self, client: &A2aClient, known: RemoteTask, answered: &Answered) -> DelegationEnd {
        let is_ours = self.reader(client).is_ours();
        if answered.is_repeated && !is_ours {
            return self.resume_task(client, known).await;
        }
        let demanded = &self.backend.target.require_approval;
        let (task, context) = (&known.task, &known.context);
        let message = request::answer(self.delegation, &self.ids, task, context, answered, demanded);
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let reader = self.reader(client).from(known.place, true);
            let stream = client.follow(SendMessageRequest::new(message.clone()));
            let error = match self.follow(client, stream, reader, Some(known.clone())).await {
                Ok(end) => return end,
                Err(error) => error,
            };
            let is_cut = failure::is_cut(&error);
            let may_repeat = error.is_unaccepted() || (is_cut && is_ours);
            if !may_repeat || attempt == TRIES || self.cancel.is_cancelled() {
                if is_cut {
                    // If the answer did not arrive, the agent repeats its question, and the supervisor passes it on.
                    break;
                }
                return self.fail(&RemoteFailure::Unaccepted(error));
            }
            self.pause(&mut wait).await;
        }
        self.resume_task(client, known).await
    }

    /// Waits before the next attempt, and doubles the time for the one after it. A cancellation ends the wait.
    pub(super) async fn pause(&self, wait: &mut Duration) {
        tokio::select! {
            () = tokio::time::sleep(*wait) => {}
            () = self.cancel.cancelled() => {}
        }
        *wait *= 2;
    }

    /// Follows a running task from a known position.
    pub(super) async fn resume_task(&self, client: &A2aClient, known: RemoteTask) -> DelegationEnd {
        let reader = self.reader(client).from(known.place, false);
        // Without numbers, a stream of 0.3 omits the earlier events.
        if client.version() == ProtocolVersion::V0_3 && known.place.seq.is_none() {
            return self.poll(client, &known, reader).await;
        }
        match client.subscribe(&known.task, known.place.seq).await {
            Ok(stream) => self.end_of(self.follow(client, stream, reader, Some(known)).await),
            // The task has ended or waits, the agent has no subscriptions, or the task does not exist: polling tells.
            Err(ClientError::Remote(_)) => self.poll(client, &known, reader).await,
            Err(error) => self.fail(&RemoteFailure::Lost(error)),
        }
    }

    /// Polls the task until it ends. Retries while the agent does not respond, because it may be starting. Fails if the task
    /// does not change within the time limit for silence.
    async fn poll(&self, client: &A2aClient, known: &RemoteTask, mut reader: Reader) -> DelegationEnd {
        let (mut answered, mut changed, mut last) = (Instant::now(), Instant::now(), None);
        let silence = self.backend.target.silence;
        loop {
            let asked = tokio::select! {
                asked = client.get(&known.task, None) => asked,
                () = self.cancel.cancelled() => return self.stop_task(client, &known.task, reader).await,
            };
            match asked {
                Ok(task) => {
                    answered = Instant::now();
                    if last.as_ref() != Some(&task) {
                        changed = answered;
                        last = Some(task.clone());
                    }
                    self.send_all(reader.read(Event::from(task).into())).await;
                    self.answer_calls(client, &mut reader, known).await;
                }
                Err(error) if error.is_transient() && answered.elapsed() < silence => {}
                Err(error) => return self.lost(reader, &RemoteFailure::Lost(error)).await,
            }
            if reader.end().is_some() {
                return self.conclude(client, reader, Some(&known.task)).await;
            }
            if changed.elapsed() >= silence {
                return self.lost(reader, &RemoteFailure::Still).await;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                () = self.cancel.cancelled() => {}
            }
        }
    }

    fn end_of(&self, followed: Result<DelegationEnd, ClientError>) -> DelegationEnd {
        followed.unwrap_or_else(|error| self.fail(&RemoteFailure::Unaccepted(error)))
    }

    /// Follows a stream to its end.
    ///
    /// # Errors
    /// If the stream fails before its first event: it is unknown whether the agent has the task.
    pub(super) async fn follow(
        &self,
        client: &A2aClient,
        mut stream: EventStream,
        mut reader: Reader,
        mut known: Option<RemoteTask>,
    ) -> Result<DelegationEnd, ClientError> {
        let mut heard = false;
        loop {
            let step = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(self.stop_stream(client, stream, known, reader).await),
                step = stream.next_step() => step,
            };
            let event = match step {
                Some(Ok(Followed::Event(event))) => *event,
                Some(Ok(Followed::Lost { attempt, of })) => {
                    tracing::debug!(agent = %self.backend.target.name, attempt, of, "the connection was lost");
                    continue;
                }
                Some(Ok(Followed::Back)) => continue,
                Some(Err(error)) if heard => return Ok(self.lost(reader, &RemoteFailure::Lost(error)).await),
                Some(Err(error)) => return Err(error),
                // The stream ended before the task did.
                None => {
                    return Ok(match known {
                        Some(known) => self.poll(client, &known, reader).await,
                        None => self.lost(reader, &RemoteFailure::Silent).await,
                    });
                }
            };
            heard = true;
            self.accepted(&event, &mut known).await;
            // Waits for a slow delegating run, which also slows the reading of the stream.
            let listens = self.send_all(reader.read(event)).await;
            if let Some(known) = &known {
                self.answer_calls(client, &mut reader, known).await;
            }
            if reader.end().is_some() {
                let task = known.as_ref().map(|known| known.task.as_str());
                return Ok(self.conclude(client, reader, task).await);
            }
            if !listens && self.cancel.is_cancelled() {
                return Ok(self.stop_stream(client, stream, known, reader).await);
            }
        }
    }

    /// Reports the id of the task once the agent names it.
    async fn accepted(&self, event: &StreamEvent, known: &mut Option<RemoteTask>) {
        let Some(task) = event.event.task_id().filter(|task| !task.is_empty()) else { return };
        if known.as_ref().is_some_and(|known| known.task == task) || matches!(event.event, Event::Message(_))
        {
            return;
        }
        let context = match &event.event {
            Event::Task(task) => task.context_id.clone(),
            Event::StatusUpdate(update) => update.context_id.clone(),
            Event::ArtifactUpdate(update) => update.context_id.clone(),
            Event::Message(_) => String::new(),
        };
        *known = Some(RemoteTask {
            task: task.to_owned(),
            context: context.clone(),
            place: RemotePlace::default(),
        });
        self.send(DelegateUpdate::Accepted { task: task.to_owned(), context }).await;
    }

    async fn conclude(&self, client: &A2aClient, mut reader: Reader, task: Option<&str>) -> DelegationEnd {
        let Some(end) = reader.end().cloned() else { return self.fail(&RemoteFailure::Silent) };
        if let End::Asks(question) = end {
            return DelegationEnd::Asks(self.question(&mut reader, question.as_deref()));
        }
        if let (End::WantsCredentials(_), Some(task)) = (&end, task) {
            self.stop(client, Some(task)).await;
        }
        if end == End::Completed && reader.answer().is_empty() {
            self.read_answer(client, &mut reader, task).await;
        }
        let outcome = failure::of(&end, reader.answer(), reader.is_ours());
        let closing = match &outcome {
            DelegationOutcome::Completed { .. } => CallEnd::Completed,
            DelegationOutcome::Failed { .. } => CallEnd::Failed,
            DelegationOutcome::Canceled => CallEnd::Canceled,
        };
        self.send_all(reader.close(closing)).await;
        let shared = self.delegation.run.scratchpad.as_ref();
        if let Some(update) = Scratchpad::update(shared, reader.changed_files()) {
            self.send(update).await;
        }
        self.finished(outcome)
    }

    /// Reads the task of an agent whose stream contained no answer. Does not send the message again, so that the agent does
    /// not repeat its work.
    async fn read_answer(&self, client: &A2aClient, reader: &mut Reader, task: Option<&str>) {
        let Some(task) = task else { return };
        match tokio::time::timeout(SHORT_CALL, client.get(task, None)).await {
            Ok(Ok(task)) => drop(self.send_all(reader.read(Event::from(task).into())).await),
            Ok(Err(error)) => {
                tracing::debug!(task, %error, "failed to look at a task that ended without an answer");
            }
            Err(_) => tracing::debug!(task, "failed to look at a task that ended without an answer in time"),
        }
    }

    fn question(&self, reader: &mut Reader, question: Option<&str>) -> caipe_engine::Form {
        let name = self.backend.target.name.as_str();
        let forms = reader.forms();
        match question {
            _ if !forms.is_empty() => one_form(name, forms),
            None => form::in_words(name, None),
            Some(_) => one_form(name, vec![form::in_words(name, question)]),
        }
    }

    /// Stops the followed task. If its id is not known yet, stops it once the agent names it.
    async fn stop_stream(
        &self,
        client: &A2aClient,
        stream: EventStream,
        known: Option<RemoteTask>,
        reader: Reader,
    ) -> DelegationEnd {
        if let Some(known) = known {
            return self.stop_task(client, &known.task, reader).await;
        }
        drop(stream.cancel_on_drop());
        DelegationEnd::CANCELED
    }

    async fn stop_task(&self, client: &A2aClient, task: &str, mut reader: Reader) -> DelegationEnd {
        self.stop(client, Some(task)).await;
        self.send_all(reader.close(CallEnd::Canceled)).await;
        DelegationEnd::CANCELED
    }

    /// Cancels a task at the agent, within a time limit.
    async fn stop(&self, client: &A2aClient, task: Option<&str>) {
        let Some(task) = task else { return };
        let name = &self.backend.target.name;
        match tokio::time::timeout(SHORT_CALL, client.cancel(task)).await {
            Ok(Ok(canceled)) => {
                tracing::debug!(agent = %name, task, state = %canceled.status.state, "stopped a remote task");
            }
            Ok(Err(error)) if !error.is_transient() => {
                tracing::debug!(agent = %name, task, category = error.category(), "a remote task has ended before");
            }
            // The log omits the error, which may contain a credential.
            Ok(Err(error)) => {
                let category = error.category();
                tracing::warn!(agent = %name, task, category, "failed to stop a remote task");
            }
            Err(_) => tracing::warn!(agent = %name, task, "failed to stop a remote task in time"),
        }
    }

    /// The names of the agent's tools that this process answers.
    pub(super) fn client_tools(&self) -> Vec<String> {
        self.backend.target.client_tools.as_ref().map(|tools| tools.names()).unwrap_or_default()
    }

    /// Answers the agent's calls that wait for this process. What follows in the stream waits, so that a process that takes over
    /// never misses one. An agent that gets no answer continues after a while.
    async fn answer_calls(&self, client: &A2aClient, reader: &mut Reader, known: &RemoteTask) {
        let Some(tools) = &self.backend.target.client_tools else { return };
        for asked in reader.client_calls() {
            let (name, tool) = (&self.backend.target.name, asked.tool.clone());
            let answered = self.answer_call(client, &**tools, asked, known);
            let failure = match tokio::time::timeout(CLIENT_CALL_TIME, answered).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.category(),
                Err(_) => "time limit",
            };
            tracing::warn!(agent = %name, tool, failure, "failed to answer a call of a remote agent");
        }
    }

    async fn answer_call(
        &self,
        client: &A2aClient,
        tools: &dyn ClientTools,
        asked: ClientCall,
        known: &RemoteTask,
    ) -> Result<(), ClientError> {
        let call = asked.call.clone();
        let output = tools.call(asked, self.delegation.run.clone(), self.cancel.child_token()).await;
        let request = request::client_result(&self.ids, (&known.task, &known.context), &call, &output);
        let mut wait = FIRST_WAIT;
        while let Err(error) = client.send(request.clone()).await {
            match &error {
                // Its store may have failed for a moment.
                ClientError::Remote(remote) if remote.code == INTERNAL_ERROR => {}
                ClientError::Remote(_) => {
                    tracing::debug!(%error, call, "a remote agent does not wait for the result of a call any more");
                    return Ok(());
                }
                _ if error.is_transient() => {}
                _ => return Err(error),
            }
            if self.cancel.is_cancelled() {
                return Err(error);
            }
            self.pause(&mut wait).await;
        }
        Ok(())
    }

    async fn lost(&self, mut reader: Reader, failure: &RemoteFailure) -> DelegationEnd {
        if self.may_repeat(&reader, failure) {
            return Box::pin(self.repeat(reader)).await;
        }
        let (unknown, updates) = reader.close_lost();
        self.send_all(updates).await;
        self.log_failure(failure);
        self.failed(unknown.added_to(failure.reason(self.backend.target.silence)))
    }

    /// Whether the delegation is started again: the agent has lost the task, and no call of it can do harm a second time. The calls
    /// that the supervisor has read of prove nothing, because an agent makes a call before the supervisor reads of it; so
    /// the agent says at the start whether it can make any that must not be repeated. An answer of a person is not given again.
    fn may_repeat(&self, reader: &Reader, failure: &RemoteFailure) -> bool {
        let is_answered = self.delegation.resume.as_ref().is_some_and(|resume| resume.answered.is_some());
        let is_permitted = reader.is_repeatable() && !is_answered && !self.cancel.is_cancelled();
        is_permitted && failure.is_unknown_task() && self.repeats < MOST_REPEATS
    }

    /// Starts the delegation again, as another task.
    async fn repeat(&self, mut reader: Reader) -> DelegationEnd {
        let name = &self.backend.target.name;
        self.send_all(reader.close_repeated(failure::REPEATED)).await;
        tracing::warn!(agent = %name, "a remote agent lost a task and gets it again");
        self.pause(&mut (FIRST_WAIT * 2_u32.pow(self.repeats))).await;
        let repeats = self.repeats + 1;
        let call = Call { ids: Ids::of(self.delegation).again(repeats), repeats, ..*self };
        match call.connect(false).await {
            Ok(Some(client)) => call.begin(&client).await,
            Ok(None) => DelegationEnd::CANCELED,
            Err(failure) => call.fail(&failure),
        }
    }

    pub(super) fn reader(&self, client: &A2aClient) -> Reader {
        let Delegation { call, run, .. } = self.delegation;
        let target = &self.backend.target;
        Reader::new(&target.name, &client.card(), call)
            .telling_words(run.agents_words)
            .answering_calls(target.client_tools.is_some())
    }

    async fn send_all(&self, updates: Vec<DelegateUpdate>) -> bool {
        let mut heard = true;
        for update in updates {
            heard = self.send(update).await && heard;
        }
        heard
    }

    /// Sends an update; returns whether the delegating run still receives updates.
    pub(super) async fn send(&self, update: DelegateUpdate) -> bool {
        self.events.send(update.into()).await.is_ok()
    }

    pub(super) fn fail(&self, failure: &RemoteFailure) -> DelegationEnd {
        self.log_failure(failure);
        self.failed(failure.reason(self.backend.target.silence))
    }

    fn log_failure(&self, failure: &RemoteFailure) {
        tracing::warn!(agent = %self.backend.target.name, category = failure.category(), "a remote agent failed");
    }

    fn failed(&self, reason: String) -> DelegationEnd {
        self.finished(DelegationOutcome::Failed { reason })
    }

    /// Removes secret header values from the reason of a failure.
    fn finished(&self, outcome: DelegationOutcome) -> DelegationEnd {
        DelegationEnd::Finished(failure::scrubbed_outcome(outcome, &self.backend.target.headers))
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;

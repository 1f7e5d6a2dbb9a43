//! Follows a task from its first event to its last across lost connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::follow_event::Followed;
use super::outage::Outage;
use super::sse::{Numbered, RawEvents};
use super::stream::EventStream;
use super::stream_position::{Next, Position, Retry};
use super::{A2aClient, ClientError};
use crate::model::{Event, Reply, SendMessageRequest, Task};
use crate::version::ProtocolVersion;

/// Follows a task, or the task that a message starts.
pub(super) struct Follower {
    client: A2aClient,
    begin: Begin,
    position: Position,
    source: Source,
    outage: Outage,
    /// Whether to poll an agent that does not stream.
    may_ask: bool,
    /// Whether the agent may have received the message.
    sent: Arc<AtomicBool>,
}

/// The first request.
enum Begin {
    Message(Box<SendMessageRequest>),
    Subscription(String),
}

/// The source of the next event.
enum Source {
    /// The first request was not sent yet.
    Unsent {
        wait: Duration,
    },
    /// A connection; `reopened` until the first event after a reconnect.
    Open {
        events: RawEvents,
        reopened: bool,
    },
    /// No connection.
    Lost {
        wait: Duration,
    },
    /// Polls an agent that does not support subscriptions or does not repeat missed events.
    Poll {
        wait: Duration,
        known: Option<Box<Task>>,
    },
    Done,
}

impl Follower {
    pub(super) fn message(client: A2aClient, request: SendMessageRequest) -> Self {
        let task = request.message.task_id.clone().filter(|task| !task.is_empty());
        Self::new(client, Begin::Message(Box::new(request)), Position::before_message(task))
    }

    pub(super) fn task(client: A2aClient, id: &str, last: Option<u64>) -> Self {
        let position = Position::before_subscription(id.to_owned(), last);
        Self::new(client, Begin::Subscription(id.to_owned()), position)
    }

    fn new(client: A2aClient, begin: Begin, position: Position) -> Self {
        let source = Source::Unsent { wait: Duration::ZERO };
        Self {
            client,
            begin,
            position,
            source,
            outage: Outage::default(),
            may_ask: false,
            sent: Arc::default(),
        }
    }

    /// Sends the message without a stream.
    pub(super) async fn ask(mut self) -> Result<Reply, ClientError> {
        loop {
            let Begin::Message(request) = &self.begin else { return Err(ClientError::NoTask) };
            let reply = self.client.send_once((**request).clone()).await;
            let error = match reply {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let quiet = self.record_failure(&error);
            let policy = &self.client.inner.options.reconnect;
            let again = self.position.unreached(error, policy, quiet, fastrand::f64())?;
            self.sleep(again.wait).await?;
        }
    }

    /// Waits for the connection.
    pub(super) async fn opened(mut self) -> Result<EventStream, ClientError> {
        while matches!(self.source, Source::Unsent { .. }) {
            self.next().await?;
        }
        Ok(self.stream())
    }

    /// Sends the request once the stream is read.
    pub(super) fn lazy(mut self) -> EventStream {
        self.may_ask = true;
        self.stream()
    }

    /// Follows the task, once the stream is read, as after a lost connection.
    pub(super) fn rejoin(mut self) -> EventStream {
        self.source = Source::Lost { wait: Duration::ZERO };
        self.stream()
    }

    fn stream(self) -> EventStream {
        let (client, sent) = (self.client.clone(), Arc::clone(&self.sent));
        // A message may name a running task; dropping the stream before the message is sent must not cancel it.
        let task = match &self.begin {
            Begin::Subscription(task) => Some(task.clone()),
            Begin::Message(_) => None,
        };
        let steps = stream::unfold(Some(self), |follower| async {
            let mut follower = follower?;
            match follower.next().await {
                Ok(Some(next)) => Some((Ok(next), Some(follower))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        EventStream::new(steps, client, task, sent)
    }

    /// The next step, within the deadline of the call.
    async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        match self.client.call.until() {
            Some(deadline) => {
                tokio::time::timeout_at(deadline, self.steps()).await.unwrap_or(Err(ClientError::Deadline))
            }
            None => self.steps().await,
        }
    }

    async fn steps(&mut self) -> Result<Option<Followed>, ClientError> {
        loop {
            let step = match std::mem::replace(&mut self.source, Source::Done) {
                Source::Unsent { wait } => self.begin(wait).await?,
                Source::Open { events, reopened } => self.read(events, reopened).await?,
                Source::Lost { wait } => self.reconnect(wait).await?,
                Source::Poll { wait, known } => self.poll(wait, known).await?,
                Source::Done => return Ok(None),
            };
            if step.is_some() {
                return Ok(step);
            }
        }
    }

    async fn begin(&mut self, wait: Duration) -> Result<Option<Followed>, ClientError> {
        tokio::time::sleep(wait).await;
        self.sent.store(true, Ordering::Relaxed);
        let opened = match &self.begin {
            Begin::Message(request) if self.may_ask && !self.client.card().capabilities.streaming => {
                return self.begin_by_asking(at_once((**request).clone())).await;
            }
            Begin::Message(request) => self.client.stream_once((**request).clone()).await,
            Begin::Subscription(task) => self.client.subscribe_once(task, self.position.last()).await,
        };
        match opened {
            Ok(events) => {
                self.position.reached();
                self.outage.opened(Instant::now(), wait);
                self.source = Source::Open { events, reopened: false };
                Ok(Some(Followed::Back))
            }
            Err(error) => self.unreached(error),
        }
    }

    async fn begin_by_asking(
        &mut self,
        request: SendMessageRequest,
    ) -> Result<Option<Followed>, ClientError> {
        match self.client.send_once(request).await {
            Ok(Reply::Message(message)) => Ok(self.accept(unnumbered(Event::Message(message)), false)),
            Ok(Reply::Task(task)) => {
                self.source = self.polled(task.clone());
                Ok(self.accept(unnumbered(Event::Task(task)), false))
            }
            Err(error) => self.unreached(error),
        }
    }

    fn unreached(&mut self, error: ClientError) -> Result<Option<Followed>, ClientError> {
        let quiet = self.record_failure(&error);
        let policy = &self.client.inner.options.reconnect;
        self.sent.store(!error.is_unaccepted(), Ordering::Relaxed);
        let again = self.position.unreached(error, policy, quiet, fastrand::f64())?;
        self.source = Source::Unsent { wait: again.wait };
        Ok(Some(self.losing(again)))
    }

    fn lost(
        &mut self,
        error: ClientError,
        source: impl FnOnce(Duration) -> Source,
    ) -> Result<Option<Followed>, ClientError> {
        let quiet = self.record_failure(&error);
        let policy = &self.client.inner.options.reconnect;
        match self.position.lost(error, policy, quiet, fastrand::f64()) {
            Next::End => Ok(None),
            Next::Fail(error) => Err(error),
            Next::Retry(retry) => {
                self.source = source(retry.wait);
                Ok(Some(self.losing(retry)))
            }
        }
    }

    /// Records a failure; returns how long the agent has been unreachable.
    fn record_failure(&mut self, error: &ClientError) -> Duration {
        let silent = if let ClientError::Idle(silent) = error { *silent } else { Duration::ZERO };
        let now = Instant::now();
        if self.outage.lost(now, silent) {
            self.position.reached();
        }
        self.outage.duration(now)
    }

    fn losing(&self, retry: Retry) -> Followed {
        Followed::Lost { attempt: retry.attempt, of: self.client.inner.options.reconnect.attempts }
    }

    async fn read(&mut self, mut events: RawEvents, reopened: bool) -> Result<Option<Followed>, ClientError> {
        match events.next().await {
            Some(Ok(event)) => {
                self.source = Source::Open { events, reopened: false };
                Ok(self.accept(event, reopened))
            }
            // A refusal by an agent whose responses are all streams.
            Some(Err(ClientError::Remote(_))) if reopened => {
                self.source = Source::Poll { wait: Duration::ZERO, known: None };
                Ok(None)
            }
            Some(Err(error)) => self.lost(error, |wait| Source::Lost { wait }),
            None => Ok(None),
        }
    }

    /// Accepts an event; `None` if it is not new.
    fn accept(&mut self, event: Numbered, reopens: bool) -> Option<Followed> {
        let event = self.position.accept(event, reopens)?;
        // A repeated task is no progress.
        if !event.resumed {
            self.outage.end();
        }
        // An agent may keep the connection open after it has repeated a task that has ended or waits.
        if event.resumed && self.position.is_over() {
            self.source = Source::Done;
        }
        Some(Followed::Event(Box::new(event)))
    }

    async fn reconnect(&mut self, wait: Duration) -> Result<Option<Followed>, ClientError> {
        tokio::time::sleep(wait).await;
        let Some(task) = self.position.task().map(str::to_owned) else { return Err(ClientError::NoTask) };
        if self.client.version() == ProtocolVersion::V0_3 && !self.position.is_numbered() {
            // Such an agent may not start with the task, and missed or repeated events would be unnoticed.
            self.source = Source::Poll { wait: Duration::ZERO, known: None };
            return Ok(None);
        }
        match self.client.subscribe_once(&task, self.position.last()).await {
            Ok(events) => {
                self.outage.opened(Instant::now(), wait);
                self.source = Source::Open { events, reopened: true };
                Ok(Some(Followed::Back))
            }
            // The task has ended, or the agent does not support subscriptions.
            Err(ClientError::Remote(_)) => {
                self.source = Source::Poll { wait: Duration::ZERO, known: None };
                Ok(None)
            }
            Err(error) => self.lost(error, |wait| Source::Lost { wait }),
        }
    }

    async fn poll(
        &mut self,
        wait: Duration,
        known: Option<Box<Task>>,
    ) -> Result<Option<Followed>, ClientError> {
        tokio::time::sleep(wait).await;
        let Some(id) = self.position.task().map(str::to_owned) else { return Err(ClientError::NoTask) };
        match self.client.get(&id, None).await {
            Ok(task) => {
                self.position.reached();
                self.outage.end();
                let is_new = known.as_deref() != Some(&task);
                let task = Box::new(task);
                self.source = self.polled(task.clone());
                Ok(if is_new { self.accept(unnumbered(Event::Task(task)), true) } else { None })
            }
            Err(error) => self.lost(error, |wait| Source::Poll { wait, known }),
        }
    }

    fn polled(&self, task: Box<Task>) -> Source {
        if task.status.state.ends_stream() {
            return Source::Done;
        }
        Source::Poll { wait: self.client.inner.options.reconnect.poll, known: Some(task) }
    }

    async fn sleep(&mut self, wait: Duration) -> Result<(), ClientError> {
        let time = self.client.call.time_left(wait.max(Duration::from_millis(1)))?;
        tokio::time::sleep(time.time).await;
        Ok(())
    }
}

/// The same message with an immediate response: only a known task can be canceled.
fn at_once(mut request: SendMessageRequest) -> SendMessageRequest {
    request.configuration.get_or_insert_default().return_immediately = true;
    request
}

fn unnumbered(event: Event) -> Numbered {
    Numbered { seq: None, event }
}

//! A task's events from its first to its last, whatever happens to the connection in between.

use std::time::Duration;

use caipe_a2a::client::{A2aClient, ClientError, EventStream, StreamEvent};
use caipe_a2a::model::{Event, Reply, SendMessageRequest, TaskState};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

/// How often a lost connection is taken up again without anything new coming.
const ATTEMPTS: u32 = 5;
/// How often a task is asked for where it cannot be followed.
const POLL: Duration = Duration::from_secs(1);

/// What following a task brings.
#[derive(Debug)]
pub(super) enum Followed {
    /// The next event.
    Event(Box<StreamEvent>),
    /// The connection is lost and will be taken up again.
    Lost {
        /// Which try this will be, from 1.
        attempt: u32,
        /// How many there will be.
        of: u32,
    },
    /// The connection is there again.
    Back,
}

/// Why following a task failed for good.
#[derive(Debug, thiserror::Error)]
pub(super) enum FollowError {
    /// The message could not be sent, or the agent answered with an error.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The connection broke before the agent said which task it made: sending again might do the work twice.
    #[error("{0}; the agent may still be working on the message")]
    Unknown(ClientError),
    /// The connection broke, and could not be taken up again.
    #[error("gave up after {ATTEMPTS} tries to follow task {task}: {source}; the task may still be running")]
    Lost {
        /// The task.
        task: String,
        /// The last failure.
        source: Box<ClientError>,
    },
}

/// Sends a message and follows what comes of it. A lost connection is taken up again after `first_wait`, then
/// after twice as long, and so on.
pub(super) fn follow(
    client: A2aClient,
    request: SendMessageRequest,
    first_wait: Duration,
) -> BoxStream<'static, Result<Followed, FollowError>> {
    let follower = Follower {
        client,
        source: Source::Unsent(Box::new(request)),
        task: None,
        last: None,
        attempt: 0,
        first_wait,
        ended: false,
    };
    stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.next().await {
            Ok(Some(next)) => Some((Ok(next), Some(follower))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

struct Follower {
    client: A2aClient,
    source: Source,
    task: Option<String>,
    /// The number of the newest event.
    last: Option<u64>,
    /// Tries since something new came.
    attempt: u32,
    first_wait: Duration,
    /// Whether the task needs no following any more.
    ended: bool,
}

/// Where the next event comes from.
enum Source {
    Unsent(Box<SendMessageRequest>),
    Stream(EventStream),
    /// The connection is to be taken up again.
    Lost(ClientError),
    /// The agent does not let tasks be followed; it is asked again and again.
    Poll,
}

impl Follower {
    async fn next(&mut self) -> Result<Option<Followed>, FollowError> {
        match std::mem::replace(&mut self.source, Source::Poll) {
            Source::Unsent(request) => self.send(*request).await.map(Some),
            Source::Stream(events) => self.read(events).await,
            Source::Lost(error) => self.take_up_again(error).await.map(Some),
            Source::Poll if self.ended => Ok(None),
            Source::Poll => self.poll().await.map(Some),
        }
    }

    async fn send(&mut self, request: SendMessageRequest) -> Result<Followed, FollowError> {
        if self.client.card().capabilities.streaming {
            self.source = Source::Stream(self.client.stream(request).await.map_err(unsent)?);
            return Ok(Followed::Back);
        }
        let event = match self.client.send(request).await.map_err(unsent)? {
            Reply::Task(task) => Event::Task(task),
            Reply::Message(message) => Event::Message(message),
        };
        Ok(self.came(StreamEvent { seq: None, event }))
    }

    async fn read(&mut self, mut events: EventStream) -> Result<Option<Followed>, FollowError> {
        match events.next().await {
            Some(Ok(event)) => {
                self.source = Source::Stream(events);
                Ok(Some(self.came(event)))
            }
            Some(Err(error)) => self.lost(error).map(Some),
            None if self.ended => Ok(None),
            None => self.lost(ClientError::Cut).map(Some),
        }
    }

    fn came(&mut self, event: StreamEvent) -> Followed {
        self.last = event.seq.or(self.last);
        if let Some(task) = event.event.task_id().filter(|task| !task.is_empty()) {
            self.task = Some(task.to_owned());
        }
        self.ended = match &event.event {
            Event::Message(_) => true,
            // A task that waited says so first when it is gone on with; what follows decides.
            other => other.state().map_or(self.ended, TaskState::ends_stream),
        };
        // A snapshot alone is no progress: an agent that breaks off behind it each time is given up on.
        if !matches!(event.event, Event::Task(_)) {
            self.attempt = 0;
        }
        Followed::Event(Box::new(event))
    }

    fn lost(&mut self, error: ClientError) -> Result<Followed, FollowError> {
        if self.ended {
            // It broke off after the last word.
            self.source = Source::Poll;
            return Ok(Followed::Back);
        }
        if !can_pass(&error) {
            return Err(error.into());
        }
        let Some(task) = &self.task else { return Err(FollowError::Unknown(error)) };
        if self.attempt == ATTEMPTS {
            return Err(FollowError::Lost { task: task.clone(), source: Box::new(error) });
        }
        self.attempt += 1;
        self.source = Source::Lost(error);
        Ok(Followed::Lost { attempt: self.attempt, of: ATTEMPTS })
    }

    async fn take_up_again(&mut self, error: ClientError) -> Result<Followed, FollowError> {
        let Some(task) = self.task.clone() else { return Err(FollowError::Unknown(error)) };
        tokio::time::sleep(self.first_wait * 2_u32.saturating_pow(self.attempt.saturating_sub(1))).await;
        match self.client.subscribe(&task, self.last).await {
            Ok(events) => {
                self.source = Source::Stream(events);
                Ok(Followed::Back)
            }
            // It has ended meanwhile, or the agent lets nobody follow.
            Err(ClientError::Remote(_)) => self.poll().await,
            Err(error) => self.lost(error),
        }
    }

    async fn poll(&mut self) -> Result<Followed, FollowError> {
        let Some(task) = self.task.clone() else { return Err(FollowError::Unknown(ClientError::Cut)) };
        match self.client.get(&task, Some(0)).await {
            Ok(task) => {
                self.source = Source::Poll;
                if !task.status.state.ends_stream() {
                    tokio::time::sleep(POLL).await;
                }
                Ok(self.came(StreamEvent { seq: None, event: Event::Task(Box::new(task)) }))
            }
            Err(error) => self.lost(error),
        }
    }
}

/// A message that got no answer: unless there was no connection at all, it may have arrived.
fn unsent(error: ClientError) -> FollowError {
    match error {
        ClientError::Timeout { .. }
        | ClientError::Idle(_)
        | ClientError::Broken { .. }
        | ClientError::Cut => FollowError::Unknown(error),
        error => error.into(),
    }
}

/// Whether a failure may pass by itself.
fn can_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. }
        | ClientError::Timeout { .. }
        | ClientError::Idle(_)
        | ClientError::Broken { .. }
        | ClientError::Cut => true,
        ClientError::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
        _ => false,
    }
}

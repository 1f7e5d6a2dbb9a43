//! What a caller sees of a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use super::A2aClient;
use super::error::ClientError;
use super::guard;
use crate::model::{Event, Task, TaskState};

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Its number, if the server numbers its events: what to name when subscribing again.
    pub seq: Option<u64>,
    /// The event.
    pub event: Event,
    /// Whether it takes the place of everything before: the task as a whole, told anew because events between may
    /// be missing. Text that was shown already is in it again.
    pub resumed: bool,
}

impl From<Event> for StreamEvent {
    fn from(event: Event) -> Self {
        Self { seq: None, event, resumed: false }
    }
}

/// What following a task brings.
#[derive(Debug)]
pub enum Followed {
    /// The next event.
    Event(Box<StreamEvent>),
    /// The connection is lost and will be taken up again.
    Lost {
        /// Which try this will be, from 1.
        attempt: u32,
        /// How many there will be without anything new coming.
        of: u32,
    },
    /// The connection is there again.
    Back,
}

/// The same, or the failure that is the last.
pub(super) type Steps = BoxStream<'static, Result<Followed, ClientError>>;

/// The events of a task, up to its end, its wait for the client, or the first failure that is final. Lost
/// connections are taken up again in between: each event comes once.
///
/// Dropping it hangs up; the task goes on, unless [`Self::cancel_on_drop`] was asked for.
#[must_use = "streams do nothing unless polled"]
pub struct EventStream {
    /// Taken only when it is dropped.
    steps: Option<Steps>,
    seen: Seen,
    client: A2aClient,
    /// Whether the agent may have the message.
    sent: Arc<AtomicBool>,
    cancel_on_drop: bool,
}

/// What passed by.
#[derive(Debug, Default)]
struct Seen {
    task: Option<String>,
    last: Option<u64>,
    /// Whether the task needs nobody to stop it.
    over: bool,
}

impl Seen {
    fn note(&mut self, event: &StreamEvent) {
        self.last = event.seq.or(self.last);
        if let Some(task) = event.event.task_id().filter(|task| !task.is_empty()) {
            self.task = Some(task.to_owned());
        }
        let ended = event.event.state().map(TaskState::is_terminal);
        self.over = ended.unwrap_or(self.over) || matches!(event.event, Event::Message(_));
    }
}

impl EventStream {
    pub(super) fn new(
        steps: impl Stream<Item = Result<Followed, ClientError>> + Send + 'static,
        client: A2aClient,
        task: Option<String>,
        sent: Arc<AtomicBool>,
    ) -> Self {
        let seen = Seen { task, ..Seen::default() };
        // Whoever reads on behind the end is told so again.
        Self { steps: Some(steps.fuse().boxed()), seen, client, sent, cancel_on_drop: false }
    }

    /// The task, once it is known.
    pub fn task_id(&self) -> Option<&str> {
        self.seen.task.as_deref()
    }

    /// The number of the newest event, if the server numbers them.
    pub fn last_seq(&self) -> Option<u64> {
        self.seen.last
    }

    /// Asks the agent to stop the task, within [`ClientOptions::timeout`](super::ClientOptions::timeout) and
    /// whatever the deadline of this call was. The stream tells how the task ends.
    ///
    /// # Errors
    /// [`ClientError::NoTask`] before the first event that names it; what the agent answers.
    pub fn cancel(&self) -> impl Future<Output = Result<Task, ClientError>> + Send + use<> {
        let task = self.seen.task.clone();
        let client = self.client.with(self.client.call.open_ended());
        async move { client.cancel(&task.ok_or(ClientError::NoTask)?).await }
    }

    /// Stops the task when the stream is dropped before its end: for a caller whose own caller may give up. Needs
    /// a Tokio runtime where it is dropped; what becomes of the cancellation is only logged.
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancel_on_drop = true;
        self
    }

    /// The same with word of lost connections, for somebody who waits.
    pub async fn next_step(&mut self) -> Option<Result<Followed, ClientError>> {
        std::future::poll_fn(|context| self.poll_step(context)).await
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Followed, ClientError>>> {
        let Some(steps) = &mut self.steps else { return Poll::Ready(None) };
        let step = ready!(steps.poll_next_unpin(context));
        if let Some(Ok(Followed::Event(event))) = &step {
            self.seen.note(event);
        }
        Poll::Ready(step)
    }
}

impl Stream for EventStream {
    type Item = Result<StreamEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.poll_step(context)) {
                Some(Ok(Followed::Event(event))) => return Poll::Ready(Some(Ok(*event))),
                Some(Ok(Followed::Lost { .. } | Followed::Back)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if !self.cancel_on_drop || self.seen.over {
            return;
        }
        let client = self.client.with(self.client.call.open_ended());
        match (self.seen.task.take(), self.steps.take()) {
            (Some(task), _) => guard::cancel_in_background(client, task),
            (None, Some(steps)) if self.sent.load(Ordering::Relaxed) => {
                guard::cancel_once_known(client, steps);
            }
            (None, _) => {}
        }
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("seen", &self.seen).finish_non_exhaustive()
    }
}

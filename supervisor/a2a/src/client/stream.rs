//! The stream of a task's events.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};

use super::A2aClient;
use super::cancel;
use super::error::ClientError;
use super::follow_event::{Followed, Steps, StreamEvent};
use crate::model::{Event, Task, TaskState};

/// The events of a task, until it ends or waits for the client, or until a permanent failure. The client reconnects
/// in between and returns each event once.
///
/// Dropping the stream closes the connection; the task continues, unless [`Self::cancel_on_drop`] is set.
#[must_use = "streams do nothing unless polled"]
pub struct EventStream {
    /// Empty only while the stream is dropped.
    steps: Option<Steps>,
    seen: Seen,
    client: A2aClient,
    /// Whether the agent may have received the message.
    sent: Arc<AtomicBool>,
    cancel_on_drop: bool,
}

/// The state of the task after the events so far.
#[derive(Debug, Default)]
struct Seen {
    task: Option<String>,
    last: Option<u64>,
    /// Whether the task needs no cancellation.
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
    /// independent of the deadline of this call. The stream reports how the task ends.
    ///
    /// # Errors
    /// [`ClientError::NoTask`] before the first event that names it; the agent's error.
    pub fn cancel(&self) -> impl Future<Output = Result<Task, ClientError>> + Send + use<> {
        let task = self.seen.task.clone();
        let client = self.client.with(self.client.call.open_ended());
        async move { client.cancel(&task.ok_or(ClientError::NoTask)?).await }
    }

    /// Cancels the task if the stream is dropped before its end. Needs a Tokio runtime at that point; logs the result.
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancel_on_drop = true;
        self
    }

    /// The next event or change of the connection.
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
            (Some(task), _) => cancel::cancel_in_background(client, task),
            (None, Some(steps)) if self.sent.load(Ordering::Relaxed) => {
                cancel::cancel_once_known(client, steps);
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

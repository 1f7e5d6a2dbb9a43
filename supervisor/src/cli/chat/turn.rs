//! One message and the events of its task, shown as they arrive.

use std::io;
use std::time::Duration;

use caipe_a2a::client::{A2aClient, ClientError, Followed, StreamEvent};
use caipe_a2a::model::{Event, Task};
use futures::future::{BoxFuture, FutureExt, OptionFuture};
use tokio::time::{Instant, MissedTickBehavior};

use super::follow::{FollowError, Following};
use super::interrupts::{Interrupt, Interrupts};
use super::render::{Screen, Waiting};
use caipe_view::{End, View, ViewEvent};

/// How often a terminal is redrawn.
const TICK: Duration = Duration::from_millis(50);
/// How long the end of a canceled task is waited for.
const CANCEL_DEADLINE: Duration = Duration::from_secs(5);

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnOutcome {
    /// The task ended, or waits for an answer.
    Ended(End),
    /// The agent did not confirm the cancellation in time.
    Unconfirmed,
    /// The user left during a cancellation.
    Gone,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TurnError {
    /// The agent cannot be followed.
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error("failed to write the answer: {0}")]
    Write(#[from] io::Error),
}

/// Everything that a turn needs.
pub(super) struct Turn<'a> {
    /// The agent.
    pub(super) client: &'a A2aClient,
    /// Where it is shown.
    pub(super) screen: &'a mut dyn Screen,
    pub(super) interrupts: &'a mut Interrupts,
    /// The state of the task so far.
    pub(super) view: &'a mut View,
    /// The last state of the earlier turn, to be shown again.
    pub(super) known: Option<ViewEvent>,
}

/// A cancellation under way.
struct Canceling {
    deadline: Instant,
    /// The agent's answer; `None` before the task is known, and after it.
    answer: Option<BoxFuture<'static, Result<Task, ClientError>>>,
    asked: bool,
}

impl Canceling {
    fn begin() -> Self {
        Self { deadline: Instant::now() + CANCEL_DEADLINE, answer: None, asked: false }
    }
}

impl Turn<'_> {
    /// Shows the events until the task ends or the user cancels it. A user that leaves cancels it too.
    pub(super) async fn run(mut self, events: Following) -> Result<TurnOutcome, TurnError> {
        self.interrupts.forget();
        self.screen.begin()?;
        if let Some(known) = self.known.take() {
            self.screen.show(&known)?;
        }
        let result = self.follow(events).await;
        if matches!(result, Err(TurnError::Write(_))) && self.interrupts.is_leaving() {
            self.cancel_unseen().await;
        }
        self.screen.end()?;
        result
    }

    async fn follow(&mut self, mut events: Following) -> Result<TurnOutcome, TurnError> {
        let mut canceling = self.interrupts.is_leaving().then(Canceling::begin);
        let started = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            self.cancel_once_known(&mut canceling);
            let deadline = canceling.as_ref().map(|canceling| canceling.deadline);
            let answer =
                OptionFuture::from(canceling.as_mut().and_then(|canceling| canceling.answer.as_mut()));
            tokio::select! {
                biased;
                interrupt = self.interrupts.next() => {
                    if interrupt == Interrupt::Cancel && canceling.is_some() {
                        return Ok(TurnOutcome::Gone);
                    }
                    canceling.get_or_insert_with(Canceling::begin);
                    self.screen.wait(Waiting::Cancel)?;
                }
                Some(answer) = answer => {
                    if let Some(canceling) = &mut canceling {
                        canceling.answer = None;
                    }
                    self.canceled(answer)?;
                }
                followed = events.next() => match followed {
                    Some(followed) => self.take(followed?, canceling.is_some())?,
                    None if self.view.end().is_none() => return Err(FollowError::Client(ClientError::Cut).into()),
                    None => {}
                },
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Ok(TurnOutcome::Unconfirmed);
                }
                _ = ticks.tick() => self.screen.tick(started.elapsed())?,
            }
            if let Some(end) = self.view.end() {
                self.screen.tick(started.elapsed())?;
                return Ok(TurnOutcome::Ended(end.clone()));
            }
        }
    }

    /// Cancels the task after the terminal was closed, so that nothing can be shown.
    async fn cancel_unseen(&self) {
        if let Some(task) = self.view.task() {
            let canceled = tokio::time::timeout(CANCEL_DEADLINE, self.client.cancel(task)).await;
            tracing::debug!(?canceled, "the task was to be canceled");
        }
    }

    /// Sends the cancellation once the agent has named the task.
    fn cancel_once_known(&self, canceling: &mut Option<Canceling>) {
        if let (Some(canceling), Some(task)) = (canceling.as_mut().filter(|c| !c.asked), self.view.task()) {
            let (client, task) = (self.client.clone(), task.to_owned());
            canceling.asked = true;
            canceling.answer = Some(async move { client.cancel(&task).await }.boxed());
        }
    }

    /// Handles the agent's answer to a cancellation. A refusal means that the task has ended by itself; the stream reports
    /// how.
    fn canceled(&mut self, answer: Result<Task, ClientError>) -> io::Result<()> {
        match answer {
            Ok(task) if task.status.state.is_terminal() => self.show(&Event::from(task).into()),
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "the cancellation was refused");
                Ok(())
            }
        }
    }

    fn take(&mut self, followed: Followed, canceling: bool) -> io::Result<()> {
        match followed {
            Followed::Event(event) => self.show(&event),
            Followed::Lost { attempt, of } => self.screen.wait(Waiting::Connection { attempt, of }),
            Followed::Back => self.screen.wait(if canceling { Waiting::Cancel } else { Waiting::Agent }),
        }
    }

    fn show(&mut self, event: &StreamEvent) -> io::Result<()> {
        self.screen.event(event)?;
        self.view.apply(&event.event).iter().try_for_each(|show| self.screen.show(show))
    }
}

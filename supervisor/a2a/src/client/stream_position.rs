//! The position of a client in a task's events: which events are new, and what follows a lost connection. Pure.

use std::time::Duration;

use super::error::ClientError;
use super::follow_event::StreamEvent;
use super::reconnect::Reconnect;
use super::sse::Numbered;
use crate::model::{Event, TaskState};

/// The position of a client in a task's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    task: Option<String>,
    /// The number of the newest event.
    last: Option<u64>,
    /// The newest state.
    state: Option<TaskState>,
    /// Whether any event has arrived.
    begun: bool,
    /// Whether the agent answered with a message instead of a task.
    answered: bool,
    follows: Follows,
    /// Attempts to reconnect since the last new event or stable connection.
    attempt: u32,
}

/// How the client started to follow the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// With a message that starts the task.
    NewTask,
    /// With a message to a task that waits. The first event may still have the waiting state.
    WaitingTask,
    /// With a subscription, which continues while the task waits.
    Subscription,
}

/// What follows a lost connection.
#[derive(Debug)]
pub(super) enum Next {
    /// The stream has ended.
    End,
    /// Give up.
    Fail(ClientError),
    /// Reconnect.
    Retry(Retry),
}

/// An attempt to reconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    /// The wait before it.
    pub(super) wait: Duration,
}

impl Position {
    /// Before a message is sent, to `task` if it names one.
    pub(super) const fn before_message(task: Option<String>) -> Self {
        let follows = if task.is_some() { Follows::WaitingTask } else { Follows::NewTask };
        Self::new(task, None, follows)
    }

    /// Before a subscription to what comes after `last`.
    pub(super) fn before_subscription(task: String, last: Option<u64>) -> Self {
        let begun = last.is_some_and(|last| last > 0);
        Self { begun, ..Self::new(Some(task), last, Follows::Subscription) }
    }

    const fn new(task: Option<String>, last: Option<u64>, follows: Follows) -> Self {
        Self { task, last, state: None, begun: false, answered: false, follows, attempt: 0 }
    }

    pub(super) fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    pub(super) const fn last(&self) -> Option<u64> {
        self.last
    }

    /// Whether the agent numbers its events.
    pub(super) const fn is_numbered(&self) -> bool {
        self.last.is_some()
    }

    /// Accepts an event; `None` if it is not new. `reopens` is whether it is the first one after a reconnect.
    pub(super) fn accept(&mut self, incoming: Numbered, reopens: bool) -> Option<StreamEvent> {
        let Numbered { seq, event } = incoming;
        let is_task = matches!(event, Event::Task(_));
        // A subscription that continues after an event of another connection has no task yet.
        let has_no_task = self.follows == Follows::Subscription && self.state.is_none();
        let opens = is_task && (reopens || !self.begun || has_no_task);
        if self.is_known(seq, &event, opens && (!reopens || has_no_task)) {
            return None;
        }
        // A repeated task is no progress, so that attempts to an agent that fails after it each time have an end.
        if !is_task {
            self.attempt = 0;
        }
        let resumed = is_task && self.begun;
        self.note(seq, &event);
        Some(StreamEvent { seq, event, resumed })
    }

    /// Whether the client has an event already. The first event of a connection is always new, and so is the end of a
    /// task: if its number is not, the agent has restarted its numbering.
    fn is_known(&self, seq: Option<u64>, event: &Event, opens: bool) -> bool {
        let Some((seq, last)) = seq.zip(self.last) else { return false };
        let ends = event.state().is_some_and(TaskState::is_terminal);
        seq <= last && !opens && !ends
    }

    fn note(&mut self, seq: Option<u64>, event: &Event) {
        if let Some(task) = event.task_id().filter(|task| !task.is_empty()) {
            self.task = Some(task.to_owned());
        }
        self.last = seq.or(self.last);
        self.answered |= matches!(event, Event::Message(_));
        // A task that waited first repeats that state.
        let is_opening = !self.begun && matches!(event, Event::Task(_));
        let is_past = is_opening && self.follows == Follows::WaitingTask;
        let state = event.state().filter(|state| !is_past || state.is_terminal());
        self.state = state.or(self.state);
        self.begun = true;
    }

    /// Whether no more events are expected.
    pub(super) fn is_over(&self) -> bool {
        let waits = self.state.is_some_and(TaskState::is_interrupted);
        let ended = self.state.is_some_and(TaskState::is_terminal);
        self.answered || ended || waits && self.follows != Follows::Subscription
    }

    /// What follows `error`; `quiet` is how long the agent has been unreachable, `chance` is in `0..1`.
    pub(super) fn lost(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Next {
        if self.is_over() {
            return Next::End;
        }
        // Before the agent has named the task, it is unknown whether it has the message.
        if !error.is_transient()
            || self.task.is_none()
            || !self.begun && self.follows != Follows::Subscription
        {
            return Next::Fail(error);
        }
        match self.retry(error, policy, quiet, chance) {
            Ok(retry) => Next::Retry(retry),
            Err(error) => Next::Fail(error),
        }
    }

    /// Sends a message again after `error` only if it cannot have arrived.
    pub(super) fn unreached(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Result<Retry, ClientError> {
        if error.is_unaccepted() { self.retry(error, policy, quiet, chance) } else { Err(error) }
    }

    fn retry(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Result<Retry, ClientError> {
        let attempt = self.attempt.saturating_add(1);
        let wait = policy.wait(attempt, quiet, &error, chance).ok_or(error)?;
        self.attempt = attempt;
        Ok(Retry { attempt, wait })
    }

    /// The agent is reachable: counts attempts from 0 again.
    pub(super) const fn reached(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
#[path = "stream_position_tests.rs"]
mod tests;

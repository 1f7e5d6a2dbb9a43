//! How far a caller has followed a task: what is new to it, and what to do when the connection is lost. Pure.

use std::time::Duration;

use super::error::ClientError;
use super::reconnect::Reconnect;
use super::sse::Numbered;
use super::steps::StreamEvent;
use crate::model::{Event, TaskState};

/// How far a caller has followed a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    task: Option<String>,
    /// The number of the newest event.
    last: Option<u64>,
    /// The newest state that was told.
    state: Option<TaskState>,
    /// Whether the caller knows anything of the task yet.
    begun: bool,
    /// Whether the agent answered with a message instead of a task.
    answered: bool,
    follows: Follows,
    /// Tries to reconnect since something new came or a connection held.
    attempt: u32,
}

/// What began it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// A message that makes a task.
    NewTask,
    /// A message to a task that waits; it may say so first.
    WaitingTask,
    /// A subscription, which outlives a task's waiting.
    Subscription,
}

/// What to do about a lost connection.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing more can come.
    End,
    /// Give up.
    Fail(ClientError),
    /// Take it up again.
    Again(Again),
}

/// Another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Again {
    /// Which one it is, from 1.
    pub(super) attempt: u32,
    /// How long to wait before it.
    pub(super) wait: Duration,
}

impl Position {
    /// Before a message is sent; `task` is the one that it goes on with.
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

    /// Whether the agent numbers its events, as far as is known.
    pub(super) const fn is_numbered(&self) -> bool {
        self.last.is_some()
    }

    /// Takes an event in; `None` if the caller has it already. `reopens` says that it is the first of a connection
    /// that was taken up again.
    pub(super) fn take(&mut self, incoming: Numbered, reopens: bool) -> Option<StreamEvent> {
        let Numbered { seq, event } = incoming;
        let is_task = matches!(event, Event::Task(_));
        let opens = is_task
            && (reopens || !self.begun || self.follows == Follows::Subscription && self.state.is_none());
        if self.is_known(seq, &event, opens && !reopens) {
            return None;
        }
        // A task told anew is no progress: an agent that breaks off behind it each time is given up on.
        if !is_task {
            self.attempt = 0;
        }
        let resumed = is_task && self.begun;
        self.note(seq, &event);
        Some(StreamEvent { seq, event, resumed })
    }

    /// Whether the caller has an event already. The opening of a connection that the caller asked for never counts as
    /// known; nor does the end of a task, for nobody would follow it any more: if its number says otherwise, the
    /// agent counts anew.
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
        // A task that waited says so first when it is gone on with.
        let is_opening = !self.begun && matches!(event, Event::Task(_));
        let is_past = is_opening && self.follows == Follows::WaitingTask;
        let state = event.state().filter(|state| !is_past || state.is_terminal());
        self.state = state.or(self.state);
        self.begun = true;
    }

    /// Whether the task needs no following any more.
    pub(super) fn is_over(&self) -> bool {
        let waits = self.state.is_some_and(TaskState::is_interrupted);
        let ended = self.state.is_some_and(TaskState::is_terminal);
        self.answered || ended || waits && self.follows != Follows::Subscription
    }

    /// What to do after `error`; `quiet` is how long the agent has been out of reach, `chance` in `0..1`.
    pub(super) fn lost(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Next {
        if self.is_over() {
            // It broke off after the last word.
            return Next::End;
        }
        // Before the agent has said which task it made, it is unknown whether it has the message.
        if !error.may_pass() || self.task.is_none() || !self.begun && self.follows != Follows::Subscription {
            return Next::Fail(error);
        }
        match self.again(error, policy, quiet, chance) {
            Ok(again) => Next::Again(again),
            Err(error) => Next::Fail(error),
        }
    }

    /// Whether to send a message again after `error`: only if nothing of it can have arrived.
    pub(super) fn unreached(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Result<Again, ClientError> {
        if error.is_unreached() { self.again(error, policy, quiet, chance) } else { Err(error) }
    }

    fn again(
        &mut self,
        error: ClientError,
        policy: &Reconnect,
        quiet: Duration,
        chance: f64,
    ) -> Result<Again, ClientError> {
        let attempt = self.attempt.saturating_add(1);
        let wait = policy.wait(attempt, quiet, &error, chance).ok_or(error)?;
        self.attempt = attempt;
        Ok(Again { attempt, wait })
    }

    /// The agent is there: tries count anew.
    pub(super) const fn reached(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
#[path = "position_tests.rs"]
mod tests;

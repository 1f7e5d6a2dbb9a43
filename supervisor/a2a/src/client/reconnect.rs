//! The policy for reconnecting.

use std::time::Duration;

use super::error::ClientError;

/// The policy for reconnecting.
///
/// The client sends a message again only if the agent cannot have acted on it: there was no connection, or the server refused
/// it for now (503 with `Retry-After`). It follows a known task after every failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    /// Most attempts until a new event arrives or a connection is stable; 0 disables reconnecting.
    pub attempts: u32,
    /// The wait before the first attempt. Each further wait is twice as long; up to half of it is random.
    pub first_wait: Duration,
    /// The longest wait, unless the agent asks for a longer one.
    pub longest_wait: Duration,
    /// The time after a lost connection within which the client reconnects. A silent time before does not count.
    pub give_up_after: Duration,
    /// The interval for polling a task if the agent does not support subscriptions.
    pub poll: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(10),
            give_up_after: Duration::from_mins(5),
            poll: Duration::from_secs(1),
        }
    }
}

impl Reconnect {
    /// No reconnecting.
    pub fn off() -> Self {
        Self { attempts: 0, ..Self::default() }
    }

    /// The wait before an attempt, counted from 1, when the agent has been unreachable for `quiet`; `None` to give up.
    /// `chance` is in `0..1`.
    pub(super) fn wait(
        &self,
        attempt: u32,
        quiet: Duration,
        error: &ClientError,
        chance: f64,
    ) -> Option<Duration> {
        if attempt > self.attempts || quiet > self.give_up_after {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1).min(31));
        let longest = self.first_wait.saturating_mul(doubled).min(self.longest_wait);
        let half = longest / 2;
        let wait = half + half.mul_f64(chance.clamp(0.0, 1.0));
        let wait = wait.max(error.retry_after().unwrap_or_default());
        (quiet.saturating_add(wait) <= self.give_up_after).then_some(wait)
    }
}

#[cfg(test)]
#[path = "reconnect_tests.rs"]
mod tests;

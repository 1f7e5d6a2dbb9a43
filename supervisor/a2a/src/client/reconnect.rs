//! When and how a lost connection is taken up again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::error::ClientError;

/// When and how a lost connection is taken up again.
///
/// A message is sent again only if there was no connection at all: otherwise the agent may have it already, and
/// would do the work twice. A task that is known is followed further, whatever broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    /// How often it is tried until something new comes or a connection holds for a while; 0 switches it off.
    pub attempts: u32,
    /// The wait before the first try. Each further one is twice as long; up to half of it is left to chance.
    pub first_wait: Duration,
    /// The longest wait, unless the agent asks for a longer one.
    pub longest_wait: Duration,
    /// How long after the connection was lost it is tried at all. How long nothing new had come before does not
    /// count: an agent may work in silence.
    pub give_up_after: Duration,
    /// How often a task is asked for that the agent lets nobody follow.
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
    /// The first failure is final.
    pub fn off() -> Self {
        Self { attempts: 0, ..Self::default() }
    }

    /// The wait before try number `attempt`, which counts from 1, after `quiet` out of the agent's reach; `None` to
    /// give up. `chance` is in `0..1`.
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

/// A number in `0..1` that differs between clients: those who lost the same server must not all come back at
/// once.
pub(super) fn chance() -> f64 {
    // Hashers are seeded at random; 32 bits are plenty for a wait.
    let bits = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
#[path = "reconnect_tests.rs"]
mod tests;

//! When to retry; pure.

use std::time::Duration;

use crate::chat::{ModelError, ModelErrorKind};

/// How often and how long a turn is tried before it fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub max_attempts: u32,
    /// The wait before the second attempt; each later one doubles it.
    pub base: Duration,
    /// The longest wait, unless the provider asks for more.
    pub cap: Duration,
    /// The time after the first attempt in which further ones may begin.
    pub total: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(20),
            total: Duration::from_mins(2),
        }
    }
}

impl RetryPolicy {
    /// How long to wait after the `failed`th attempt failed with `error`, or `None` to give up.
    ///
    /// `elapsed` counts from the first attempt; `jitter` is in `0..1`.
    pub fn next(&self, failed: u32, elapsed: Duration, error: &ModelError, jitter: f64) -> Option<Duration> {
        if failed >= self.max_attempts || !is_transient(error.kind) {
            return None;
        }
        let wait = self.wait(failed, error.retry_after, jitter);
        (elapsed.saturating_add(wait) <= self.total).then_some(wait)
    }

    /// Half of the back-off is fixed, half is jitter. A wait that the provider asks for also gets jitter, so that clients
    /// do not retry at the same time.
    fn wait(&self, failed: u32, asked: Option<Duration>, jitter: f64) -> Duration {
        let doublings = failed.saturating_sub(1).min(16);
        let half = self.base.saturating_mul(1 << doublings).min(self.cap) / 2;
        let spread = half.mul_f64(jitter.clamp(0.0, 1.0));
        asked.map_or(half, |asked| asked.max(half)).saturating_add(spread)
    }
}

/// Whether the same request may succeed a little later.
pub fn is_transient(kind: ModelErrorKind) -> bool {
    use ModelErrorKind::{Overloaded, RateLimited, Transport, Truncated};
    matches!(kind, RateLimited | Overloaded | Transport | Truncated)
}

/// Whether another model may succeed where this one failed.
///
/// True for faults of the provider (key, quota, 5xx, network, protocol, deadline); false for faults of the request (400,
/// context overflow, content filter), which must not be hidden, and for a cancellation.
pub fn is_providers_fault(kind: ModelErrorKind) -> bool {
    use ModelErrorKind::{Auth, Deadline, Protocol};
    is_transient(kind) || matches!(kind, Auth | Protocol | Deadline)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        let retry_after = retry_after.map(Duration::from_secs);
        ModelError { kind, model: "p/m".into(), message: String::new(), retry_after }
    }

    #[test]
    fn schedule() {
        use ModelErrorKind::{Auth, ContextOverflow, Overloaded, RateLimited, Transport, Truncated};
        let policy = RetryPolicy {
            max_attempts: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(4),
            total: Duration::from_mins(1),
        };
        // failed attempts, elapsed s, kind, retry-after s, jitter, expected ms
        let table = [
            (1, 0, Overloaded, None, 0.0, Some(500)),
            (1, 0, Overloaded, None, 1.0, Some(1000)),
            (2, 0, Transport, None, 0.0, Some(1000)),
            (3, 0, Truncated, None, 0.5, Some(3000)),
            (4, 0, RateLimited, None, 1.0, Some(4000)),
            (5, 0, RateLimited, None, 0.0, None),
            (1, 0, RateLimited, Some(7), 0.0, Some(7000)),
            (1, 0, RateLimited, Some(7), 1.0, Some(7500)),
            (1, 0, RateLimited, Some(0), 0.0, Some(500)),
            (1, 0, RateLimited, Some(61), 0.0, None),
            (1, 59, Overloaded, None, 1.0, Some(1000)),
            (1, 60, Overloaded, None, 0.0, None),
            (1, 0, Auth, None, 0.0, None),
            (1, 0, ContextOverflow, None, 0.0, None),
        ];
        for (failed, elapsed, kind, asked, jitter, expected) in table {
            let wait = policy.next(failed, Duration::from_secs(elapsed), &error(kind, asked), jitter);
            assert_eq!(
                wait,
                expected.map(Duration::from_millis),
                "{failed} {elapsed} {kind:?} {asked:?} {jitter}"
            );
        }
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        let policy = RetryPolicy {
            max_attempts: u32::MAX,
            base: Duration::MAX,
            cap: Duration::MAX,
            total: Duration::MAX,
        };
        let wait =
            policy.next(u32::MAX - 1, Duration::MAX, &error(ModelErrorKind::Overloaded, Some(u64::MAX)), 9.0);
        assert!(wait.is_some());
    }

    #[test]
    fn which_kinds_move_on() {
        use ModelErrorKind::{
            Auth, Cancelled, ContentFilter, ContextOverflow, Deadline, InvalidRequest, Overloaded, Protocol,
            RateLimited, Transport, Truncated,
        };
        for kind in [RateLimited, Overloaded, Transport, Truncated] {
            assert!(is_transient(kind) && is_providers_fault(kind), "{kind:?}");
        }
        for kind in [Auth, Protocol, Deadline] {
            assert!(!is_transient(kind) && is_providers_fault(kind), "{kind:?}");
        }
        for kind in [ContextOverflow, InvalidRequest, ContentFilter, Cancelled] {
            assert!(!is_transient(kind) && !is_providers_fault(kind), "{kind:?}");
        }
    }
}

//! Counters of deliveries, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::retry::Verdict;

/// Deliveries since the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PushCounts {
    /// Notifications that arrived.
    pub delivered: u64,
    /// Failed attempts that were retried.
    pub failed_attempts: u64,
    /// Notifications that the receiver refused, or whose address is not allowed.
    pub refused: u64,
    /// Configurations that were given up because their receiver failed for too long.
    pub given_up: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    delivered: AtomicU64,
    failed_attempts: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl Counts {
    pub(super) fn attempt(&self, verdict: &Verdict) {
        let counter = match verdict {
            Verdict::Delivered => &self.delivered,
            Verdict::Retry(_) => &self.failed_attempts,
            Verdict::Skip | Verdict::Stop => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn gave_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> PushCounts {
        PushCounts {
            delivered: self.delivered.load(Ordering::Relaxed),
            failed_attempts: self.failed_attempts.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            given_up: self.given_up.load(Ordering::Relaxed),
        }
    }
}

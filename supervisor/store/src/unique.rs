//! Texts that identify a call or a process.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::random;

/// A text that no other call and no other process makes.
pub(crate) fn unique() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static PROCESS: std::sync::LazyLock<String> = std::sync::LazyLock::new(random::text);
    format!("{}-{}", *PROCESS, CALLS.fetch_add(1, Ordering::Relaxed))
}

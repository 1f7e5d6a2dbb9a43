//! Texts that identify a call or a process.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

/// A text that no other call and no other process makes.
pub(crate) fn unique() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static PROCESS: LazyLock<u128> = LazyLock::new(random);
    format!("{:032x}-{}", *PROCESS, CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The keys of the standard hash map are random for each process.
fn random() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(Timestamp::now().as_nanosecond()));
    half() << 64 | half()
}

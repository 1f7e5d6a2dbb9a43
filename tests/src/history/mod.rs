//! What happened to tasks: the commits that a store accepted, in its order, and what clients read. [`check()`] finds contradictions.

mod check;
mod monitor;
#[cfg(test)]
mod tests;

pub use check::{Report, check};
pub use monitor::Monitor;

/// A time in microseconds since 1970.
pub type Micros = u64;

/// The current time.
pub fn now() -> Micros {
    let elapsed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// The right by which a commit was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The fencing token of the lease.
    pub token: u64,
    /// The number of the commit under this token.
    pub number: u64,
}

/// A commit that the store accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// When the store carried it out.
    pub at: Micros,
    /// The id of the task.
    pub task: String,
    /// The process that made it.
    pub sender: String,
    /// `None` for a commit that needs no lease.
    pub fence: Option<Fence>,
    /// The state of the task in the words of A2A 0.3, if the commit sets it.
    pub state: Option<String>,
}

/// What the store did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreRecord {
    /// An accepted commit.
    Commit(Commit),
    /// Commits just before this time may be missing in the history.
    Gap(Micros),
}

/// A state of a task as a replica reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// When the client sent the request.
    pub begin: Micros,
    /// When it had the response.
    pub end: Micros,
    /// The replica that answered.
    pub replica: String,
    /// The id of the task.
    pub task: String,
    /// The reported state in the words of A2A 0.3.
    pub state: String,
}

/// A time in which a replica could not reach the store, so that what it reported may be old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// The replica, as in [`Read::replica`]; `None` for all of them.
    pub replica: Option<String>,
    /// When it began.
    pub begin: Micros,
    /// When the replica followed the store again.
    pub end: Micros,
}

/// Everything that was recorded.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// In the order of the store.
    pub store: Vec<StoreRecord>,
    /// The reads of all clients. Those of one task do not overlap.
    pub reads: Vec<Read>,
    /// When replicas were cut off.
    pub isolations: Vec<Isolation>,
}

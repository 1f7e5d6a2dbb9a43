//! Where conversations, tasks and event logs live.

mod types;

pub use types::{Commit, LoggedEvent, Saved, Snapshot, Store, StoreError, TaskFilter, TaskPhase, TaskRecord};

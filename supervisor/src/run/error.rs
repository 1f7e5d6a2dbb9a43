//! Why a request about a task was rejected.

use caipe_store::{StoreError, TaskPhase};

use crate::binding;

/// The most active runs: a queue before a model that is slower than its callers would only grow.
pub(super) const MOST_RUNS: usize = 4096;

/// Why a request about a task was rejected.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such task.
    #[error("task {0} not found")]
    UnknownTask(String),
    /// The task has ended or is active, and accepts no message.
    #[error(
        "task {task} is {} and takes no message; send it without taskId to go on in its context", binding::state(*.phase)
    )]
    NotOpen { task: String, phase: TaskPhase },
    /// The task has ended.
    #[error("task {task} is {} and cannot be canceled", binding::state(*.phase))]
    NotCancelable { task: String, phase: TaskPhase },
    /// The message names a task of another conversation.
    #[error("message.contextId: task {task} belongs to another context")]
    ContextMismatch { task: String },
    /// The message answers, but no question waits in its context.
    #[error(
        "no question waits in this context, so nothing was decided; it was answered before, or the next question was not asked yet"
    )]
    NothingWaits,
    /// Too many runs are active.
    #[error("{MOST_RUNS} runs are under way already; try again later")]
    Busy,
    /// The message is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

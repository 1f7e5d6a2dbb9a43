//! Push notifications of this supervisor's tasks: the store of their configurations, and their delivery after a restart.

mod store;

use std::sync::Arc;

use caipe_a2a::server::Pushes;

use crate::run::{RunError, Runs};

pub use store::StoredPushes;

/// Delivers the pending notifications of these tasks, and deletes the configurations of removed tasks.
pub async fn deliver_pending(pushes: Arc<Pushes>, runs: Arc<Runs>, tasks: Vec<String>) {
    for task in tasks {
        if !pushes.serves(&task) {
            continue;
        }
        match runs.log(&task).await {
            Ok(log) => pushes.follow(&task, &log),
            Err(RunError::UnknownTask(_)) => {
                if let Err(error) = pushes.forget(&task).await {
                    tracing::warn!(task, %error, "failed to delete the push configurations of a removed task");
                }
            }
            Err(error) => {
                tracing::warn!(task, %error, "failed to read a task with pending push notifications");
            }
        }
    }
}

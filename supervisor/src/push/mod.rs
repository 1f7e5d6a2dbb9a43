//! Push notifications of this supervisor's tasks: the store of their configurations, and the deliveries that no process does.

mod store;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::server::{PushStoreError, Pushes, Registration};
use tokio::time::{MissedTickBehavior, interval};

use crate::run::{RunError, Runs};

pub use store::StoredPushes;

/// How often a process looks for notifications that no process delivers, and confirms that it delivers its own.
const INTERVAL: Duration = Duration::from_secs(1);

/// Delivers the notifications that no other process delivers, until this process stops. In a store that no other process uses,
/// these are those of the former process.
pub async fn deliver_abandoned(pushes: Arc<Pushes>, runs: Arc<Runs>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = HashSet::new();
    let delivering = async {
        loop {
            ticks.tick().await;
            match pushes.unserved().await {
                Ok(unserved) => {
                    take_all(&pushes, &runs, unserved, &mut failed).await;
                    if !runs.has_shared_store() {
                        return;
                    }
                }
                Err(error) => tracing::debug!(%error, "failed to look for undelivered push notifications"),
            }
        }
    };
    tokio::select! {
        () = delivering => {}
        () = runs.halted() => {}
    }
}

/// Takes each of these. `failed` has the tasks whose failure was logged.
async fn take_all(pushes: &Pushes, runs: &Runs, unserved: Vec<Registration>, failed: &mut HashSet<String>) {
    for registration in unserved {
        let task = registration.task.clone();
        match take(pushes, runs, registration).await {
            Ok(()) => {}
            Err(TakeError::Run(RunError::UnknownTask(_))) => {
                if let Err(error) = pushes.forget(&task).await {
                    tracing::warn!(task, %error, "failed to delete the push configurations of a removed task");
                }
            }
            Err(error) => {
                if failed.insert(task.clone()) {
                    tracing::warn!(task, %error, "failed to take over push notifications");
                }
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Push(#[from] PushStoreError),
}

/// Delivers for a configuration, unless its task waits and has no new events: another process may continue it.
async fn take(pushes: &Pushes, runs: &Runs, registration: Registration) -> Result<(), TakeError> {
    let task = registration.task.clone();
    let is_due = !runs.has_shared_store() || runs.has_events(&task, registration.delivered).await?;
    if is_due && pushes.take(registration).await? {
        pushes.follow(&task, &runs.log(&task).await?);
    }
    Ok(())
}

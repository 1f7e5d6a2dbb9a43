//! The pauses of a run while the store is not available.

use std::time::Duration;

use caipe_store::StoreError;
use tokio::time::sleep;

/// The first and the longest pause before a commit is repeated.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The pauses between the attempts of one write.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(PAUSE.0)
    }
}

impl Pauses {
    pub(super) async fn wait(&mut self, task: &str, error: &StoreError) {
        tracing::error!(task, %error, retry_in = ?self.0, "a run waits because it cannot be saved");
        sleep(self.0).await;
        self.0 = PAUSE.1.min(self.0 * 2);
    }
}

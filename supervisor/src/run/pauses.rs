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
        tracing::error!(task, %error, retry_in = ?self.0, "a run waits because its store is not available");
        sleep(self.0).await;
        self.0 = PAUSE.1.min(self.0 * 2);
    }
}

/// Repeats work of a run that fails because the store is not available.
pub(super) async fn until_available<T, F: Future<Output = Result<T, StoreError>>>(
    task: &str,
    mut work: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let mut pauses = Pauses::default();
    loop {
        match work().await {
            Err(error) if error.is_transient() => pauses.wait(task, &error).await,
            outcome => return outcome,
        }
    }
}

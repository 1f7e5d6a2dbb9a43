//! What the configuration of a server does not guarantee, read now and then.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// How often the configuration is read.
const INTERVAL: Duration = Duration::from_secs(30);

/// The restrictions that were found last.
#[derive(Debug, Default)]
pub(crate) struct RestrictionCache(Mutex<Option<Checked>>);

#[derive(Debug)]
struct Checked {
    at: Instant,
    found: Vec<String>,
}

impl RestrictionCache {
    /// The restrictions, which `read` reads if the last ones are old. If it fails, the last ones count. Concurrent callers
    /// wait for one read.
    pub(crate) async fn get(&self, read: impl Future<Output = Option<Vec<String>>>) -> Vec<String> {
        let mut checked = self.0.lock().await;
        let fresh = checked.as_ref().filter(|last| last.at.elapsed() < INTERVAL);
        if fresh.is_none()
            && let Some(found) = read.await
        {
            *checked = Some(Checked { at: Instant::now(), found });
        }
        checked.as_ref().map(|last| last.found.clone()).unwrap_or_default()
    }
}

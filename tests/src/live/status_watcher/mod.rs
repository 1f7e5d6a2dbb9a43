//! Compares the status of a resource with its pods, all the time.

mod contradictions;
mod observer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::observer::Observer;
use super::Live;

/// Time between two samples.
const PAUSE: Duration = Duration::from_millis(100);

/// The false statements of a status, each with its longest uninterrupted duration.
#[derive(Debug, Default)]
pub struct Lag {
    /// By statement.
    pub worst: BTreeMap<String, Duration>,
    /// Number of complete samples.
    pub samples: usize,
}

impl Lag {
    /// The statement that was false for the longest time.
    pub fn longest(&self) -> Option<(&str, Duration)> {
        let longest = self.worst.iter().max_by_key(|(_, lasted)| **lasted)?;
        Some((longest.0.as_str(), *longest.1))
    }

    /// Fails if a statement was false for longer.
    pub fn within(&self, limit: Duration) -> Result<()> {
        ensure!(self.samples > 10, "the status was seen only {} times", self.samples);
        let longer: BTreeMap<_, _> = self.worst.iter().filter(|(_, lasted)| **lasted > limit).collect();
        ensure!(longer.is_empty(), "the status was wrong for more than {limit:?}: {longer:#?}");
        Ok(())
    }
}

/// Samples a supervisor until it is stopped.
#[derive(Debug)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
    work: tokio::task::JoinHandle<Lag>,
}

impl Watcher {
    /// Starts to watch a supervisor.
    pub async fn start(live: &Live, supervisor: &str) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let observer = Observer::on(live, supervisor).await?;
        let work = tokio::spawn(watch(observer, Arc::clone(&stop)));
        Ok(Self { stop, work })
    }

    /// Stops, and returns the false statements.
    pub async fn stop(self) -> Result<Lag> {
        self.stop.store(true, Ordering::Relaxed);
        self.work.await.context("the watcher panicked")
    }
}

async fn watch(observer: Observer, stop: Arc<AtomicBool>) -> Lag {
    let (mut lag, mut since) = (Lag::default(), BTreeMap::<String, Instant>::new());
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // While the API server is down there is no status to compare.
        let wrong = match observer.observe().await {
            Ok(sample) => {
                lag.samples += 1;
                contradictions::contradictions(&sample)
            }
            Err(_) => Vec::new(),
        };
        since.retain(|what, _| wrong.contains(what));
        for what in wrong {
            let first = *since.entry(what.clone()).or_insert(begun);
            let longest = lag.worst.entry(what).or_default();
            *longest = (*longest).max(first.elapsed());
        }
        tokio::time::sleep(PAUSE.saturating_sub(begun.elapsed())).await;
    }
    lag
}

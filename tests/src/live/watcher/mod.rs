//! Holds what a resource says at each moment against what can be seen of its pods.

mod observed;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::observed::Eyes;
use super::Live;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// The false statements of a status, each with its longest uninterrupted duration.
#[derive(Debug, Default)]
pub struct Lag {
    /// By what it was.
    pub worst: BTreeMap<String, Duration>,
    /// How often all could be seen.
    pub looks: usize,
}

impl Lag {
    /// What was wrong for the longest time.
    pub fn longest(&self) -> Option<(&str, Duration)> {
        let longest = self.worst.iter().max_by_key(|(_, lasted)| **lasted)?;
        Some((longest.0.as_str(), *longest.1))
    }

    /// Nothing was wrong for longer.
    pub fn within(&self, limit: Duration) -> Result<()> {
        ensure!(self.looks > 10, "the status was seen only {} times", self.looks);
        let longer: BTreeMap<_, _> = self.worst.iter().filter(|(_, lasted)| **lasted > limit).collect();
        ensure!(longer.is_empty(), "the status was wrong for more than {limit:?}: {longer:#?}");
        Ok(())
    }
}

/// Somebody who looks all the time.
#[derive(Debug)]
pub struct Watcher {
    stop: Arc<AtomicBool>,
    work: tokio::task::JoinHandle<Lag>,
}

impl Watcher {
    /// Begins to look at a supervisor.
    pub async fn begin(live: &Live, supervisor: &str) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let eyes = Eyes::on(live, supervisor).await?;
        let work = tokio::spawn(watch(eyes, Arc::clone(&stop)));
        Ok(Self { stop, work })
    }

    /// Ends, and says what was wrong.
    pub async fn end(self) -> Result<Lag> {
        self.stop.store(true, Ordering::Relaxed);
        self.work.await.context("the watcher panicked")
    }
}

async fn watch(eyes: Eyes, stop: Arc<AtomicBool>) -> Lag {
    let (mut lag, mut since) = (Lag::default(), BTreeMap::<String, Instant>::new());
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // While the API server is away nobody can say anything wrong.
        let wrong = match eyes.observe().await {
            Ok(observed) => {
                lag.looks += 1;
                truth::contradictions(&observed)
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

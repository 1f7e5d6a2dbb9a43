//! Reports when one of some files has changed or is gone.
//!
//! The directories are watched, not the files: an editor replaces a file by another one, and a mounted `ConfigMap` replaces
//! the directory behind the link `..data`. The files are also checked every two seconds, because some changes cause no
//! event: behind a link to another directory, on a network file system, or if the system has no watches left.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How often the files are checked if there is no event.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long a file must be missing to count as deleted: an editor may remove it before it writes the new one.
const MISSING: Duration = Duration::from_secs(1);

/// How long there must be no event for a write to count as finished.
const QUIET: Duration = Duration::from_millis(30);

/// The most waits for further events, because writes may never end.
const MOST_WAITS: u32 = 10;

/// Watches files.
#[derive(Debug)]
pub struct FileWatch {
    watcher: Option<RecommendedWatcher>,
    /// Wakes at an event in a directory. Its content does not matter, because all files are checked then.
    events: Arc<Notify>,
    seen: BTreeMap<PathBuf, Option<Fingerprint>>,
    /// When a file that existed was first missing.
    missing: BTreeMap<PathBuf, Instant>,
}

/// Differs for two contents of a file, without reading it.
type Fingerprint = (u64, u64, u64, (i64, i64), (i64, i64));

impl FileWatch {
    /// Watches the file from now on, whether it exists or not.
    pub fn new(path: &Path) -> Self {
        let events = Arc::new(Notify::new());
        let waker = Arc::clone(&events);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| event.kind.is_access()) {
                waker.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "failed to watch files; checking every two seconds instead");
        });
        let mut watch =
            Self { watcher: watcher.ok(), events, seen: BTreeMap::new(), missing: BTreeMap::new() };
        watch.add(path, fingerprint(path));
        watch
    }

    /// Watches these files and no others. A new one counts as changed, because it may have changed since it was read.
    pub fn set(&mut self, paths: &[PathBuf]) {
        self.seen.retain(|path, _| paths.contains(path));
        for path in paths {
            if !self.seen.contains_key(path) {
                self.add(path, None);
            }
        }
    }

    fn add(&mut self, path: &Path, seen: Option<Fingerprint>) {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive)
        {
            let path = path.display();
            tracing::warn!(%path, %error, "failed to watch a file; checking every two seconds instead");
        }
        self.seen.insert(path.to_owned(), seen);
    }

    /// Waits until a file differs from the last call. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            let mut any = false;
            for (path, seen) in &mut self.seen {
                let now = fingerprint(path);
                let gone = now.is_none() && seen.is_some();
                if !gone {
                    self.missing.remove(path);
                } else if self.missing.entry(path.clone()).or_insert_with(Instant::now).elapsed() < MISSING {
                    continue;
                }
                if now != *seen {
                    *seen = now;
                    any = true;
                }
            }
            if any {
                return;
            }
            let interval = if self.missing.is_empty() { INTERVAL } else { MISSING };
            if timeout(interval, self.events.notified()).await.is_ok() {
                self.settle().await;
            }
        }
    }

    /// Waits until there are no more events.
    async fn settle(&self) {
        for _ in 0..MOST_WAITS {
            if timeout(QUIET, self.events.notified()).await.is_err() {
                return;
            }
        }
    }
}

fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let file = std::fs::metadata(path).ok()?;
    Some((
        file.dev(),
        file.ino(),
        file.len(),
        (file.mtime(), file.mtime_nsec()),
        (file.ctime(), file.ctime_nsec()),
    ))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;

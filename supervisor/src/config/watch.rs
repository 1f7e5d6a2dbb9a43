//! Reports when one of some files has changed or is gone.
//!
//! The directories are watched, not the files: an editor puts another file in the place of one, and a mounted `ConfigMap`
//! another directory behind the link `..data`. The files are also checked every two seconds, for the changes that no notice
//! comes of: behind a link to elsewhere, on a network file system, or where the system has no notices left to give.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

/// How often the files are read if no notice of a change comes.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long a file must be missing to count as deleted: an editor may remove it before it writes the new one.
const MISSING: Duration = Duration::from_secs(1);

/// How long no notice must come for a write to count as finished.
const QUIET: Duration = Duration::from_millis(30);

/// The most waits for further notices, because writes may never end.
const MOST_WAITS: u32 = 10;

/// Files that are watched.
#[derive(Debug)]
pub struct FileWatch {
    notices: Option<Receiver>,
    seen: BTreeMap<PathBuf, Option<Print>>,
    /// Since when a file is missing that was there before.
    missing: BTreeMap<PathBuf, Instant>,
}

/// What tells one content of a file from another, without reading it.
type Print = (u64, u64, u64, (i64, i64), (i64, i64));

impl FileWatch {
    /// Watches the file from now on, whether it is there or not. Must be called within a Tokio runtime.
    pub fn new(path: &Path) -> Self {
        let notices = notices().inspect_err(|error| {
            tracing::warn!(%error, "failed to watch files; looking every two seconds instead");
        });
        let mut watch = Self { notices: notices.ok(), seen: BTreeMap::new(), missing: BTreeMap::new() };
        watch.add(path, print(path));
        watch
    }

    /// Watches these files and no others. One that was not watched before counts as changed, for it may have been since
    /// it was read.
    pub fn set(&mut self, paths: &[PathBuf]) {
        self.seen.retain(|path, _| paths.contains(path));
        for path in paths {
            if !self.seen.contains_key(path) {
                self.add(path, None);
            }
        }
    }

    fn add(&mut self, path: &Path, seen: Option<Print>) {
        if let Some(Err(error)) = self.notices.as_ref().map(|notices| watch_directory(notices, path)) {
            let path = path.display();
            tracing::warn!(%path, %error, "failed to watch a file; looking every two seconds instead");
        }
        self.seen.insert(path.to_owned(), seen);
    }

    /// Waits until a file holds something else than when it was asked last. Dropping this loses nothing.
    pub async fn changed(&mut self) {
        loop {
            let mut any = false;
            for (path, seen) in &mut self.seen {
                let now = print(path);
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
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = noticed(self.notices.as_ref()) => self.settle().await,
            }
        }
    }

    /// Waits until no more notices come.
    async fn settle(&self) {
        for _ in 0..MOST_WAITS {
            tokio::time::sleep(QUIET).await;
            if !self.notices.as_ref().is_some_and(take) {
                return;
            }
        }
    }
}

fn print(path: &Path) -> Option<Print> {
    let file = std::fs::metadata(path).ok()?;
    Some((
        file.dev(),
        file.ino(),
        file.len(),
        (file.mtime(), file.mtime_nsec()),
        (file.ctime(), file.ctime_nsec()),
    ))
}

fn notices() -> io::Result<Receiver> {
    let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    // What tokio calls a pipe is whatever can be waited for and read from.
    Receiver::from_owned_fd_unchecked(notices)
}

fn watch_directory(notices: &Receiver, path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wanted = WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::ATTRIB;
    inotify::add_watch(notices, directory, wanted)?;
    Ok(())
}

/// Waits for notices, and takes all that there are; for ever if none can come.
async fn noticed(notices: Option<&Receiver>) {
    let Some(notices) = notices else { return std::future::pending().await };
    if notices.readable().await.is_err() {
        return std::future::pending().await;
    }
    take(notices);
}

/// Takes all notices that there are; whether there were any. Their content does not matter, because the files are checked anyway.
fn take(notices: &Receiver) -> bool {
    let (mut buffer, mut any) = ([0; 4096], false);
    while notices.try_read(&mut buffer).is_ok_and(|read| read > 0) {
        any = true;
    }
    any
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;

//! Tells when a file holds something new.
//!
//! The directory is watched, not the file: an editor puts another file in its place, and a mounted `ConfigMap` another
//! directory behind the link `..data`. The file is also looked at every two seconds, for the changes that no notice
//! comes of: behind a link to elsewhere, on a network file system, or where the system has no notices left to give.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// How often the file is looked at without a notice.
const LOOK: Duration = Duration::from_secs(2);

/// How long it must be quiet for whoever writes to be taken to be done.
const QUIET: Duration = Duration::from_millis(30);

/// Notices that are waited out at most, one after the other: somebody may write for ever.
const MOST_WAITS: u32 = 10;

/// A file that is watched.
#[derive(Debug)]
pub struct FileWatch {
    path: PathBuf,
    notices: Option<Receiver>,
    seen: Option<Print>,
}

/// What tells one content of a file from another, without reading it.
type Print = (u64, u64, u64, (i64, i64), (i64, i64));

impl FileWatch {
    /// Watches the file from now on, whether it is there or not. Must be called within a Tokio runtime.
    pub fn new(path: &Path) -> Self {
        let notices = notices(path).inspect_err(|error| {
            tracing::warn!(path = %path.display(), %error, "failed to watch; looking every two seconds instead");
        });
        Self { path: path.to_owned(), notices: notices.ok(), seen: print(path) }
    }

    /// Waits until the file holds something else than when it was asked last. Dropping this loses nothing.
    pub async fn changed(&mut self) {
        loop {
            let now = print(&self.path);
            // A file that is gone is about to come back, most likely.
            if now.is_some() && now != self.seen {
                self.seen = now;
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = noticed(self.notices.as_ref()) => self.settle().await,
            }
        }
    }

    /// Waits until no more notices come: whoever writes is then done.
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

fn notices(path: &Path) -> io::Result<Receiver> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let wanted = WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::ATTRIB;
    inotify::add_watch(&notices, directory, wanted)?;
    // What tokio calls a pipe is whatever can be waited for and read from.
    Receiver::from_owned_fd_unchecked(notices)
}

/// Waits for notices, and takes all that there are; for ever if none can come.
async fn noticed(notices: Option<&Receiver>) {
    let Some(notices) = notices else { return std::future::pending().await };
    if notices.readable().await.is_err() {
        return std::future::pending().await;
    }
    take(notices);
}

/// Takes all notices that there are; whether there were any. What they say does not matter: the file is looked at anyway.
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

//! The directory of one call: holds the files of the command and its temporary files, and is removed with the call.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use caipe_engine::VOLUME;
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, chmodat, flock, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::request::{TEMPORARY, WORK};
use crate::tools::ShellVolume;

/// What the names of such directories begin with.
const PREFIX: &str = "shell-call-";
const NAME_BYTES: usize = 255;
/// How long a directory counts as new.
const NEW: Duration = Duration::from_mins(1);

/// A private directory. Dropping it removes it, with all that the command has left there.
#[derive(Debug)]
pub(super) struct CallDirectory {
    pub(super) path: PathBuf,
    /// The command's user, where the supervisor is root.
    uid: Option<u32>,
    /// Locked while this process uses the directory.
    _lock: OwnedFd,
}

impl CallDirectory {
    /// Makes a directory below `parent`.
    pub(super) fn create(parent: &Path, uid: Option<u32>) -> io::Result<Self> {
        // Commands that run as another user pass it.
        let mode = if uid.is_some() { 0o711 } else { 0o700 };
        DirBuilder::new().mode(mode).recursive(true).create(parent)?;
        let path = parent.canonicalize()?.join(format!("{PREFIX}{}", uuid::Uuid::new_v4()));
        make_directory(&path)?;
        let lock = rustix::fs::open(&path, DIRECTORY, Mode::empty())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let directory = Self { path, uid, _lock: lock };
        for name in [WORK, TEMPORARY] {
            let path = directory.path.join(name);
            make_directory(&path)?;
            directory.give(&path)?;
        }
        directory.give(&directory.path)?;
        Ok(directory)
    }

    /// Gives a file to the command's user.
    fn give(&self, path: &Path) -> io::Result<()> {
        self.uid.map_or(Ok(()), |uid| chown(path, Some(uid), Some(uid)))
    }

    /// The directory of the command's files.
    pub(super) fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Writes the virtual files. Returns the paths of those that it could write; the others have paths that no disk can have.
    ///
    /// # Errors
    /// If the disk does not take them.
    pub(super) fn write<'a>(
        &self,
        files: &'a BTreeMap<String, String>,
        has_volume: bool,
    ) -> io::Result<BTreeSet<&'a str>> {
        let mut written = BTreeSet::new();
        for (path, content) in files {
            let Some(names) = names(path) else { continue };
            // The volume is there.
            if has_volume && names.first() == Some(&VOLUME.trim_start_matches('/')) {
                continue;
            }
            match self.write_file(&names, content) {
                Ok(()) => drop(written.insert(path.as_str())),
                // One virtual file may have the path of another's directory.
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Shows the volume of the workspace to the command, as a link in its directory.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub(super) fn link(&self, volume: &ShellVolume) -> io::Result<()> {
        symlink(&volume.directory, self.volume_link())
    }

    /// Removes that link, which is no file of the command, if it is still there.
    pub(super) fn unlink_volume(&self) {
        let link = self.volume_link();
        if link.is_symlink() {
            let _ = std::fs::remove_file(link);
        }
    }

    fn volume_link(&self) -> PathBuf {
        self.work().join(VOLUME.trim_start_matches('/'))
    }

    fn write_file(&self, names: &[&str], content: &str) -> io::Result<()> {
        let Some((file, folders)) = names.split_last() else { return Ok(()) };
        let mut path = self.work();
        for folder in folders {
            path.push(folder);
            match make_directory(&path) {
                Ok(()) => self.give(&path)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        path.push(file);
        // The command cannot change modes.
        let mode = if content.starts_with("#!") { 0o700 } else { 0o600 };
        let mut open = OpenOptions::new();
        let mut file = open.write(true).create_new(true).mode(mode).open(&path)?;
        file.write_all(content.as_bytes())?;
        self.give(&path)
    }
}

impl Drop for CallDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(directory = %self.path.display(), %error, "failed to remove the directory of a command");
        }
    }
}

/// The names of a path's directories and file, if a disk can have them.
fn names(path: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let is_possible = |name: &&str| *name != ".." && name.len() <= NAME_BYTES && !name.contains('\0');
    names.iter().all(is_possible).then_some(names)
}

fn is_conflict(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory};
    matches!(error.kind(), AlreadyExists | IsADirectory | NotADirectory)
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Removes the directories that earlier processes have left.
pub(super) fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let Ok(directory) = rustix::fs::open(entry.path(), DIRECTORY, Mode::empty()) else { continue };
        // A new directory is not locked yet.
        let is_old = entry
            .metadata()
            .and_then(|it| it.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > NEW));
        if is_old
            && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
            && let Err(error) = remove(&entry.path())
        {
            tracing::warn!(directory = %entry.path().display(), %error, "failed to remove an abandoned directory");
        }
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a directory of any depth, although paths have a limited length: directories move to the top until they are empty.
fn remove(path: &Path) -> rustix::io::Result<()> {
    let top = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
    let mut moved = 0_u64;
    loop {
        let names = list(&top)?;
        if names.is_empty() {
            return unlinkat(CWD, path, AtFlags::REMOVEDIR);
        }
        for name in names {
            remove_entry(&top, &name, &mut moved)?;
        }
    }
}

fn remove_entry(top: &OwnedFd, name: &CStr, moved: &mut u64) -> rustix::io::Result<()> {
    if remove_leaf(top.as_fd(), name)? {
        return Ok(());
    }
    // The command may have taken the rights from a directory of its own. All its processes have ended.
    chmodat(top, name, Mode::RWXU, AtFlags::empty())?;
    let directory = openat(top, name, DIRECTORY, Mode::empty())?;
    for inner in list(&directory)? {
        if !remove_leaf(directory.as_fd(), &inner)? {
            *moved += 1;
            chmodat(&directory, &inner, Mode::RWXU, AtFlags::empty())?;
            renameat(&directory, inner.as_c_str(), top, format!(".removed-{moved}"))?;
        }
    }
    unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// Removes a file or an empty directory. Returns whether it is gone.
fn remove_leaf(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<bool> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error),
        },
        Ok(()) => Ok(true),
        Err(error) => Err(error),
    }
}

fn list(directory: &OwnedFd) -> rustix::io::Result<Vec<std::ffi::CString>> {
    let entries = Dir::read_from(directory)?.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
    let is_inner = |name: &std::ffi::CString| !matches!(name.to_bytes(), b"." | b"..");
    let names: Vec<_> = entries.collect::<Result<_, _>>()?;
    Ok(names.into_iter().filter(is_inner).collect())
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;

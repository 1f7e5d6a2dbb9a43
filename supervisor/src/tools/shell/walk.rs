//! Visits the files of a directory without following a link, even if processes change it meanwhile.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat2, statat};
use rustix::io::Result;

/// The deepest directory that is visited.
pub(super) const MAX_DEPTH: usize = 64;

/// A file, or a directory before its files.
pub(super) enum Found<'a> {
    Entry {
        /// Relative to the root, with `/` between names.
        path: &'a [u8],
        parent: BorrowedFd<'a>,
        name: &'a CStr,
        stat: Stat,
    },
    /// A directory that is too deep or cannot be read.
    Unreadable { path: &'a [u8] },
}

type Visit<'a> = dyn FnMut(Found<'_>) -> ControlFlow<()> + 'a;

/// Visits everything below the directory, until the visitor breaks.
///
/// # Errors
/// If the directory itself cannot be read.
pub(super) fn walk(root: &Path, visit: &mut Visit<'_>) -> Result<()> {
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty())?;
    // The visitor has what it wants.
    let _ = walk_directory(Dir::read_from(&root)?, root.as_fd(), &mut Vec::new(), 1, visit);
    Ok(())
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory entry. It never leaves the directory and follows no link.
pub(super) fn open_entry(parent: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
    let beneath = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(parent, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), beneath)
}

fn walk_directory(
    entries: Dir,
    directory: BorrowedFd<'_>,
    path: &mut Vec<u8>,
    depth: usize,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    // An entry that vanishes meanwhile is no entry.
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        visit(Found::Entry { path, parent: directory, name, stat })?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            descend(directory, name, path, depth, visit)?;
        }
        path.truncate(length);
    }
    ControlFlow::Continue(())
}

fn descend(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &mut Vec<u8>,
    depth: usize,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let opened = open_entry(parent, name, DIRECTORY).and_then(|fd| Ok((Dir::read_from(&fd)?, fd)));
    match opened {
        Ok((entries, fd)) if depth < MAX_DEPTH => walk_directory(entries, fd.as_fd(), path, depth + 1, visit),
        // It has vanished meanwhile.
        Err(rustix::io::Errno::NOENT) => ControlFlow::Continue(()),
        _ => visit(Found::Unreadable { path }),
    }
}

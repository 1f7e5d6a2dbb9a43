//! What a command has changed: the text files that it leaves in its directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::Path;

use caipe_engine::{FILE_BYTES, PATH_BYTES, TOTAL_BYTES};
use rustix::fs::{FileType, OFlags, Stat};

use super::walk::{Found, MAX_DEPTH, open_entry, walk};

/// Most files that are read.
const MAX_FILES: usize = 1000;
/// Most entries of a directory tree that are read.
const MAX_ENTRIES: usize = 20_000;
/// Most files that are named as left out.
const MAX_NAMED: usize = 20;

/// The changes of the virtual files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The new content by path; `None` removes the file.
    pub(super) files: BTreeMap<String, Option<String>>,
    /// The files that stay behind, each with the reason.
    pub(super) left_out: Vec<String>,
    /// How many more there are.
    pub(super) more_left_out: usize,
}

/// Compares the files in the directory with those that were written there. No process may still run in it.
///
/// # Errors
/// If the directory cannot be read.
pub(super) fn collect(
    directory: &Path,
    before: &BTreeMap<String, String>,
    written: &BTreeSet<&str>,
) -> rustix::io::Result<Changes> {
    let mut found = Collector::default();
    walk(directory, &mut |entry| found.visit(&entry))?;
    let mut changes = found.changes;
    for path in written.iter().filter(|path| !found.present.contains(**path) && !found.is_cut) {
        changes.files.insert((*path).to_owned(), None);
    }
    changes.files.retain(|path, content| content.is_none() || before.get(path) != content.as_ref());
    Ok(changes)
}

#[derive(Default)]
struct Collector {
    changes: Changes,
    /// All paths, also of what is left out.
    present: BTreeSet<String>,
    entries: usize,
    files: usize,
    bytes: usize,
    /// Whether not all entries were read.
    is_cut: bool,
}

impl Collector {
    fn visit(&mut self, found: &Found<'_>) -> ControlFlow<()> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            self.is_cut = true;
            self.leave_out(b"", format!("there are more than {MAX_ENTRIES} files and directories"));
            return ControlFlow::Break(());
        }
        match found {
            Found::Unreadable { path } => {
                self.is_cut = true;
                self.leave_out(path, format!("the directory is deeper than {MAX_DEPTH}, or cannot be read"));
            }
            Found::Entry { path, parent, name, stat } => self.entry(path, *parent, name, stat),
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, path: &[u8], parent: BorrowedFd<'_>, name: &CStr, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return;
        }
        let virtual_path = virtual_path(path);
        self.present.extend(virtual_path.clone().ok());
        let content = virtual_path.and_then(|path| Ok((path, self.read(parent, name, stat)?)));
        match content {
            Ok((path, content)) => drop(self.changes.files.insert(path, Some(content))),
            Err(reason) => self.leave_out(path, reason),
        }
    }

    fn read(&mut self, parent: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Result<String, String> {
        check(stat)?;
        if self.files >= MAX_FILES {
            return Err(format!("there are more than {MAX_FILES} files"));
        }
        let content = read_text(parent, name)?;
        self.bytes += content.len();
        if self.bytes > TOTAL_BYTES {
            self.bytes -= content.len();
            return Err(format!("all files together are larger than {TOTAL_BYTES} bytes"));
        }
        self.files += 1;
        Ok(content)
    }

    fn leave_out(&mut self, path: &[u8], reason: String) {
        if self.changes.left_out.len() < MAX_NAMED {
            let path = String::from_utf8_lossy(path);
            let shown: String = path.chars().take(PATH_BYTES).flat_map(char::escape_debug).collect();
            self.changes.left_out.push(if shown.is_empty() { reason } else { format!("/{shown}: {reason}") });
        } else {
            self.changes.more_left_out += 1;
        }
    }
}

fn virtual_path(path: &[u8]) -> Result<String, String> {
    let path = std::str::from_utf8(path).map_err(|_| "its name is not UTF-8".to_owned())?;
    if path.chars().any(char::is_control) {
        return Err("its name has control characters".to_owned());
    }
    if path.len() >= PATH_BYTES {
        return Err(format!("its path is longer than {PATH_BYTES} bytes"));
    }
    Ok(format!("/{path}"))
}

/// Whether this is a file of its own that may be read.
fn check(stat: &Stat) -> Result<(), String> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => Err("it has more than one name".to_owned()),
        FileType::RegularFile if usize::try_from(stat.st_size).unwrap_or(usize::MAX) > FILE_BYTES => {
            Err(format!("it is larger than {FILE_BYTES} bytes"))
        }
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err("it is a symbolic link".to_owned()),
        _ => Err("it is no regular file".to_owned()),
    }
}

/// Reads a file, which may have changed since it was found.
fn read_text(parent: BorrowedFd<'_>, name: &CStr) -> Result<String, String> {
    let failed = |error: rustix::io::Errno| format!("it cannot be read: {error}");
    // Opening a pipe does not wait.
    let fd = open_entry(parent, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(failed)?;
    check(&rustix::fs::fstat(&fd).map_err(failed)?)?;
    let mut bytes = Vec::new();
    let read = File::from(fd).take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() > FILE_BYTES {
        return Err(format!("it is larger than {FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;

//! What a command has changed on the volume of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

use caipe_engine::VOLUME;
use rustix::fs::{FileType, Stat};

use super::walk::{Found, walk};
use crate::tools::ShellVolume;

/// Most files that are named; of more, only the volume is.
const MAX_NAMED: usize = 50;

/// Most entries that are compared.
pub(super) const MAX_ENTRIES: usize = 20_000;

/// The files of a volume at one time.
pub(super) struct Snapshot {
    directory: PathBuf,
    /// What changes with each file; `None` if there are too many.
    files: Option<BTreeMap<String, State>>,
}

type State = [i128; 4];

impl Snapshot {
    pub(super) fn of(volume: &ShellVolume) -> Self {
        let directory = volume.directory.clone();
        let files = read(&directory);
        Self { directory, files }
    }

    /// The files that differ now, by the paths that the model knows; `None` if there are too many to be compared. They include what
    /// others have changed meanwhile.
    pub(super) fn changes(&self) -> Option<BTreeSet<String>> {
        let (before, now) = (self.files.as_ref()?, read(&self.directory)?);
        let changed =
            now.iter().filter(|(path, state)| before.get(*path) != Some(*state)).map(|(path, _)| path);
        let removed = before.keys().filter(|path| !now.contains_key(*path));
        let paths: BTreeSet<String> = changed
            .chain(removed)
            .map(|path| format!("{VOLUME}/{}", path.replace(char::is_control, "?")))
            .collect();
        // A model must not read, and no run store, what a program unpacks.
        Some(if paths.len() > MAX_NAMED { [VOLUME.to_owned()].into() } else { paths })
    }
}

fn read(directory: &std::path::Path) -> Option<BTreeMap<String, State>> {
    let (mut files, mut entries) = (BTreeMap::new(), 0);
    walk(directory, &mut |found| {
        entries += 1;
        if let Found::Entry { path, stat, .. } = found
            && FileType::from_raw_mode(stat.st_mode) != FileType::Directory
        {
            files.insert(String::from_utf8_lossy(path).into_owned(), state(&stat));
        }
        if entries > MAX_ENTRIES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .ok()?;
    (entries <= MAX_ENTRIES).then_some(files)
}

fn state(stat: &Stat) -> State {
    [stat.st_ino.into(), stat.st_mtime.into(), stat.st_mtime_nsec.into(), stat.st_size.into()]
}

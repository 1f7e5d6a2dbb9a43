//! The folder of virtual files that the agents of one conversation share.
//!
//! A delegation takes the files of the delegating run along, and brings back what the agent has changed. Agents that work at the same
//! time read each other's files only once both have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::state::RunState;
use crate::tools;

/// The folder.
pub const SCRATCHPAD: &str = "/.scratch";

/// Most bytes of all its files.
pub const SCRATCHPAD_BYTES: usize = 256 << 10;

/// Changes of virtual files, by path; `None` removes a file.
pub type FileChanges = BTreeMap<String, Option<String>>;

/// Where an agent may write virtual files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileWrites {
    #[default]
    Everywhere,
    /// In [`SCRATCHPAD`].
    Scratchpad,
    Nowhere,
}

impl FileWrites {
    pub(crate) const fn is_everywhere(&self) -> bool {
        matches!(self, Self::Everywhere)
    }

    /// Checks that a file may be written.
    ///
    /// # Errors
    /// Why it may not, for the model.
    pub(crate) fn permit(self, path: &str) -> Result<(), String> {
        match self {
            Self::Everywhere => Ok(()),
            Self::Scratchpad if is_in_scratchpad(path) => Ok(()),
            Self::Scratchpad => {
                Err(format!("failed to write {path}: you may write below {SCRATCHPAD}/ only."))
            }
            Self::Nowhere => Err(format!("failed to write {path}: you may read files only.")),
        }
    }
}

pub(crate) fn is_in_scratchpad(path: &str) -> bool {
    path.strip_prefix(SCRATCHPAD).is_some_and(|rest| rest.starts_with('/'))
}

impl RunState {
    /// The files that a delegation takes along.
    pub fn scratchpad(&self) -> BTreeMap<String, String> {
        let paths = tools::in_folder(&self.files, SCRATCHPAD);
        paths.filter_map(|path| Some((path.clone(), self.files.get(path)?.clone()))).collect()
    }

    /// Takes the files of the delegating run in place of its own shared ones. At its end, the run emits what it has changed in them.
    pub fn receive_scratchpad(&mut self, files: BTreeMap<String, String>) {
        let own = Arc::make_mut(&mut self.files);
        own.retain(|path, _| !is_in_scratchpad(path));
        take_over(self, files.into_iter().map(|(path, text)| (path, Some(text))).collect());
        self.shared = Some(BTreeSet::new());
    }
}

/// Applies the changes of an agent that shares the files; those that the limits do not permit are left out.
pub(crate) fn take_over(state: &mut RunState, changes: FileChanges) {
    let changes = changes.into_iter().filter(|(path, _)| is_in_scratchpad(path)).collect();
    let _ = tools::apply_changes(state, changes);
}

/// Notes a changed file of the run that must be brought back.
pub(crate) fn note_change(state: &mut RunState, path: &str) {
    if let Some(changed) = state.shared.as_mut().filter(|_| is_in_scratchpad(path)) {
        changed.insert(path.to_owned());
    }
}

/// Emits what the run has changed in shared files.
pub(crate) fn report(state: &mut RunState, out: &mut Effects) {
    let changed = state.shared.take().unwrap_or_default();
    let files: FileChanges =
        changed.into_iter().map(|path| (path.clone(), state.files.get(&path).cloned())).collect();
    if !files.is_empty() {
        out.emit(EventKind::ScratchpadChanged { files });
    }
}

/// Whether the shared files would have too many bytes with this one.
pub(crate) fn is_full(files: &BTreeMap<String, String>, path: &str, bytes: usize) -> bool {
    let others = tools::in_folder(files, SCRATCHPAD).filter(|known| *known != path);
    let used: usize = others.filter_map(|path| files.get(path)).map(String::len).sum();
    is_in_scratchpad(path) && used + bytes > SCRATCHPAD_BYTES
}

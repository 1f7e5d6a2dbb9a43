//! The folder of virtual files that the agents of one conversation share.
//!
//! A delegation takes the files of the delegating run along, and brings back what the agent has changed. Agents that work at the same
//! time read each other's files only once both have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::file_rights::{FileChanges, SCRATCHPAD, is_in_scratchpad};
use crate::state::RunState;
use crate::tools;

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

/// Emits what the run has changed in shared files.
pub(crate) fn report(state: &mut RunState, out: &mut Effects) {
    let changed = state.shared.take().unwrap_or_default();
    let files: FileChanges =
        changed.into_iter().map(|path| (path.clone(), state.files.get(&path).cloned())).collect();
    if !files.is_empty() {
        out.emit(EventKind::ScratchpadChanged { files });
    }
}

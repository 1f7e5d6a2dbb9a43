//! Where an agent may write virtual files, and changes of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The folder of shared files.
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
    /// Whether it is the default.
    pub const fn is_everywhere(&self) -> bool {
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

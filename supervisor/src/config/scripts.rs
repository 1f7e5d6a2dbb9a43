//! The files of scripted models.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use caipe_model::Scripted;

use super::ConfigError;

/// The files of scripted models, each with its text when it was read, or the reason why it could not be read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Scripts(Arc<BTreeMap<String, Result<String, String>>>);

/// Shows the files, not their text.
impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Scripts {
    /// Reads these files.
    pub(super) fn read(files: BTreeSet<String>) -> Self {
        let read = |path: String| {
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
            (path, text)
        };
        Self(Arc::new(files.into_iter().map(read).collect()))
    }

    /// The text of a file, if it could be read.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref().ok()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.0.keys().map(PathBuf::from)
    }

    /// Rejects invalid scripts that are new or changed since `before`.
    pub(super) fn check_since(&self, before: &Self) -> Result<(), ConfigError> {
        for (path, text) in self.0.iter().filter(|(path, text)| before.0.get(*path) != Some(*text)) {
            let unreadable =
                |reason: &String| ConfigError::Unreadable { path: path.clone(), reason: reason.clone() };
            Scripted::from_yaml(path, text.as_ref().map_err(unreadable)?)?;
        }
        Ok(())
    }
}

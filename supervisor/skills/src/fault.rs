//! What is wrong with a skill.

use std::fmt;

/// One fault of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file and the field, for example `incident-triage/SKILL.md: description`.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A fault at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// The same below a folder.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        Self { path: format!("{folder}/{}", self.path), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

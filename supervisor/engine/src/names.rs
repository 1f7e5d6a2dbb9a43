//! The names of agents and calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of an agent: trimmed, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// Normalizes a name.
    pub fn new(name: &str) -> Self {
        Self(name.trim().to_lowercase().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for AgentName {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0.as_ref().into()
    }
}

impl std::fmt::Display for AgentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a tool call, unique within its run.
pub type CallId = String;

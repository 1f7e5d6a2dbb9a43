//! Where each agent runs: one rule for the resource and the environment alike.
//!
//! 1. A disabled agent does not run.
//! 2. A non-empty list of distributed agents decides agent by agent; `all` in the list means every agent.
//! 3. The legacy mode makes every agent remote.
//! 4. Every other agent runs in-process.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::names::normal;
use crate::resource::agent_state::AgentPlacement;

/// The agents that are requested to be remote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// No agent.
    #[default]
    None,
    /// Every agent.
    All,
    /// The agents with these names, trimmed and in lower case. Never empty.
    Only(BTreeSet<String>),
}

/// The placements that an agent supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum SupportedPlacements {
    /// In-process and remote.
    #[default]
    Both,
    /// Remote only: the agent has an external URL or an image of its own.
    RemoteOnly,
    InProcessOnly,
}

/// An agent that supports no remote placement is listed by name as distributed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "agent `{name}` can only run in-process: remove it from the list of distributed agents, or disable it"
)]
pub struct InProcessOnlyError {
    /// The agent's name.
    pub name: String,
}

impl Distribution {
    /// The distribution for a list of names and the legacy mode. Blank names are ignored.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, legacy_mode: bool) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(normal).filter(|name| !name.is_empty()).collect();
        match (names.contains("all"), names.is_empty(), legacy_mode) {
            (true, _, _) | (_, true, true) => Self::All,
            (_, true, false) => Self::None,
            (_, false, _) => Self::Only(names),
        }
    }

    /// Whether the agent is requested to be remote, by name or with all.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(names) => names.contains(&normal(name)),
        }
    }

    /// The listed names that no agent has, for a warning.
    pub fn unknown<'a>(&'a self, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let Self::Only(names) = self else { return Vec::new() };
        let known: BTreeSet<String> = known.into_iter().map(normal).collect();
        names.iter().filter(|name| !known.contains(*name)).map(String::as_str).collect()
    }
}

/// Decides where an agent runs; none if it is disabled.
///
/// # Errors
/// The agent supports only the in-process placement and is listed *by name* as distributed. With `all` it stays
/// in-process.
pub fn place(
    name: &str,
    enabled: bool,
    supported: SupportedPlacements,
    distribution: &Distribution,
) -> Result<Option<AgentPlacement>, InProcessOnlyError> {
    use SupportedPlacements::{Both, InProcessOnly, RemoteOnly};
    if !enabled {
        return Ok(None);
    }
    match (supported, distribution) {
        (InProcessOnly, Distribution::Only(_)) if distribution.includes(name) => {
            Err(InProcessOnlyError { name: normal(name) })
        }
        (RemoteOnly, _) => Ok(Some(AgentPlacement::Remote)),
        (Both, _) if distribution.includes(name) => Ok(Some(AgentPlacement::Remote)),
        (Both | InProcessOnly, _) => Ok(Some(AgentPlacement::InProcess)),
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;

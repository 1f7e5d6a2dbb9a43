//! Where each agent runs: one rule for the resource and the environment alike.
//!
//! Disabled: not there at all. Else a non-empty list decides agent by agent, `all` anywhere in it meaning every
//! agent. Else the legacy mode means all. Else in-process. (Seeds `DISTRIBUTED_AGENTS`, `DISTRIBUTED_MODE`,
//! `ENABLE_<NAME>`.)

use std::collections::BTreeSet;

/// Which agents were asked to be remote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// None.
    #[default]
    Nobody,
    /// Every one.
    Everybody,
    /// These, trimmed and in lower case. Never empty.
    Only(BTreeSet<String>),
}

/// Which homes an agent can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Forms {
    /// In-process and remote.
    Both,
    /// Remote only: an external URL or an image of its own.
    RemoteOnly,
    /// In-process only.
    LocalOnly,
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Not at all.
    Absent,
    /// In the supervisor's process.
    InProcess,
    /// In a process of its own, behind A2A.
    Remote,
}

/// An agent without a remote form was asked by name to be remote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "agent `{name}` can only run in-process: take it out of the list of distributed agents, or disable it"
)]
pub struct LocalOnlyError {
    /// Its name.
    pub name: String,
}

/// A name as it is compared: trimmed, in lower case.
pub fn normal(name: &str) -> String {
    name.trim().to_lowercase()
}

/// A switch as upstream reads it: `true`, `1` or `yes` in any case, around it any white space.
pub fn truthy(text: &str) -> bool {
    matches!(normal(text).as_str(), "true" | "1" | "yes")
}

impl Distribution {
    /// From the list's entries and the legacy mode. Blank entries do not count; a list of only such is empty.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, legacy_mode: bool) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(normal).filter(|name| !name.is_empty()).collect();
        match (names.contains("all"), names.is_empty(), legacy_mode) {
            (true, _, _) | (_, true, true) => Self::Everybody,
            (_, true, false) => Self::Nobody,
            (_, false, _) => Self::Only(names),
        }
    }

    /// From the values of `DISTRIBUTED_AGENTS` and `DISTRIBUTED_MODE`.
    pub fn from_variables(agents: Option<&str>, mode: Option<&str>) -> Self {
        Self::new(agents.unwrap_or_default().split(','), mode.is_some_and(truthy))
    }

    /// Whether the agent was asked to be remote, by name or with all.
    pub fn asks(&self, name: &str) -> bool {
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
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

/// Where the agent runs.
///
/// # Errors
/// An agent without a remote form that is asked *by name* to be remote. With `all` it stays in-process: whoever says
/// `all` means every agent that can.
pub fn place(
    name: &str,
    enabled: bool,
    forms: Forms,
    distribution: &Distribution,
) -> Result<Placement, LocalOnlyError> {
    if !enabled {
        return Ok(Placement::Absent);
    }
    match (forms, distribution) {
        (Forms::LocalOnly, Distribution::Only(_)) if distribution.asks(name) => {
            Err(LocalOnlyError { name: normal(name) })
        }
        (Forms::RemoteOnly, _) => Ok(Placement::Remote),
        (Forms::Both, _) if distribution.asks(name) => Ok(Placement::Remote),
        (Forms::Both | Forms::LocalOnly, _) => Ok(Placement::InProcess),
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;

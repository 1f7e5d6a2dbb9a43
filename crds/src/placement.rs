//! Where each agent runs: one rule for the resource and the environment alike.
//!
//! 1. A disabled agent does not run.
//! 2. The agent's own `placement` decides.
//! 3. Else a non-empty list of distributed agents decides agent by agent; `all` in the list means every agent.
//! 4. Else the default placement decides; the environment's legacy mode sets it to remote.
//! 5. Else the agent runs in-process.
//!
//! A non-empty list in the environment (`DISTRIBUTED_AGENTS`) precedes 2 to 4. An agent that supports one placement only
//! has that one.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::names::normal;
use crate::resource::agent_state::AgentPlacement;

/// The placements that the resource and the environment request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    environment: Listed,
    resource: Listed,
    default: AgentPlacement,
}

/// The agents that a list names as remote.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Listed {
    /// The list is empty, so that it decides nothing.
    Nothing,
    /// Every agent.
    All,
    /// The agents with these names, trimmed and in lower case. Never empty.
    Only(BTreeSet<String>),
}

/// The placement that is requested for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub placement: AgentPlacement,
    /// What requests it.
    pub source: Source,
    /// Whether the source names this agent, so that it applies to no other.
    pub by_name: bool,
}

/// What requests a placement, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// `DISTRIBUTED_AGENTS`.
    Environment,
    /// The field `placement` of the agent.
    Agent,
    /// `distributedAgents`.
    List,
    /// `defaultPlacement` or `DISTRIBUTED_MODE`.
    Default,
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

impl Listed {
    fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(normal).filter(|name| !name.is_empty()).collect();
        match (names.contains("all"), names.is_empty()) {
            (true, _) => Self::All,
            (_, true) => Self::Nothing,
            (_, false) => Self::Only(names),
        }
    }

    /// The placement of the agent with this name, trimmed and in lower case, and whether the list names it.
    fn request(&self, name: &str) -> Option<(AgentPlacement, bool)> {
        match self {
            Self::Nothing => None,
            Self::All => Some((AgentPlacement::Remote, false)),
            Self::Only(names) if names.contains(name) => Some((AgentPlacement::Remote, true)),
            Self::Only(_) => Some((AgentPlacement::InProcess, false)),
        }
    }
}

impl Requests {
    /// The requests of the names in `DISTRIBUTED_AGENTS`, those in `distributedAgents`, and the default placement. Blank
    /// names are ignored.
    pub fn new<'a>(
        environment: impl IntoIterator<Item = &'a str>,
        resource: impl IntoIterator<Item = &'a str>,
        default: AgentPlacement,
    ) -> Self {
        Self { environment: Listed::new(environment), resource: Listed::new(resource), default }
    }

    /// The request for the agent with this name and, if it has one, this field `placement`.
    pub fn of(&self, name: &str, own: Option<AgentPlacement>) -> Request {
        let name = normal(name);
        let listed = |list: &Listed, source| {
            list.request(&name).map(|(placement, by_name)| Request { placement, source, by_name })
        };
        listed(&self.environment, Source::Environment)
            .or_else(|| Some(Request { placement: own?, source: Source::Agent, by_name: true }))
            .or_else(|| listed(&self.resource, Source::List))
            .unwrap_or(Request { placement: self.default, source: Source::Default, by_name: false })
    }

    /// The names in the list that counts that no agent has, and that list, for a warning.
    pub fn unknown<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> (Source, Vec<&str>) {
        let (source, list) = match &self.environment {
            Listed::Nothing => (Source::List, &self.resource),
            list => (Source::Environment, list),
        };
        let Listed::Only(names) = list else { return (source, Vec::new()) };
        let known: BTreeSet<String> = known.into_iter().map(normal).collect();
        (source, names.iter().filter(|name| !known.contains(*name)).map(String::as_str).collect())
    }
}

impl SupportedPlacements {
    pub const fn includes(self, placement: AgentPlacement) -> bool {
        match self {
            Self::Both => true,
            Self::RemoteOnly => matches!(placement, AgentPlacement::Remote),
            Self::InProcessOnly => matches!(placement, AgentPlacement::InProcess),
        }
    }
}

/// Decides where an agent runs; none if it is disabled. [`crate::validate()`] refuses an agent's own `placement` that the
/// agent does not support.
///
/// # Errors
/// The agent supports only the in-process placement and a list names it as distributed. With `all`, or as the default, it
/// stays in-process.
pub fn place(
    name: &str,
    enabled: bool,
    supported: SupportedPlacements,
    request: Request,
) -> Result<Option<AgentPlacement>, InProcessOnlyError> {
    if !enabled {
        return Ok(None);
    }
    let is_listed = request.by_name && request.source != Source::Agent;
    Ok(Some(match supported {
        SupportedPlacements::Both => request.placement,
        SupportedPlacements::RemoteOnly => AgentPlacement::Remote,
        SupportedPlacements::InProcessOnly if is_listed => {
            return Err(InProcessOnlyError { name: normal(name) });
        }
        SupportedPlacements::InProcessOnly => AgentPlacement::InProcess,
    }))
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;

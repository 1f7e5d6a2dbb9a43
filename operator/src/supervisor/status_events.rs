//! Derives events from a change of the status. Pure.

use caipe_crds::CaipeSupervisorStatus;
use caipe_crds::resource::agent_state::AgentPhase;
use caipe_crds::resource::status::AgentStatus;

use super::missing_reference::ReferenceState;
use super::status::Reason as Why;
use crate::events::Reason;

/// An event to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEvent {
    pub reason: Reason,
    /// Its agent; empty for the resource.
    pub about: String,
    pub text: String,
}

pub fn changes(before: Option<&CaipeSupervisorStatus>, after: &CaipeSupervisorStatus) -> Vec<StatusEvent> {
    let mut events = of_conditions(before, after);
    if let Some(before) = before {
        let known = |agent: &AgentStatus| before.agents.iter().find(|it| it.name == agent.name);
        events.extend(after.agents.iter().filter_map(|agent| of_agent(known(agent)?, agent)));
    }
    events
}

fn of_conditions(before: Option<&CaipeSupervisorStatus>, after: &CaipeSupervisorStatus) -> Vec<StatusEvent> {
    let was = |kind: &str| before.and_then(|before| condition(before, kind));
    let mut events = Vec::new();
    if let Some((why, text)) = condition(after, "Stalled").filter(|now| was("Stalled") != Some(*now)) {
        events.push(event(stalled(why), "", text));
    }
    match (was("Reconciling"), condition(after, "Reconciling")) {
        (None, Some((why, text))) if why == Why::RollingOut.as_str() => {
            events.push(event(Reason::RolloutStarted, "", text));
        }
        (_, Some((why, text)))
            if why == Why::Retrying.as_str() && was("Reconciling").is_none_or(|was| was.0 != why) =>
        {
            events.push(event(Reason::ApplyFailed, "", text));
        }
        (Some((why, _)), None) if rolls(why) && ready(Some(after)).is_some_and(|(why, _)| found(why)) => {
            let epoch = after.epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
            events.push(event(Reason::RolloutFinished, "", &format!("the supervisor runs spec {epoch}")));
        }
        _ => {}
    }
    events
}

/// What a status says about the references.
pub fn references(status: Option<&CaipeSupervisorStatus>) -> ReferenceState<'_> {
    match ready(status) {
        Some((why, text)) if why == Why::ReferenceMissing.as_str() => ReferenceState::Missing(text),
        Some((why, _)) if found(why) => ReferenceState::Found,
        _ => ReferenceState::Unknown,
    }
}

/// Whether the reason means a rollout.
fn rolls(why: &str) -> bool {
    ![Why::Moving, Why::Retrying].iter().any(|other| other.as_str() == why)
}

/// Whether the reason implies that all references exist.
fn found(why: &str) -> bool {
    let known = [
        Why::AllAgentsUsable,
        Why::AgentsNotReady,
        Why::RollingOut,
        Why::EpochPending,
        Why::Moving,
        Why::ScaledToZero,
    ];
    known.iter().any(|known| known.as_str() == why)
}

/// Reason and message of a condition that is true.
fn condition<'a>(status: &'a CaipeSupervisorStatus, kind: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|it| it.type_ == kind && it.status == "True")?;
    Some((&found.reason, &found.message))
}

/// Reason and message of `Ready`.
fn ready(status: Option<&CaipeSupervisorStatus>) -> Option<(&str, &str)> {
    let found = status?.conditions.iter().find(|it| it.type_ == "Ready")?;
    Some((&found.reason, &found.message))
}

fn stalled(why: &str) -> Reason {
    match why {
        _ if why == Why::SpecRefused.as_str() => Reason::SpecRefused,
        _ if why == Why::ForeignObject.as_str() => Reason::ForeignObject,
        _ if why == Why::Forbidden.as_str() => Reason::ApplyFailed,
        _ if why == Why::NamespaceUnreadable.as_str() => Reason::NamespaceUnreadable,
        _ if why == Why::RolloutFailed.as_str() => Reason::PodFailing,
        _ => Reason::InvalidSpec,
    }
}

fn of_agent(before: &AgentStatus, after: &AgentStatus) -> Option<StatusEvent> {
    let (name, message) = (&after.name, after.message.as_deref().unwrap_or("no reason was given"));
    if before.placement != after.placement {
        let text = format!("agent {name} moved from {:?} to {:?}", before.placement, after.placement);
        return Some(event(Reason::AgentMoved, name, &text));
    }
    match (before.phase, after.phase) {
        (was, now) if was == now => None,
        (_, AgentPhase::Unreachable) => {
            Some(event(Reason::AgentUnreachable, name, &format!("agent {name} cannot be reached: {message}")))
        }
        (_, AgentPhase::Degraded) => {
            Some(event(Reason::AgentDegraded, name, &format!("agent {name} is usable in part: {message}")))
        }
        (AgentPhase::Unreachable | AgentPhase::Degraded, AgentPhase::Ready) => {
            Some(event(Reason::AgentRecovered, name, &format!("agent {name} is usable again")))
        }
        _ => None,
    }
}

fn event(reason: Reason, about: &str, text: &str) -> StatusEvent {
    StatusEvent { reason, about: about.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
#[path = "status_events_tests.rs"]
mod tests;

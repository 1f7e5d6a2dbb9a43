//! Probes an agent and checks that it is the expected one.

use std::time::Duration;

use caipe_a2a::client::probe;
use caipe_a2a::model::AgentCard;

use super::{RemoteBackend, failure};
use crate::binding::ACTIVITY_EXTENSION;

/// The note about an agent that does not know the approvals of this program.
pub(crate) const UNGUARDED: &str = "it is another program, whose tool calls cannot require approval here";

/// The result of a successful probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// The time until the card arrived.
    pub latency: Duration,
    /// The version of A2A in use, for example `1.0`.
    pub protocol_version: String,
    pub card_name: String,
    /// The names of its skills.
    pub skills: Vec<String>,
}

/// The reason why a probe failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The agent cannot be reached. The reason contains no secret.
    #[error("failed to reach the agent: {0}")]
    Unreachable(String),
    /// Another agent responds at the address.
    #[error("failed to find agent {wanted} there: the card is that of \"{found}\"; check the address")]
    WrongCard { wanted: String, found: String },
    /// The agent would make calls that need approval without asking.
    #[error(
        "failed to require approvals of agent {0}: another program answers there, which would make the calls of \
         requireApproval without asking; remove requireApproval, or give the address of `caipe-supervisor agent {0}`"
    )]
    Unguarded(String),
    #[error("failed to read the agent's card within {} s", .0.as_secs_f32())]
    Timeout(Duration),
}

impl ProbeError {
    /// A bounded name, for metrics.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::WrongCard { .. } => "wrong_card",
            Self::Unguarded(_) => "unguarded",
            Self::Timeout(_) => "timeout",
        }
    }
}

impl RemoteBackend {
    /// Requests the agent's card, which is cheap for the agent if the card has not changed.
    ///
    /// # Errors
    /// If the card cannot be read in time, or if the supervisor must not use this agent.
    pub async fn probe(&self, deadline: Duration) -> Result<ProbeReport, ProbeError> {
        let asked = probe(self.target.url.as_str(), &self.http, &self.options, &self.cards);
        let probe = match tokio::time::timeout(deadline, asked).await {
            Ok(Ok(probe)) => probe,
            Ok(Err(error)) => return Err(ProbeError::Unreachable(failure::unreached(&error))),
            Err(_) => return Err(ProbeError::Timeout(deadline)),
        };
        self.check(&probe.card)?;
        Ok(ProbeReport {
            latency: probe.latency,
            protocol_version: probe.version.to_string(),
            card_name: probe.card.name.clone(),
            skills: probe.card.skills.iter().map(|skill| skill.name.clone()).collect(),
        })
    }

    /// Rejects the card of another agent, and that of another program if calls of the agent need approval.
    pub(super) fn check(&self, card: &AgentCard) -> Result<(), ProbeError> {
        let wanted = self.target.name.to_string();
        if self.named && !is_card_of(&wanted, card) {
            let found: String = card.name.chars().take(80).collect();
            return Err(ProbeError::WrongCard { wanted, found });
        }
        if !self.target.require_approval.is_empty() && !is_ours(card) {
            return Err(ProbeError::Unguarded(wanted));
        }
        Ok(())
    }
}

/// Whether the card is that of an agent of this program, which obeys the approvals that its caller requires.
pub(super) fn is_ours(card: &AgentCard) -> bool {
    card.capabilities.extensions.iter().any(|known| known.uri == ACTIVITY_EXTENSION)
}

/// Whether the card is that of the agent `name`: the names are alike, or one of the card's skills has that id or tag.
pub(super) fn is_card_of(name: &str, card: &AgentCard) -> bool {
    let skills = card.skills.iter().flat_map(|skill| std::iter::once(&skill.id).chain(&skill.tags));
    is_alike(name, &card.name) || skills.into_iter().any(|skill| plain(skill) == plain(name))
}

/// Whether one name contains the other. Ignores case and treats spaces, underscores and hyphens alike; an empty name
/// matches any.
pub(super) fn is_alike(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (plain(wanted), plain(found));
    found.contains(&wanted) || wanted.contains(&found)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '-'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_matched_by_its_name_or_by_a_skill() {
        for (wanted, found, alike) in [
            ("jira", "Jira", true),
            ("jira", "Jira Agent", true),
            ("platform_engineer", "Platform Engineer", true),
            ("aws-eks", "AWS EKS", true),
            ("jira cloud", "Jira", true),
            ("jira", "", true),
            ("jira", "GitHub", false),
        ] {
            assert_eq!(is_alike(wanted, found), alike, "{wanted} {found}");
        }
        let mut card = AgentCard { name: "Tickets".to_owned(), ..AgentCard::default() };
        assert!(!is_card_of("jira", &card));
        card.skills = vec![caipe_a2a::model::AgentSkill { id: "jira".to_owned(), ..Default::default() }];
        assert!(is_card_of("jira", &card));
    }
}

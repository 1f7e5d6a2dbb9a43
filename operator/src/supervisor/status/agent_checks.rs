//! The conditions of an agent: whether its credentials are accepted, and names in its settings that are no tool.

use std::collections::BTreeSet;

use caipe_crds::internal_status::{AgentReport, CredentialReason, CredentialReport};
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::resource::status::AgentStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::Facts;
use super::conditions::condition;

/// Whether the API accepts the credentials, once that has been checked.
const CREDENTIALS: &str = "CredentialsAccepted";
/// Names in the settings are no tool of the servers; only while true.
const UNMATCHED: &str = "NamesUnmatched";
const NO_SUCH_TOOL: &str = "NoSuchTool";

/// The status with its conditions, from the processes that run the agent. The supervisor does not know of the credentials of a
/// remote agent, so it is degraded here if they are refused.
pub(super) fn checked(facts: &Facts<'_>, mut status: AgentStatus) -> AgentStatus {
    let running = running(facts, &status);
    let worst = running.iter().filter_map(|agent| Some((agent, agent.credentials.as_ref()?)));
    let worst = worst.max_by_key(|(_, checked)| checked.reason.severity());
    if let Some((agent, checked)) = worst
        && (status.placement, status.phase) == (AgentPlacement::Remote, AgentPhase::Ready)
        && checked.reason == CredentialReason::Refused
    {
        (status.phase, status.message) = (AgentPhase::Degraded, agent.message.clone());
    }
    let credentials = worst.map(|(_, checked)| (CREDENTIALS, of_credentials(checked)));
    let names: BTreeSet<&str> =
        running.iter().flat_map(|agent| &agent.unmatched).map(String::as_str).collect();
    let names = names.into_iter().collect::<Vec<_>>().join("; ");
    let unmatched = (!names.is_empty()).then_some((UNMATCHED, (Some(true), NO_SUCH_TOOL, names.as_str())));
    let before = before(facts, &status.name);
    let all = credentials.into_iter().chain(unmatched);
    status.conditions = all.map(|(kind, content)| condition(kind, content, before, facts.now)).collect();
    status
}

/// The reports of the processes that run the agent: the supervisor's pods, or its own if it is remote.
fn running<'a>(facts: &Facts<'a>, status: &AgentStatus) -> Vec<&'a AgentReport> {
    let of_supervisor =
        facts.reports.iter().flatten().filter(|_| status.placement == AgentPlacement::InProcess);
    let own = facts.agent_reports.iter().filter(|_| status.placement == AgentPlacement::Remote);
    let agents = of_supervisor.chain(own).flat_map(|report| &report.agents);
    let is_it =
        |agent: &&AgentReport| agent.name == status.name && agent.placement == AgentPlacement::InProcess;
    agents.filter(is_it).collect()
}

fn before<'a>(facts: &Facts<'a>, name: &str) -> &'a [Condition] {
    let agents = facts.before.map(|before| before.agents.as_slice()).unwrap_or_default();
    agents
        .iter()
        .find(|agent| agent.name == name)
        .map(|agent| agent.conditions.as_slice())
        .unwrap_or_default()
}

fn of_credentials(checked: &CredentialReport) -> (Option<bool>, &'static str, &str) {
    let status = match checked.reason {
        CredentialReason::Accepted => Some(true),
        CredentialReason::Refused | CredentialReason::ScopeMissing => Some(false),
        CredentialReason::NotChecked | CredentialReason::Unreachable | CredentialReason::Failed => None,
    };
    (status, checked.reason.as_str(), &checked.message)
}

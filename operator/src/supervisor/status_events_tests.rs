use caipe_crds::resource::agent_state::AgentPlacement;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::*;

fn status(
    conditions: &[(&str, bool, Why, &str)],
    agents: &[(&str, AgentPlacement, AgentPhase)],
) -> CaipeSupervisorStatus {
    let condition = |(kind, status, reason, message): &(&str, bool, Why, &str)| Condition {
        type_: (*kind).to_owned(),
        status: if *status { "True" } else { "False" }.to_owned(),
        reason: reason.as_str().to_owned(),
        message: (*message).to_owned(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    };
    let agent = |(name, placement, phase): &(&str, AgentPlacement, AgentPhase)| AgentStatus {
        name: (*name).to_owned(),
        placement: *placement,
        phase: *phase,
        endpoint: None,
        protocol_version: None,
        latency_ms: None,
        last_probe_time: None,
        active_tasks: None,
        conditions: Vec::new(),
        message: Some("connection refused".to_owned()),
    };
    CaipeSupervisorStatus {
        epoch: Some(2),
        conditions: conditions.iter().map(condition).collect(),
        agents: agents.iter().map(agent).collect(),
        ..CaipeSupervisorStatus::default()
    }
}

fn reported(before: &CaipeSupervisorStatus, after: &CaipeSupervisorStatus) -> Vec<String> {
    let events = changes(Some(before), after);
    events.iter().map(|event| format!("{} {}: {}", event.reason, event.about, event.text)).collect()
}

#[test]
fn changes_of_an_agent_cause_events() {
    let with = |placement, phase| status(&[], &[("a", placement, phase)]);
    let (here, away) = (AgentPlacement::InProcess, AgentPlacement::Remote);
    let cases = [
        (
            with(here, AgentPhase::Ready),
            with(away, AgentPhase::Ready),
            Some("AgentMoved a: agent a moved from InProcess to Remote"),
        ),
        (
            with(away, AgentPhase::Ready),
            with(away, AgentPhase::Unreachable),
            Some("AgentUnreachable a: agent a cannot be reached: connection refused"),
        ),
        (
            with(away, AgentPhase::Unreachable),
            with(away, AgentPhase::Ready),
            Some("AgentRecovered a: agent a is usable again"),
        ),
        (
            with(here, AgentPhase::Ready),
            with(here, AgentPhase::Degraded),
            Some("AgentDegraded a: agent a is usable in part: connection refused"),
        ),
        (with(away, AgentPhase::Pending), with(away, AgentPhase::Ready), None),
        (with(away, AgentPhase::Ready), with(away, AgentPhase::Ready), None),
    ];
    for (before, after, expected) in cases {
        assert_eq!(reported(&before, &after), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn rollouts_and_refusals_cause_one_event() {
    let idle = status(&[("Ready", true, Why::AllAgentsUsable, "all")], &[]);
    let rolling = status(&[("Reconciling", true, Why::RollingOut, "0 of 1")], &[]);
    let stalled = status(&[("Stalled", true, Why::InvalidSpec, "spec.agents: no")], &[]);
    assert_eq!(reported(&idle, &rolling), ["RolloutStarted : 0 of 1"]);
    assert_eq!(reported(&rolling, &rolling), [""; 0]);
    let retrying = status(&[("Reconciling", true, Why::Retrying, "no quota")], &[]);
    for before in [&idle, &rolling] {
        assert_eq!(reported(before, &retrying), ["ApplyFailed : no quota"]);
    }
    assert_eq!(reported(&retrying, &retrying), [""; 0]);
    let moving = status(&[("Reconciling", true, Why::Moving, "jira")], &[]);
    assert_eq!(reported(&idle, &moving), [""; 0], "the event of the agent follows");
    assert_eq!(reported(&rolling, &idle), ["RolloutFinished : the supervisor runs spec 2"]);
    assert_eq!(reported(&idle, &stalled), ["InvalidSpec : spec.agents: no"]);
    assert_eq!(reported(&stalled, &stalled), [""; 0]);
}

#[test]
fn what_a_status_says_of_references() {
    let ready = |is, why| status(&[("Ready", is, why, "missing Secrets: s")], &[]);
    for (status, expected) in [
        (ready(true, Why::AllAgentsUsable), ReferenceState::Found),
        (ready(false, Why::RollingOut), ReferenceState::Found),
        (ready(false, Why::ReferenceMissing), ReferenceState::Missing("missing Secrets: s")),
        (ready(false, Why::InvalidSpec), ReferenceState::Unknown),
        (ready(false, Why::Retrying), ReferenceState::Unknown),
        (status(&[], &[]), ReferenceState::Unknown),
    ] {
        assert_eq!(references(Some(&status)), expected, "{:?}", status.conditions);
    }
    assert_eq!(references(None), ReferenceState::Unknown);
}

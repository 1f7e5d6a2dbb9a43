use caipe_crds::internal_status::{AgentReport, DrainingInstance, LimitReport, NextInstance, Report};
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};

use super::super::result::CardSummary;
use super::*;

fn agent() -> AgentReport {
    AgentReport {
        endpoint: Some("http://platform-argocd.team.svc:8000".into()),
        protocol_version: Some("1.0".into()),
        latency_ms: Some(4),
        active_tasks: 2,
        ..AgentReport::new("argocd", AgentPlacement::Remote, AgentPhase::Ready, 3)
    }
}

fn draining() -> DrainingInstance {
    DrainingInstance {
        name: "jira".into(),
        placement: AgentPlacement::InProcess,
        endpoint: None,
        active_tasks: 2,
    }
}

fn limited(limit: &str, count: u64) -> LimitReport {
    let since = jiff::Timestamp::UNIX_EPOCH;
    LimitReport { agent: "argocd".into(), limit: limit.into(), count, since }
}

fn result() -> ProbeResult {
    let report = Report {
        epoch: 3,
        running_epoch: 3,
        waiting: Vec::new(),
        warnings: Vec::new(),
        limits: vec![limited("tokens", 6)],
        hash: "abc".into(),
        refused: None,
        agents: vec![agent()],
        draining: vec![draining()],
    };
    let card = CardSummary { name: "argocd".into(), protocol_version: "1.0".into(), latency_ms: 4 };
    ProbeResult { report: Some(report), card: Some(card), failure: None }
}

fn next() -> NextInstance {
    NextInstance {
        placement: AgentPlacement::InProcess,
        phase: AgentPhase::Pending,
        endpoint: None,
        message: None,
    }
}

type Change = (&'static str, bool, fn(&mut ProbeResult));

/// Every field, and whether a change of it is worth a pass.
const CHANGES: &[Change] = &[
    ("epoch", true, |result| report(result).epoch += 1),
    ("running epoch", true, |result| report(result).running_epoch += 1),
    ("hash", true, |result| report(result).hash = "def".into()),
    ("refused", true, |result| report(result).refused = Some("no".into())),
    ("another limit", true, |result| report(result).limits.push(limited("calls", 1))),
    ("a count", false, |result| report(result).limits[0].count += 1),
    ("a count that has doubled", true, |result| report(result).limits[0].count *= 2),
    ("an agent more", true, |result| report(result).agents.push(agent())),
    ("an agent less", true, |result| report(result).agents.clear()),
    ("agent: name", true, |result| first(result).name = "jira".into()),
    ("agent: placement", true, |result| first(result).placement = AgentPlacement::InProcess),
    ("agent: phase", true, |result| first(result).phase = AgentPhase::Degraded),
    ("agent: epoch", true, |result| first(result).epoch += 1),
    ("agent: endpoint", true, |result| first(result).endpoint = None),
    ("agent: version", true, |result| first(result).protocol_version = Some("0.3".into())),
    ("agent: latency", false, |result| first(result).latency_ms = Some(900)),
    ("agent: probe time", false, |result| {
        first(result).last_probe_time = Some(k8s_openapi::jiff::Timestamp::MAX);
    }),
    ("agent: more tasks", false, |result| first(result).active_tasks += 1),
    ("agent: no task", true, |result| first(result).active_tasks = 0),
    ("agent: tools", false, |result| first(result).tools = vec!["search".into()]),
    ("agent: message", true, |result| first(result).message = Some("tools are missing".into())),
    ("agent: next", true, |result| first(result).next = Some(next())),
    ("draining: less tasks", false, |result| report(result).draining[0].active_tasks -= 1),
    ("draining: no task", true, |result| report(result).draining[0].active_tasks = 0),
    ("draining: name", true, |result| report(result).draining[0].name = "argocd".into()),
    ("draining: placement", true, |result| report(result).draining[0].placement = AgentPlacement::Remote),
    ("draining: endpoint", true, |result| report(result).draining[0].endpoint = Some("http://x".into())),
    ("draining: gone", true, |result| report(result).draining.clear()),
    ("no report", true, |result| result.report = None),
    ("card: name", true, |result| card(result).name = "other".into()),
    ("card: version", true, |result| card(result).protocol_version = "0.3".into()),
    ("card: latency", false, |result| card(result).latency_ms = 900),
    ("no card", true, |result| result.card = None),
    ("failure", true, |result| result.failure = Some("failed to connect to the pod".into())),
];

fn report(result: &mut ProbeResult) -> &mut Report {
    result.report.as_mut().unwrap()
}

fn first(result: &mut ProbeResult) -> &mut AgentReport {
    &mut report(result).agents[0]
}

fn card(result: &mut ProbeResult) -> &mut CardSummary {
    result.card.as_mut().unwrap()
}

#[test]
fn what_a_status_or_a_decision_shows_matters_and_nothing_else() {
    for (what, expected, change) in CHANGES {
        let (before, mut after) = (result(), result());
        change(&mut after);
        assert_ne!(before, after, "{what}: nothing was changed");
        assert_eq!(is_significant(Some(&before), Some(&after)), *expected, "{what}");
        assert_eq!(is_significant(Some(&after), Some(&before)), *expected, "{what}, back");
    }
}

#[test]
fn a_pod_that_is_seen_for_the_first_time_matters() {
    assert!(!is_significant(None, None));
    assert!(!is_significant(Some(&result()), Some(&result())));
    assert!(is_significant(None, Some(&result())));
    assert!(is_significant(Some(&result()), None));
}

#[test]
fn every_part_of_a_pending_placement_is_significant() {
    let with = |next: NextInstance| {
        let mut result = result();
        first(&mut result).next = Some(next);
        result
    };
    for other in [
        NextInstance { placement: AgentPlacement::Remote, ..next() },
        NextInstance { phase: AgentPhase::Ready, ..next() },
        NextInstance { endpoint: Some("http://x".into()), ..next() },
        NextInstance { message: Some("loads its tools".into()), ..next() },
    ] {
        assert!(is_significant(Some(&with(next())), Some(&with(other))));
    }
}

use caipe_crds::resource::status::{AgentPhase, AgentPlacement};

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

fn draining() -> DrainingHome {
    DrainingHome {
        name: "jira".into(),
        placement: AgentPlacement::InProcess,
        endpoint: None,
        active_tasks: 2,
    }
}

fn view() -> View {
    let report = Report {
        epoch: 3,
        running_epoch: 3,
        waiting: Vec::new(),
        hash: "abc".into(),
        refused: None,
        agents: vec![agent()],
        draining: vec![draining()],
    };
    let card = CardSeen { name: "argocd".into(), protocol_version: "1.0".into(), latency_ms: 4 };
    View { report: Some(report), card: Some(card), failure: None }
}

fn next() -> NextHome {
    NextHome {
        placement: AgentPlacement::InProcess,
        phase: AgentPhase::Pending,
        endpoint: None,
        message: None,
    }
}

type Change = (&'static str, bool, fn(&mut View));

/// Every field, and whether a change of it is worth a pass.
const CHANGES: &[Change] = &[
    ("epoch", true, |view| report(view).epoch += 1),
    ("running epoch", true, |view| report(view).running_epoch += 1),
    ("hash", true, |view| report(view).hash = "def".into()),
    ("refused", true, |view| report(view).refused = Some("no".into())),
    ("an agent more", true, |view| report(view).agents.push(agent())),
    ("an agent less", true, |view| report(view).agents.clear()),
    ("agent: name", true, |view| first(view).name = "jira".into()),
    ("agent: placement", true, |view| first(view).placement = AgentPlacement::InProcess),
    ("agent: phase", true, |view| first(view).phase = AgentPhase::Degraded),
    ("agent: epoch", true, |view| first(view).epoch += 1),
    ("agent: endpoint", true, |view| first(view).endpoint = None),
    ("agent: version", true, |view| first(view).protocol_version = Some("0.3".into())),
    ("agent: latency", false, |view| first(view).latency_ms = Some(900)),
    ("agent: probe time", false, |view| {
        first(view).last_probe_time = Some(caipe_crds::report::Time(k8s_openapi::jiff::Timestamp::MAX));
    }),
    ("agent: more tasks", false, |view| first(view).active_tasks += 1),
    ("agent: no task", true, |view| first(view).active_tasks = 0),
    ("agent: tools", false, |view| first(view).tools = vec!["search".into()]),
    ("agent: message", true, |view| first(view).message = Some("tools are missing".into())),
    ("agent: next", true, |view| first(view).next = Some(next())),
    ("draining: less tasks", false, |view| report(view).draining[0].active_tasks -= 1),
    ("draining: no task", true, |view| report(view).draining[0].active_tasks = 0),
    ("draining: name", true, |view| report(view).draining[0].name = "argocd".into()),
    ("draining: placement", true, |view| report(view).draining[0].placement = AgentPlacement::Remote),
    ("draining: endpoint", true, |view| report(view).draining[0].endpoint = Some("http://x".into())),
    ("draining: gone", true, |view| report(view).draining.clear()),
    ("no report", true, |view| view.report = None),
    ("card: name", true, |view| card(view).name = "other".into()),
    ("card: version", true, |view| card(view).protocol_version = "0.3".into()),
    ("card: latency", false, |view| card(view).latency_ms = 900),
    ("no card", true, |view| view.card = None),
    ("failure", true, |view| view.failure = Some("failed to connect to the pod".into())),
];

fn report(view: &mut View) -> &mut Report {
    view.report.as_mut().unwrap()
}

fn first(view: &mut View) -> &mut AgentReport {
    &mut report(view).agents[0]
}

fn card(view: &mut View) -> &mut CardSeen {
    view.card.as_mut().unwrap()
}

#[test]
fn what_a_status_or_a_decision_shows_matters_and_nothing_else() {
    for (what, expected, change) in CHANGES {
        let (before, mut after) = (view(), view());
        change(&mut after);
        assert_ne!(before, after, "{what}: nothing was changed");
        assert_eq!(matters(Some(&before), Some(&after)), *expected, "{what}");
        assert_eq!(matters(Some(&after), Some(&before)), *expected, "{what}, back");
    }
}

#[test]
fn a_pod_that_is_seen_for_the_first_time_matters() {
    assert!(!matters(None, None));
    assert!(!matters(Some(&view()), Some(&view())));
    assert!(matters(None, Some(&view())));
    assert!(matters(Some(&view()), None));
}

#[test]
fn a_home_that_is_made_ready_matters_in_all_its_parts() {
    let with = |next: NextHome| {
        let mut view = view();
        first(&mut view).next = Some(next);
        view
    };
    for other in [
        NextHome { placement: AgentPlacement::Remote, ..next() },
        NextHome { phase: AgentPhase::Ready, ..next() },
        NextHome { endpoint: Some("http://x".into()), ..next() },
        NextHome { message: Some("loads its tools".into()), ..next() },
    ] {
        assert!(matters(Some(&with(next())), Some(&with(other))));
    }
}

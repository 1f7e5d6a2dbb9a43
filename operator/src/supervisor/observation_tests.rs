use caipe_crds::internal_status::Report;

use super::*;
use crate::cache::{Details, Trouble};
use crate::probe::ProbeResult;

fn pod(component: &str, agent: Option<&str>, deleting: bool) -> Pod {
    let (component, agent) = (component.into(), agent.map(Into::into));
    let ip = Some(std::net::Ipv4Addr::LOCALHOST.into());
    Pod { component, agent, ip, ready: true, deleting, ..Pod::default() }
}

fn idle(epoch: u64) -> ProbeResult {
    let report = Report {
        epoch,
        running_epoch: epoch,
        waiting: Vec::new(),
        warnings: Vec::new(),
        limits: Vec::new(),
        hash: String::new(),
        refused: None,
        agents: Vec::new(),
        draining: Vec::new(),
    };
    ProbeResult { report: Some(report), ..ProbeResult::default() }
}

fn observation(pods: &[(&str, Pod)], results: &[(&str, ProbeResult)]) -> Observation {
    let pods = pods.iter().map(|(name, pod)| ((*name).into(), pod.clone())).collect();
    let results = results.iter().map(|(name, view)| ((*name).to_owned(), view.clone())).collect();
    Observation::new(
        &Key::new("team", "platform"),
        Arc::new(ObservedState { pods, ..ObservedState::default() }),
        results,
    )
}

#[test]
fn old_instances_may_be_busy_until_every_supervisor_pod_reports() {
    let supervisor = |deleting| pod(labels::COMPONENT_SUPERVISOR, None, deleting);
    let agent = pod(labels::COMPONENT_AGENT, Some("jira"), true);
    let starting = Pod { ready: false, ..supervisor(false) };
    let unscheduled = Pod { ip: None, ..starting.clone() };
    let evicted = |deleting| Pod { ended: true, ready: false, ..supervisor(deleting) };
    let seen = [("new", idle(2))];
    for (case, pods, results, known) in [
        ("nobody is there yet", vec![], vec![], false),
        ("it was not asked", vec![("new", supervisor(false))], vec![], false),
        ("it runs the spec", vec![("new", supervisor(false))], seen.to_vec(), true),
        (
            "one before it ends",
            vec![("new", supervisor(false)), ("old", supervisor(true))],
            seen.to_vec(),
            false,
        ),
        (
            "one that starts may have taken up a task",
            vec![("new", supervisor(false)), ("x", starting)],
            seen.to_vec(),
            false,
        ),
        (
            "one that runs an older spec",
            vec![("new", supervisor(false)), ("x", supervisor(false))],
            vec![("new", idle(2)), ("x", idle(1))],
            false,
        ),
        ("one that never ran", vec![("new", supervisor(false)), ("x", unscheduled)], seen.to_vec(), true),
        (
            "one that was evicted",
            vec![("new", supervisor(false)), ("x", evicted(false))],
            seen.to_vec(),
            true,
        ),
        ("one that has ended", vec![("new", supervisor(false)), ("x", evicted(true))], seen.to_vec(), true),
        ("an agent's pod ends", vec![("new", supervisor(false)), ("x", agent)], seen.to_vec(), true),
    ] {
        assert_eq!(observation(&pods, &results).use_of(2).known, known, "{case}");
    }
}

#[test]
fn callers_see_the_pods_that_receive_requests() {
    let ready = pod(labels::COMPONENT_SUPERVISOR, None, false);
    let starting = Pod { ready: false, ..ready.clone() };
    let ended = Pod { ended: true, ..starting.clone() };
    let leaving = pod(labels::COMPONENT_SUPERVISOR, None, true);
    for (case, pods, counts, serving, others) in [
        ("all are ready", vec![&ready, &ready], (2, 2), vec![0, 1], vec![]),
        ("one starts", vec![&starting, &ready], (2, 1), vec![1], vec![0]),
        ("none is ready", vec![&starting, &starting], (2, 0), vec![0, 1], vec![]),
        ("others have ended or terminate", vec![&ready, &ended, &leaving], (1, 1), vec![0], vec![]),
    ] {
        let names = ["0", "1", "2"];
        let pods: Vec<_> = names.into_iter().zip(pods.into_iter().cloned()).collect();
        let results = [("0", idle(0)), ("1", idle(1)), ("2", idle(2))];
        let seen = observation(&pods, &results);
        let epochs = |reports: Vec<&Report>| reports.iter().map(|report| report.epoch).collect::<Vec<_>>();
        assert_eq!(seen.pod_counts(), counts, "{case}");
        assert_eq!(epochs(seen.reports().into_iter().flatten().collect()), serving, "{case}");
        assert_eq!(epochs(seen.starting()), others, "{case}");
    }
}

/// A Deployment of the agent `jira`.
fn deployment(name: &str, failure: Option<&str>) -> (Child, Workload) {
    let details = Details { agent: Some("jira".to_owned()), ..Details::default() };
    let child = Child { details: details.boxed(), ..Child::bare(Kind::Deployment, name) };
    (child, Workload { failure: failure.map(Into::into), ..Workload::default() })
}

fn broken(component: &str, deleting: bool, reason: &str) -> Pod {
    let trouble = Trouble { container: None, reason: reason.to_owned(), message: None, ended: false };
    Pod { trouble: Some(Box::new(trouble)), ready: false, ..pod(component, Some("jira"), deleting) }
}

#[test]
fn problems_of_pods_are_assigned_to_their_component() {
    let fine = |component| pod(component, Some("jira"), false);
    let (agent, tools) = (labels::COMPONENT_AGENT, labels::COMPONENT_TOOL_SERVER);
    let facts = |failure: Option<&str>, trouble: Option<&str>, tools: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        RemoteFacts { failure: text(failure), trouble: text(trouble), ready: true, tools: text(tools) }
    };
    let down = RemoteFacts { ready: false, ..facts(None, Some("ImagePullBackOff"), None) };
    for (case, pods, expected) in [
        ("all is well", vec![fine(agent), fine(tools)], facts(None, None, None)),
        (
            "a second pod beside one that answers",
            vec![fine(agent), broken(agent, false, "ImagePullBackOff")],
            facts(None, Some("ImagePullBackOff"), None),
        ),
        ("the only pod", vec![broken(agent, false, "ImagePullBackOff"), fine(tools)], down),
        (
            "a pod that goes",
            vec![fine(agent), broken(agent, true, "CrashLoopBackOff")],
            facts(None, None, None),
        ),
        (
            "a tool server of it",
            vec![fine(agent), broken(tools, false, "CrashLoopBackOff")],
            facts(None, None, Some("CrashLoopBackOff")),
        ),
    ] {
        let names = ["one", "two"];
        let mut observation = observation(&names.into_iter().zip(pods).collect::<Vec<_>>(), &[]);
        for (name, failure) in [("platform-jira", None), ("platform-jira-files", Some("of a tool server"))] {
            let (child, workload) = deployment(name, failure);
            let observed = Arc::make_mut(&mut observation.observed);
            observed.children.insert((Kind::Deployment, name.into()), child);
            observed.workloads.insert(name.into(), workload);
        }
        assert_eq!(observation.remotes(), BTreeMap::from([("jira".to_owned(), expected)]), "{case}");
    }
}

#[test]
fn failed_containers_are_assigned_to_their_component() {
    let (agent, tools) = (labels::COMPONENT_AGENT, labels::COMPONENT_TOOL_SERVER);
    let killed = |component, deleting| {
        let trouble = Trouble { ended: true, ..*broken(component, deleting, "OOMKilled").trouble.unwrap() };
        Pod { trouble: Some(Box::new(trouble)), ..pod(component, Some("jira"), deleting) }
    };
    let server = |name: &str| Pod { tool_server: Some(name.into()), ..killed(tools, false) };
    let pods = [
        ("a", killed(agent, false)),
        ("b", killed(agent, true)),
        ("c", broken(agent, false, "ImagePullBackOff")),
        ("d", server("files")),
        ("e", server("search")),
        ("f", killed(labels::COMPONENT_SUPERVISOR, false)),
        ("g", killed(labels::COMPONENT_SLACK_BOT, false)),
    ];
    let reported =
        observation(&pods, &[]).failed_containers().into_iter().map(|(owner, how)| format!("{owner}: {how}"));
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [
            "the supervisor: OOMKilled",
            "agent jira: OOMKilled",
            "tool server files of agent jira: OOMKilled",
            "tool server search of agent jira: OOMKilled",
            "the Slack bot: OOMKilled",
        ]
    );
    assert!(
        observation(&[("b", killed(agent, true))], &[]).failed_containers().is_empty(),
        "one that goes is nobody's trouble"
    );
}

#[test]
fn the_slack_bot_does_not_count_for_the_progress_of_a_rollout() {
    let mut observation = observation(&[], &[]);
    let workloads = &mut Arc::make_mut(&mut observation.observed).workloads;
    let failed = Workload { failure: Some("no pod".into()), ..Workload::default() };
    workloads.insert("platform".into(), Workload { rolled_out: true, ..Workload::default() });
    workloads.insert(names::slack_bot("platform").as_str().into(), failed.clone());
    assert_eq!(observation.progress(), Progress::Done);
    Arc::make_mut(&mut observation.observed).workloads.insert("platform".into(), failed);
    assert_eq!(observation.progress(), Progress::Failed);
}

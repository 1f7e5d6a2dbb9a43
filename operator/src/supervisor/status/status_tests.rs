use caipe_crds::internal_status::{
    AgentReport, CredentialReason, CredentialReport, DrainingInstance, LimitReport, NextInstance,
};
use caipe_crds::{Target, resolve_for};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::*;

/// Two agents: `a` remote, `b` in-process.
fn decision(epoch: u64) -> Decision {
    let text = "{apiVersion: caipe.io/v1alpha1, kind: CaipeSupervisor, metadata: {name: p}, spec: {distributedAgents: [a], agents: [
        {name: a, identity: {inline: {description: d, systemPrompt: p}}}, {name: b, identity: {inline: {description: d, systemPrompt: p}}}]}}";
    let resource = caipe_crds::read_resource(text).unwrap();
    let target = Target::Cluster { namespace: "n".to_owned(), config_maps: BTreeMap::new() };
    let wanted = resolve_for(&resource, &BTreeMap::new(), &target).unwrap().spec;
    let mut spec = wanted.clone();
    spec.epoch = epoch;
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    Decision {
        spec,
        wanted,
        hosted: names("b"),
        remote: names("a"),
        draining: BTreeMap::new(),
        overlaps: false,
    }
}

fn agent(name: &str, placement: AgentPlacement, phase: AgentPhase) -> AgentReport {
    AgentReport {
        endpoint: (placement == AgentPlacement::Remote).then(|| "http://p-a.n.svc:8000".to_owned()),
        latency_ms: Some(3),
        message: (phase != AgentPhase::Ready).then(|| "connection refused".to_owned()),
        ..AgentReport::new(name, placement, phase, 1)
    }
}

fn report(epoch: u64, a: AgentPhase, b: AgentPhase) -> Report {
    Report {
        epoch,
        running_epoch: epoch,
        waiting: Vec::new(),
        warnings: Vec::new(),
        limits: Vec::new(),
        hash: format!("hash-{epoch}"),
        refused: None,
        agents: vec![agent("a", AgentPlacement::Remote, a), agent("b", AgentPlacement::InProcess, b)],
        draining: Vec::new(),
    }
}

fn workload(available: i32) -> Workload {
    Workload { replicas: 1, updated: 1, available, rolled_out: available == 1, ..Workload::default() }
}

/// What is known in a test; everything is well.
struct Given {
    before: Option<CaipeSupervisorStatus>,
    refusal: Option<Refusal>,
    decision: Option<Decision>,
    held: BTreeMap<String, PendingMigration>,
    draining: BTreeSet<String>,
    missing: Missing,
    supervisor: Option<Workload>,
    reports: Vec<Option<Report>>,
    starting: Vec<Report>,
    agent_reports: Vec<Report>,
    trouble: Option<String>,
    remotes: BTreeMap<String, RemoteFacts>,
    slack: Option<SlackFacts>,
    pending_rollout: Option<&'static str>,
    unreadable_budgets: Option<&'static str>,
    second: i64,
}

fn well() -> Given {
    Given {
        before: None,
        refusal: None,
        decision: Some(decision(1)),
        held: BTreeMap::new(),
        draining: BTreeSet::new(),
        missing: Missing::default(),
        supervisor: Some(workload(1)),
        reports: vec![Some(report(1, AgentPhase::Ready, AgentPhase::Ready))],
        starting: Vec::new(),
        agent_reports: Vec::new(),
        trouble: None,
        remotes: BTreeMap::new(),
        slack: None,
        pending_rollout: None,
        unreadable_budgets: None,
        second: 0,
    }
}

fn resource(spec: &str) -> CaipeSupervisor {
    let text = format!(
        "{{apiVersion: caipe.io/v1alpha1, kind: CaipeSupervisor, metadata: {{name: p, namespace: 'n'}}, spec: {spec}}}"
    );
    caipe_crds::read_resource(&text).unwrap()
}

#[test]
fn the_status_says_where_clients_connect_and_what_an_autoscaler_counts() {
    for (spec, url) in [
        ("{}", "http://p.n.svc:8000"),
        ("{service: {port: 80}}", "http://p.n.svc:80"),
        ("{card: {externalUrl: 'https://caipe.example.com'}}", "https://caipe.example.com"),
    ] {
        let status = well().status_of(&resource(spec));
        assert_eq!(status.url.as_deref(), Some(url), "{spec}");
        assert_eq!(status.keys_secret.as_deref(), Some("p.keys"));
        assert_eq!((status.replicas, status.ready_replicas), (Some(1), Some(1)));
        let selector = "app.kubernetes.io/name=caipe,app.kubernetes.io/instance=p,app.kubernetes.io/component=supervisor";
        assert_eq!(status.selector.as_deref(), Some(selector));
    }
    let new = Given { decision: None, ..well() };
    assert_eq!(new.status().keys_secret, None, "no Secret has been created yet");
    let known = Given { before: Some(well().status()), ..new };
    assert_eq!(known.status().keys_secret.as_deref(), Some("p.keys"));
    let stopped = Given { reports: Vec::new(), ..well() };
    assert_eq!(stopped.status().replicas, Some(0));
}

fn secret(name: &str) -> Missing {
    Missing { secrets: [name.to_owned()].into(), ..Missing::default() }
}

impl Given {
    fn status(&self) -> CaipeSupervisorStatus {
        self.status_of(&resource("{}"))
    }

    fn status_of(&self, resource: &CaipeSupervisor) -> CaipeSupervisorStatus {
        let reports: Vec<Option<&Report>> = self.reports.iter().map(Option::as_ref).collect();
        status(Facts {
            resource,
            generation: 4,
            before: self.before.as_ref(),
            refusal: self.refusal.as_ref(),
            decision: self.decision.as_ref(),
            held: &self.held,
            draining: &self.draining,
            missing: &self.missing,
            supervisor: self.supervisor.as_ref(),
            pods: (reports.len(), reports.iter().flatten().count()),
            reports: &reports,
            starting: &self.starting.iter().collect::<Vec<_>>(),
            agent_reports: &self.agent_reports.iter().collect::<Vec<_>>(),
            trouble: self.trouble.as_deref(),
            remotes: &self.remotes,
            slack: self.slack.as_ref(),
            pending_rollout: self.pending_rollout,
            unreadable_budgets: self.unreadable_budgets,
            now: Timestamp::new(1_800_000_000 + self.second, 123_456_789).unwrap(),
        })
    }
}

fn condition<'a>(status: &'a CaipeSupervisorStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|it| it.type_ == kind)
}

/// A condition as `True AllAgentsUsable: all 2 agents are usable`; empty if it is not there.
fn reported(status: &CaipeSupervisorStatus, kind: &str) -> String {
    let condition = condition(status, kind);
    condition.map(|it| format!("{} {}: {}", it.status, it.reason, it.message)).unwrap_or_default()
}

#[test]
fn everything_is_well() {
    let status = well().status();
    assert_eq!(reported(&status, "Ready"), "True AllAgentsUsable: all 2 agents are usable");
    assert_eq!(reported(&status, "AgentsConnected"), "True AllConnected: the remote agent answers");
    assert_eq!(
        (reported(&status, "Reconciling"), reported(&status, "Stalled")),
        (String::new(), String::new())
    );
    assert_eq!((status.observed_generation, status.epoch), (4, Some(1)));
    assert_eq!(status.spec_hash.as_deref(), Some("hash-1"));
    assert_eq!((status.agents_ready.as_deref(), status.remote_agents), (Some("2/2"), Some(1)));
    assert!(status.conditions.iter().all(|it| it.observed_generation == Some(4)));
}

type Change = fn(&mut Given);

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_trouble_is_reported_with_its_reason() {
    let cases: Vec<(&str, Change, &str, &str)> = vec![
        (
            "no pod yet",
            |given| (given.supervisor, given.reports) = (Some(workload(0)), Vec::new()),
            "False RollingOut: 0 of 1 supervisor pods are available",
            "True RollingOut: 0 of 1 supervisor pods are available",
        ),
        (
            "an image that cannot be pulled",
            |given| {
                (given.supervisor, given.reports) = (Some(workload(0)), vec![None]);
                given.trouble = Some("container supervisor: ImagePullBackOff".to_owned());
            },
            "False RollingOut: 0 of 1 supervisor pods are available: container supervisor: ImagePullBackOff",
            "True RollingOut: 0 of 1 supervisor pods are available: container supervisor: ImagePullBackOff",
        ),
        (
            "a pod that lives and takes no questions",
            |given| {
                let waiting = vec!["no model can be asked".to_owned()];
                let ready = report(1, AgentPhase::Ready, AgentPhase::Ready);
                given.supervisor = Some(workload(0));
                given.reports = vec![Some(Report { waiting, ..ready })];
            },
            "False RollingOut: 0 of 1 supervisor pods are available: no model can be asked",
            "True RollingOut: 0 of 1 supervisor pods are available: no model can be asked",
        ),
        (
            "pods that wait for a Secret",
            |given| {
                (given.supervisor, given.reports) = (Some(workload(0)), vec![None]);
                given.missing = secret("llm");
            },
            "False ReferenceMissing: missing Secrets: llm; create them, or correct the names",
            "True RollingOut: 0 of 1 supervisor pods are available",
        ),
        (
            "an old pod beside the new one",
            |given| {
                given.supervisor = Some(Workload { updated: 0, rolled_out: false, ..workload(1) });
            },
            "False RollingOut: 0 of 1 supervisor pods are new, and old ones are being replaced",
            "True RollingOut: 0 of 1 supervisor pods are new, and old ones are being replaced",
        ),
        (
            "pods that nobody has seen yet",
            |given| given.reports = Vec::new(),
            "False EpochPending: no supervisor pod has answered yet",
            "True EpochPending: no supervisor pod has answered yet",
        ),
        (
            "a text that is not there",
            |given| {
                given.missing = Missing { config_maps: ["id".to_owned()].into(), ..secret("llm") };
                let message = given.missing.to_string();
                given.refusal = Some(Refusal { reason: Reason::ReferenceMissing, message });
            },
            "False ReferenceMissing: missing Secrets: llm; missing ConfigMaps: id; create them, or correct the names; what runs keeps running",
            "",
        ),
        (
            "an API server that fails, of a resource that nobody has looked at",
            |given| {
                given.refusal =
                    Some(Refusal { reason: Reason::Retrying, message: "failed to apply it".to_owned() });
            },
            "False Retrying: failed to apply it",
            "True Retrying: failed to apply it",
        ),
        (
            "an API server that fails, of a resource that was ready",
            |given| {
                given.before = Some(well().status());
                given.refusal =
                    Some(Refusal { reason: Reason::Retrying, message: "failed to apply it".to_owned() });
            },
            "True AllAgentsUsable: all 2 agents are usable",
            "True Retrying: failed to apply it",
        ),
        (
            "a second pod that does not come up beside one that answers",
            |given| {
                given.supervisor = Some(Workload { replicas: 2, ..workload(1) });
                given.supervisor.iter_mut().for_each(|workload| workload.rolled_out = false);
                given.reports.push(None);
                given.trouble = Some("Unschedulable (0/1 nodes are available)".to_owned());
            },
            "False RollingOut: 1 of 2 supervisor pods are available: Unschedulable (0/1 nodes are available)",
            "True RollingOut: 1 of 2 supervisor pods are available: Unschedulable (0/1 nodes are available)",
        ),
        (
            "one more pod that does not come up beside those that serve",
            |given| {
                given.before = Some(well().status());
                let scaled = Workload { replicas: 2, overlaps: true, rolled_out: false, ..workload(1) };
                given.supervisor = Some(scaled);
                given.starting = vec![report(1, AgentPhase::Pending, AgentPhase::Pending)];
                given.trouble = Some("Unschedulable (0/1 nodes are available)".to_owned());
            },
            "True AllAgentsUsable: all 2 agents are usable",
            "True RollingOut: 1 of 2 supervisor pods are available: Unschedulable (0/1 nodes are available)",
        ),
        (
            "pods of a new resource, of which one serves",
            |given| {
                given.supervisor =
                    Some(Workload { replicas: 2, overlaps: true, rolled_out: false, ..workload(1) });
            },
            "False RollingOut: 1 of 2 supervisor pods are available",
            "True RollingOut: 1 of 2 supervisor pods are available",
        ),
        (
            "a spec on its way takes nothing away",
            |given| given.decision = Some(decision(2)),
            "True AllAgentsUsable: all 2 agents are usable",
            "True EpochPending: 1 supervisor pod has yet to take spec 2",
        ),
        (
            "a pod that says nothing",
            |given| given.reports = vec![None],
            "False EpochPending: 1 supervisor pod has yet to take spec 1",
            "True EpochPending: 1 supervisor pod has yet to take spec 1",
        ),
        (
            "an agent that cannot be reached",
            |given| given.reports = vec![Some(report(1, AgentPhase::Unreachable, AgentPhase::Ready))],
            "False AgentsNotReady: a is Unreachable: connection refused",
            "",
        ),
        (
            "a Secret that is not there",
            |given| given.missing = secret("argocd-token"),
            "False ReferenceMissing: missing Secrets: argocd-token; create them, or correct the names",
            "",
        ),
        (
            "an agent that waits for its new instance takes nothing away",
            |given| given.held = BTreeMap::from([("b".to_owned(), PendingMigration::UntilRemoteAnswers)]),
            "True AllAgentsUsable: all 2 agents are usable",
            "True Moving: agent b migrates as soon as its new placement is ready",
        ),
        (
            "scaled to nothing",
            |given| {
                given.supervisor = Some(Workload { rolled_out: true, ..Workload::default() });
                given.reports = Vec::new();
            },
            "False ScaledToZero: scaled to no pods: set replicas to 1 or more",
            "",
        ),
    ];
    for (case, change, ready, reconciling) in cases {
        let mut given = well();
        change(&mut given);
        let status = given.status();
        assert_eq!(reported(&status, "Ready"), ready, "{case}");
        assert_eq!(reported(&status, "Reconciling"), reconciling, "{case}");
        assert_eq!(reported(&status, "Stalled"), "", "{case}");
    }
}

#[test]
fn nothing_is_claimed_of_agents_that_nobody_looks_at() {
    let mut given = well();
    if let Some(decision) = &mut given.decision {
        decision.spec.connectivity.check = false;
    }
    let expected = "Unknown NotChecked: remote agents are not probed: connectivity.check is false";
    assert_eq!(reported(&given.status(), "AgentsConnected"), expected);
}

#[test]
fn a_resource_that_cannot_be_stalls_and_what_runs_is_still_shown() {
    let mut given = well();
    given.decision = None;
    given.refusal = Some(Refusal { reason: Reason::InvalidSpec, message: "spec.agents: no".to_owned() });
    let status = given.status();
    assert_eq!(reported(&status, "Stalled"), "True InvalidSpec: spec.agents: no");
    assert_eq!(reported(&status, "Ready"), "False InvalidSpec: spec.agents: no; what runs keeps running");
    assert_eq!(reported(&status, "Reconciling"), "");
    assert_eq!(status.agents.len(), 2);
    assert_eq!(status.agents_ready.as_deref(), Some("2/2"));
}

#[test]
fn a_rollout_that_kubernetes_gave_up_stalls() {
    let mut given = well();
    let failure = Some("ReplicaSet \"p-1\" has timed out progressing.".into());
    given.supervisor = Some(Workload { failure, ..workload(0) });
    given.trouble = Some("container supervisor: CrashLoopBackOff".to_owned());
    let status = given.status();
    let expected = "the supervisor's pods do not start: ReplicaSet \"p-1\" has timed out progressing.: container supervisor: CrashLoopBackOff";
    assert_eq!(reported(&status, "Stalled"), format!("True RolloutFailed: {expected}"));
}

#[test]
fn a_spec_that_the_supervisor_refused_stalls() {
    let mut given = well();
    let refused = Some("agents[0]: no".to_owned());
    given.reports = vec![Some(Report { refused, ..report(1, AgentPhase::Ready, AgentPhase::Ready) })];
    assert_eq!(
        reported(&given.status(), "Stalled"),
        "True SpecRefused: the supervisor refused the spec: agents[0]: no"
    );
}

#[test]
fn restrictions_that_pods_report_are_a_condition_while_they_last() {
    let mut given = well();
    assert!(given.status().conditions.iter().all(|condition| condition.type_ != "Degraded"));
    let warned = |warnings: &[&str]| {
        let warnings = warnings.iter().map(|&text| text.to_owned()).collect();
        Some(Report { warnings, ..report(1, AgentPhase::Ready, AgentPhase::Ready) })
    };
    given.reports = vec![warned(&["few files", "agent a: no tool matches x"]), warned(&["few files"])];
    assert_eq!(
        reported(&given.status(), "Degraded"),
        "True Restricted: agent a: no tool matches x; few files"
    );
    assert!(reported(&given.status(), "Ready").starts_with("True "), "it works nevertheless");
}

#[test]
fn unreadable_disruption_budgets_restrict_only_several_pods() {
    let mut given = Given { unreadable_budgets: Some("no budget"), ..well() };
    let restrictions = |given: &Given, replicas: u32| {
        let store = "store: {redis: {secretRef: {name: redis}}}";
        let status = given.status_of(&resource(&format!("{{replicas: {replicas}, {store}}}")));
        reported(&status, "Degraded")
    };
    assert_eq!((restrictions(&given, 1), restrictions(&given, 0)), (String::new(), String::new()));
    assert_eq!(restrictions(&given, 2), "True Restricted: no budget");
    let warnings = vec!["few files".to_owned()];
    given.reports = vec![Some(Report { warnings, ..report(1, AgentPhase::Ready, AgentPhase::Ready) })];
    assert_eq!(restrictions(&given, 2), "True Restricted: few files; no budget");
}

#[test]
fn the_worst_view_of_several_pods_counts() {
    let mut given = well();
    let results = [AgentPhase::Ready, AgentPhase::Degraded, AgentPhase::Ready];
    given.reports = results.map(|phase| Some(report(1, phase, AgentPhase::Ready))).to_vec();
    assert_eq!(given.status().agents[0].phase, AgentPhase::Degraded);
}

#[test]
fn problems_of_an_agents_pods_are_in_its_message() {
    let facts = |failure: &str, trouble: &str, tools: &str| {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RemoteFacts { failure: text(failure), trouble: text(trouble), ready: true, tools: text(tools) }
    };
    let alone = |trouble: &str| RemoteFacts { ready: false, ..facts("", trouble, "") };
    let pulls = "container a: ImagePullBackOff";
    let another = "responds, but another pod of it does not start: container a: ImagePullBackOff";
    let tools = "a tool server of it does not start: container a: ImagePullBackOff";
    let (ready, lost) = (AgentPhase::Ready, AgentPhase::Unreachable);
    // The agent, its phase, its pods, and what is said of it.
    let cases = [
        ("a", ready, facts("", "", ""), None),
        ("a", ready, facts("", pulls, ""), Some(another)),
        ("a", ready, alone(pulls), Some(pulls)),
        ("a", lost, facts("", pulls, ""), Some(pulls)),
        ("a", lost, facts("has timed out", "", ""), Some("has timed out")),
        ("a", lost, facts("has timed out", pulls, ""), Some(pulls)),
        ("a", lost, facts("", "", ""), Some("connection refused")),
        ("a", lost, facts("", "", pulls), Some(tools)),
        ("a", lost, facts("", pulls, "other"), Some(pulls)),
        // Nothing is left to come up where it used to be.
        ("b", ready, facts("", pulls, ""), None),
        ("b", lost, facts("", "", pulls), Some(tools)),
    ];
    for (name, phase, facts, expected) in cases {
        let mut given = well();
        given.remotes = BTreeMap::from([(name.to_owned(), facts.clone())]);
        given.reports = vec![Some(match name {
            "a" => report(1, phase, ready),
            _ => report(1, ready, phase),
        })];
        let status = given.status();
        let agent = status.agents.iter().find(|agent| agent.name == name).unwrap();
        assert_eq!(agent.message.as_deref(), expected, "{name} {phase:?} {facts:?}");
    }
}

/// A report of the process that runs the agent, whose credentials have been checked.
fn checked(name: &str, reason: CredentialReason, unmatched: &[&str]) -> Report {
    let message =
        (reason != CredentialReason::Accepted).then(|| "the credentials are refused: 401".to_owned());
    let credentials = Some(CredentialReport { reason, message: format!("get_me: {reason:?}") });
    let unmatched = unmatched.iter().map(|&name| name.to_owned()).collect();
    let refused = reason == CredentialReason::Refused;
    let phase = if refused { AgentPhase::Degraded } else { AgentPhase::Ready };
    let own = AgentReport::new(name, AgentPlacement::InProcess, phase, 1);
    let mut report = report(1, AgentPhase::Ready, AgentPhase::Ready);
    report.agents.retain(|agent| agent.name != name);
    report.agents.push(AgentReport { credentials, message, unmatched, ..own });
    report
}

/// The conditions of an agent, as those of the resource are written in [`reported`].
fn of_agent(status: &CaipeSupervisorStatus, name: &str) -> Vec<String> {
    let agent = status.agents.iter().find(|agent| agent.name == name).unwrap();
    let text = |it: &Condition| format!("{} {} {}: {}", it.type_, it.status, it.reason, it.message);
    agent.conditions.iter().map(text).collect()
}

#[test]
fn an_agent_says_whether_its_credentials_are_accepted() {
    use CredentialReason::{Accepted, Failed, NotChecked, Refused, ScopeMissing, Unreachable};
    for (reason, expected, phase) in [
        (Accepted, "True Accepted", AgentPhase::Ready),
        (Refused, "False Refused", AgentPhase::Degraded),
        (ScopeMissing, "False ScopeMissing", AgentPhase::Ready),
        (Unreachable, "Unknown Unreachable", AgentPhase::Ready),
        (Failed, "Unknown Failed", AgentPhase::Ready),
        (NotChecked, "Unknown NotChecked", AgentPhase::Ready),
    ] {
        let condition = format!("CredentialsAccepted {expected}: get_me: {reason:?}");
        // `a` is remote: its own pod checks, and the supervisor's reports that it answers.
        let remote = Given { agent_reports: vec![checked("a", reason, &[])], ..well() };
        let in_process = Given { reports: vec![Some(checked("b", reason, &[]))], ..well() };
        for (name, given) in [("a", remote), ("b", in_process)] {
            let status = given.status();
            assert_eq!(of_agent(&status, name).as_slice(), std::slice::from_ref(&condition), "{name}");
            let agent = status.agents.iter().find(|agent| agent.name == name).unwrap();
            assert_eq!(agent.phase, phase, "{name} {reason:?}");
            let refused =
                format!("False AgentsNotReady: {name} is Degraded: the credentials are refused: 401");
            let ready = reported(&status, "Ready");
            assert_eq!(ready == refused, reason == Refused, "{ready}");
        }
    }
    assert_eq!(of_agent(&well().status(), "a"), Vec::<String>::new(), "nothing was checked");
}

#[test]
fn the_worst_check_counts_and_keeps_its_time_and_every_unmatched_name_is_listed() {
    use CredentialReason::{Accepted, Refused};
    let reports = [(Refused, ["tools: `x`"]), (Accepted, ["tools: `y`"]), (Accepted, ["tools: `x`"])];
    let reports = reports.map(|(reason, names)| Some(checked("b", reason, &names)));
    let mut given = Given { reports: reports.to_vec(), ..well() };
    let first = given.status();
    let expected = [
        "CredentialsAccepted False Refused: get_me: Refused",
        "NamesUnmatched True NoSuchTool: tools: `x`; tools: `y`",
    ];
    assert_eq!(of_agent(&first, "b"), expected);
    (given.before, given.second) = (Some(first.clone()), 60);
    assert!(same(&given.status(), &first), "a later check with the same result changes nothing");
    given.reports.remove(0);
    let later = given.status();
    let times = |status: &CaipeSupervisorStatus| {
        let agent = status.agents.iter().find(|agent| agent.name == "b").unwrap();
        agent.conditions.iter().map(|it| it.last_transition_time.0.as_second()).collect::<Vec<_>>()
    };
    assert_eq!(of_agent(&later, "b")[0], "CredentialsAccepted True Accepted: get_me: Accepted");
    assert_eq!((times(&first)[0] + 60, times(&first)[1]), (times(&later)[0], times(&later)[1]));
    given.decision = None;
    assert_eq!(of_agent(&given.status(), "b").len(), 2, "also while the resource is invalid");
}

#[test]
fn a_failed_placement_is_reported_and_a_slow_one_is_not() {
    let message = |phase: AgentPhase| {
        let mut given = well();
        let mut report = report(1, AgentPhase::Ready, AgentPhase::Ready);
        let placement = AgentPlacement::InProcess;
        let why = Some("almanac: connection refused".to_owned());
        report.agents[0].next = Some(NextInstance { placement, phase, endpoint: None, message: why });
        given.reports = vec![Some(report)];
        given.status().agents[0].message.clone()
    };
    let reported = "keeps its placement until the new one is ready: almanac: connection refused";
    assert_eq!(message(AgentPhase::Degraded).as_deref(), Some(reported));
    assert_eq!(message(AgentPhase::Pending), None);
}

#[test]
fn what_only_finishes_what_it_began_is_listed_and_not_counted() {
    let mut given = well();
    given.draining = BTreeSet::from(["gone".to_owned()]);
    let instance = DrainingInstance {
        name: "gone".to_owned(),
        placement: AgentPlacement::Remote,
        endpoint: None,
        active_tasks: 2,
    };
    given.reports =
        vec![Some(Report { draining: vec![instance], ..report(1, AgentPhase::Ready, AgentPhase::Ready) })];
    let status = given.status();
    let last = status.agents.last().unwrap();
    assert_eq!((last.name.as_str(), last.phase, last.active_tasks), ("gone", AgentPhase::Draining, Some(2)));
    assert_eq!(status.agents_ready.as_deref(), Some("2/2"));
    assert_eq!(reported(&status, "Ready"), "True AllAgentsUsable: all 2 agents are usable");
}

#[test]
fn the_time_of_a_transition_moves_with_the_status_alone() {
    let mut given = well();
    given.before = Some(given.status());
    given.second = 60;
    assert_eq!(given.status(), *given.before.as_ref().unwrap(), "nothing changed");
    let time =
        |status: &CaipeSupervisorStatus, kind| condition(status, kind).unwrap().last_transition_time.clone();
    given.reports = vec![Some(report(1, AgentPhase::Unreachable, AgentPhase::Ready))];
    let after = given.status();
    assert_eq!(time(&after, "Ready").0.as_second(), 1_800_000_060);
    given.before = Some(after.clone());
    (given.second, given.missing) = (120, secret("s"));
    let later = given.status();
    assert_ne!(reported(&later, "Ready"), reported(&after, "Ready"));
    assert_eq!(time(&later, "Ready"), time(&after, "Ready"), "another reason is no transition");
}

#[test]
fn a_status_from_the_api_server_equals_the_written_one() {
    let written = well().status();
    let read = serde_json::from_value(serde_json::to_value(&written).unwrap()).unwrap();
    assert!(same(&written, &read), "{written:#?} {read:#?}");
}

#[test]
fn latencies_do_not_change_the_status() {
    let one = well().status();
    let mut other = one.clone();
    other.agents[0].latency_ms = Some(99);
    assert!(same(&one, &other));
    other.agents[0].phase = AgentPhase::Degraded;
    assert!(!same(&one, &other));
}

#[test]
fn a_rollout_that_waits_leaves_the_supervisor_ready() {
    let status = Given { pending_rollout: Some("waits for its turn"), ..well() }.status();
    let found = |kind: &str| {
        let condition = status.conditions.iter().find(|it| it.type_ == kind).unwrap();
        (condition.status.as_str(), condition.reason.as_str(), condition.message.as_str())
    };
    assert_eq!(found("Ready").0, "True");
    assert_eq!(found("Reconciling"), ("True", "RolloutPending", "waits for its turn"));
}

fn limited(agent: &str, limit: &str, count: u64, second: i64) -> LimitReport {
    let since = Timestamp::from_second(second).unwrap();
    LimitReport { agent: agent.to_owned(), limit: limit.to_owned(), count, since }
}

fn with_limits(limits: Vec<LimitReport>) -> Report {
    Report { limits, ..report(1, AgentPhase::Ready, AgentPhase::Ready) }
}

#[test]
fn limits_are_added_up_over_the_pods_and_a_status_is_written_when_a_count_has_doubled() {
    let of = |first: Vec<LimitReport>, second: Vec<LimitReport>| {
        Given { reports: [first, second].map(with_limits).map(Some).into(), ..well() }.status()
    };
    let plain = of(vec![], vec![]);
    assert!(plain.limits.is_empty());
    let before = of(
        vec![limited("supervisor", "tokens", 1, 9), limited("jira", "calls", 3, 7)],
        vec![limited("jira", "calls", 2, 5)],
    );
    let shown: Vec<_> = before
        .limits
        .iter()
        .map(|it| (it.agent.as_str(), it.limit.as_str(), it.count, it.since.0.as_second()))
        .collect();
    assert_eq!(shown, [("jira", "calls", 5, 5), ("supervisor", "tokens", 1, 9)]);
    let supervisor = || limited("supervisor", "tokens", 1, 9);
    for (count, is_same) in [(5, true), (7, true), (8, false), (3, false)] {
        let after = of(vec![supervisor(), limited("jira", "calls", count, 5)], vec![]);
        assert_eq!(same(&before, &after), is_same, "{count}");
    }
    assert!(!same(&plain, &before) && !same(&before, &of(vec![supervisor()], vec![])));
}

#[test]
fn a_status_has_the_most_frequent_limits_only() {
    let many =
        (0..40).map(|at| limited(&format!("a{at:02}"), "calls", if at == 39 { 90 } else { 2 }, 1)).collect();
    let limits = Given { reports: vec![Some(with_limits(many))], ..well() }.status().limits;
    assert_eq!((limits.len(), limits[0].agent.as_str(), limits[31].agent.as_str()), (32, "a00", "a39"));
}

#[test]
fn the_slack_bot_has_a_condition_of_its_own() {
    let facts = |missing, workload, trouble: Option<&str>| SlackFacts {
        missing,
        workload,
        trouble: trouble.map(str::to_owned),
    };
    let here = Missing::default;
    let starts = "the bot starts, or waits for Slack or the supervisor";
    let stuck = Workload { failure: Some("it has timed out".into()), ..workload(0) };
    let log = "the log of the container has the reason, for example a revoked token";
    for (slack, expected) in [
        (
            facts(here(), Some(workload(1)), None),
            "True BotConnected: the bot receives events of Slack".to_owned(),
        ),
        (
            facts(
                secret("slack"),
                Some(workload(0)),
                Some("container slack-bot: CreateContainerConfigError"),
            ),
            "False ReferenceMissing: missing Secrets: slack; create them, or correct the names".to_owned(),
        ),
        (facts(here(), None, None), format!("False RollingOut: {starts}")),
        (facts(here(), Some(workload(0)), None), format!("False RollingOut: {starts}")),
        (facts(here(), Some(stuck), None), format!("False RolloutFailed: {starts}: it has timed out")),
        (
            facts(here(), Some(workload(0)), Some("container slack-bot: CrashLoopBackOff")),
            format!("False BotFailing: container slack-bot: CrashLoopBackOff; {log}"),
        ),
        (
            facts(here(), Some(Workload { replicas: 0, rolled_out: true, ..Workload::default() }), None),
            "False ScaledToZero: the bot is stopped with the supervisor: set replicas to 1 or more"
                .to_owned(),
        ),
    ] {
        let status = Given { slack: Some(slack), ..well() }.status();
        assert_eq!(reported(&status, "SlackReady"), expected);
        assert_eq!(reported(&status, "Ready"), "True AllAgentsUsable: all 2 agents are usable");
    }
    assert_eq!(reported(&well().status(), "SlackReady"), "", "there is no bot");
}

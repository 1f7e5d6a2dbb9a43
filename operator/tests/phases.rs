//! The statuses on which Argo CD's health check is tried are those that the operator writes, one of each phase.
//! `CAIPE_WRITE_STATUSES=1` rewrites the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use caipe_crds::internal_status::{AgentReport, DrainingInstance, Report};
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::{CaipeSupervisor, CaipeSupervisorStatus, Target, resolve_for};
use caipe_operator::cache::Workload;
use caipe_operator::references::Missing;
use caipe_operator::supervisor::decision::Decision;
use caipe_operator::supervisor::migration::PendingMigration;
use caipe_operator::supervisor::status::{Facts, Reason, Refusal, status};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const RESOURCE: &str = "
apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata:
  name: platform
  namespace: team-a
  uid: 6d1f1c52-8a0e-4a51-9a0c-0d6e3b2b9f11
  generation: 3
  creationTimestamp: 2026-11-22T08:00:00Z
spec:
  model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
  distributedAgents: [argocd]
  agents:
    - { name: argocd, secretRef: { name: argocd-token } }
    - { name: jira, secretRef: { name: jira-token } }
";

/// A resource that is as it should be, and what is known of it.
struct BuildContext {
    resource: CaipeSupervisor,
    decision: Option<Decision>,
    refusal: Option<Refusal>,
    held: BTreeMap<String, PendingMigration>,
    missing: Missing,
    supervisor: Option<Workload>,
    report: Option<Report>,
    trouble: Option<&'static str>,
}

impl BuildContext {
    fn new() -> Result<Self> {
        let resource: CaipeSupervisor = serde_saphyr::from_str(RESOURCE)?;
        let running =
            Workload { replicas: 1, updated: 1, available: 1, rolled_out: true, ..Workload::default() };
        Ok(Self {
            decision: Some(decision(&resource)?),
            resource,
            refusal: None,
            held: BTreeMap::new(),
            missing: Missing::default(),
            supervisor: Some(running),
            report: Some(report()),
            trouble: None,
        })
    }

    fn status(&self) -> Result<CaipeSupervisorStatus> {
        Ok(status(Facts {
            resource: &self.resource,
            generation: 3,
            before: None,
            refusal: self.refusal.as_ref(),
            decision: self.decision.as_ref(),
            held: &self.held,
            draining: &BTreeSet::new(),
            missing: &self.missing,
            supervisor: self.supervisor.as_ref(),
            agent_reports: &[],
            pods: (1, usize::from(self.report.is_some())),
            reports: &[self.report.as_ref()],
            starting: &[],
            trouble: self.trouble,
            remotes: &BTreeMap::new(),
            slack: None,
            pending_rollout: None,
            unreadable_budgets: None,
            now: "2026-11-22T09:00:00Z".parse()?,
        }))
    }

    /// No pod is there yet.
    fn starts(&mut self, failure: Option<&str>) {
        let failure = failure.map(Into::into);
        self.supervisor = Some(Workload { replicas: 1, failure, ..Workload::default() });
        self.report = None;
    }

    fn refuse(&mut self, reason: Reason, message: &str) {
        (self.decision, self.refusal) = (None, Some(Refusal { reason, message: message.to_owned() }));
    }

    fn agent(&mut self, number: usize, change: impl FnOnce(&mut AgentReport)) {
        if let Some(agent) = self.report.as_mut().and_then(|report| report.agents.get_mut(number)) {
            change(agent);
        }
    }
}

fn decision(resource: &CaipeSupervisor) -> Result<Decision> {
    let target = Target::Cluster { namespace: "team-a".to_owned(), config_maps: BTreeMap::new() };
    let resolved = resolve_for(resource, &BTreeMap::new(), &target);
    let wanted = resolved.map_err(|faults| anyhow::anyhow!("{faults:?}"))?.spec;
    let mut spec = wanted.clone();
    spec.epoch = 2;
    let of = |name: &str| BTreeSet::from([name.to_owned()]);
    Ok(Decision {
        spec,
        wanted,
        hosted: of("jira"),
        remote: of("argocd"),
        draining: BTreeMap::new(),
        overlaps: false,
    })
}

fn report() -> Report {
    let argocd = AgentReport {
        endpoint: Some("http://platform-argocd.team-a.svc:8000".to_owned()),
        protocol_version: Some("1.0".to_owned()),
        latency_ms: Some(4),
        last_probe_time: "2026-11-22T09:00:00Z".parse().ok(),
        ..agent("argocd", AgentPlacement::Remote)
    };
    Report {
        epoch: 2,
        running_epoch: 2,
        waiting: Vec::new(),
        warnings: Vec::new(),
        limits: Vec::new(),
        hash: "5f2c8e0d9a41b7c3".to_owned(),
        refused: None,
        agents: vec![argocd, agent("jira", AgentPlacement::InProcess)],
        draining: Vec::new(),
    }
}

fn agent(name: &str, placement: AgentPlacement) -> AgentReport {
    AgentReport::new(name, placement, AgentPhase::Ready, 2)
}

/// A phase: the file, what it is, and how it differs from a supervisor that is as it should be.
type Phase = (&'static str, &'static str, fn(&mut BuildContext));

const PHASES: [Phase; 15] = [
    ("ready", "As it should be.", |_| {}),
    ("rolling-out", "The first pods are being started.", |cx| cx.starts(None)),
    ("image-missing", "The image cannot be pulled; Kubernetes still tries.", |cx| {
        cx.starts(None);
        cx.trouble = Some("container supervisor: ImagePullBackOff");
    }),
    ("rollout-failed", "The image cannot be pulled; Kubernetes has given up.", |cx| {
        cx.starts(Some("ReplicaSet \"platform-5d8f\" has timed out progressing."));
        cx.trouble = Some("container supervisor: ImagePullBackOff");
    }),
    ("epoch-pending", "A change has been rendered; the pod has not taken it yet.", |cx| {
        let behind = cx.report.iter_mut();
        behind.for_each(|report| (report.epoch, report.running_epoch) = (1, 1));
    }),
    ("moving", "An agent moves; it is usable all the time.", |cx| {
        cx.held = BTreeMap::from([("jira".to_owned(), PendingMigration::UntilRemoteAnswers)]);
    }),
    ("draining", "An agent has moved; its old instance drains.", |cx| {
        let instance = DrainingInstance {
            name: "argocd".to_owned(),
            placement: AgentPlacement::InProcess,
            endpoint: None,
            active_tasks: 1,
        };
        cx.report.iter_mut().for_each(|report| report.draining = vec![instance.clone()]);
    }),
    ("agent-unreachable", "A remote agent does not answer; it may come back with nobody's help.", |cx| {
        cx.agent(0, |agent| {
            agent.phase = AgentPhase::Unreachable;
            agent.message = Some("connection refused".to_owned());
        });
    }),
    ("agent-degraded", "A tool server does not answer.", |cx| {
        cx.agent(1, |agent| {
            agent.phase = AgentPhase::Degraded;
            agent.message = Some("tool server jira: connection refused".to_owned());
        });
    }),
    ("secret-missing", "A Secret is not there yet; it is found when it comes.", |cx| {
        cx.missing.secrets = BTreeSet::from(["argocd-token".to_owned()]);
    }),
    ("scaled-to-zero", "The supervisor is scaled to zero.", |cx| {
        cx.supervisor = Some(Workload { rolled_out: true, ..Workload::default() });
        cx.report = None;
    }),
    ("invalid", "What the resource says cannot be. What runs keeps running.", |cx| {
        cx.refuse(Reason::InvalidSpec, "spec.agents[1].mcp: an agent of your own needs a tool server");
    }),
    ("foreign-object", "A required object belongs to another owner.", |cx| {
        cx.refuse(Reason::ForeignObject, "Deployment platform is there and is not of this supervisor");
        cx.report = None;
    }),
    ("collecting", "What was made for an earlier resource of that name is not collected yet.", |cx| {
        cx.refuse(Reason::Collecting, "Service platform is of an earlier CaipeSupervisor of this name");
        cx.report = None;
        cx.supervisor = None;
    }),
    ("spec-refused", "The supervisor refused the spec; the versions do not fit together.", |cx| {
        let reports = cx.report.iter_mut();
        reports.for_each(|report| report.refused = Some("agents[0].placement: unknown".to_owned()));
    }),
];

/// The resource of each file, with what it is.
fn files() -> Result<BTreeMap<&'static str, (&'static str, CaipeSupervisor)>> {
    let mut files = BTreeMap::new();
    for (name, about, change) in PHASES {
        let mut cx = BuildContext::new()?;
        change(&mut cx);
        let status = Some(cx.status()?);
        files.insert(name, (about, CaipeSupervisor { status, ..cx.resource }));
    }
    let ready = files["ready"].1.clone();
    let new = |status| CaipeSupervisor { status, ..ready.clone() };
    files.insert("no-status", ("No status at all: a definition without defaults.", new(None)));
    let fresh = Some(CaipeSupervisorStatus::default());
    files.insert("not-seen", ("Fresh from the API server; no operator has seen it.", new(fresh)));
    let mut changed = ready.clone();
    changed.metadata.generation = Some(4);
    files.insert("changed", ("Changed; what the operator said is about the generation before.", changed));
    let mut deleted = ready.clone();
    deleted.metadata.deletion_timestamp = Some(Time("2026-11-22T10:00:00Z".parse::<Timestamp>()?));
    deleted.metadata.finalizers = Some(vec!["foregroundDeletion".to_owned()]);
    files.insert("deleted", ("Waits for what it owns to go.", deleted));
    Ok(files)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/argocd/testdata")
}

#[test]
fn argocd_is_shown_what_the_operator_writes() -> Result<()> {
    let write = std::env::var("CAIPE_WRITE_STATUSES").is_ok_and(|value| value == "1");
    let files = files()?;
    for (name, (about, resource)) in &files {
        let text = format!("# {about}\n{}", serde_saphyr::to_string(resource)?);
        let file = folder().join(format!("{name}.yaml"));
        if write {
            std::fs::write(&file, &text)?;
        }
        let found =
            std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        ensure!(
            found == text,
            "{} is out of date: run this test with CAIPE_WRITE_STATUSES=1",
            file.display()
        );
    }
    assert_eq!(folder().read_dir()?.count(), files.len(), "a file of no phase");
    Ok(())
}

//! The reported health of an agent that comes and goes, and delegations to it. The clock is paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_crds::resource::agent_state::AgentPhase::{self, Degraded, Pending, Ready, Unreachable};
use caipe_engine::{AgentName, DelegationOutcome};
use futures::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{ProbeFn, ProbeSettings, ProbedBackend, Prober, RETURN};
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent, RunInfo};
use crate::remote::ProbeReport;

fn settings() -> ProbeSettings {
    let spec = caipe_crds::resolve(&caipe_crds::default_resource(), &std::collections::BTreeMap::new());
    ProbeSettings::from(&spec.unwrap().spec.connectivity)
}

/// An agent that responds while it is `up`, and counts probes.
#[derive(Debug, Default)]
struct TestAgent {
    up: AtomicBool,
    hangs: AtomicBool,
    probes: AtomicUsize,
}

impl TestAgent {
    fn prober(self: &Arc<Self>, settings: ProbeSettings) -> Prober {
        let agent = self.clone();
        let probe: ProbeFn = Arc::new(move |_| {
            agent.probes.fetch_add(1, Ordering::Relaxed);
            let (up, hangs) = (agent.up.load(Ordering::Relaxed), agent.hangs.load(Ordering::Relaxed));
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let report = ProbeReport {
                    latency: Duration::from_millis(3),
                    protocol_version: "1.0".to_owned(),
                    card_name: "Jira".to_owned(),
                    skills: vec!["search".to_owned()],
                };
                if up { Ok(report) } else { Err("connection refused".to_owned()) }
            }
            .boxed()
        });
        Prober::start(settings, probe, Arc::new(Semaphore::new(10)))
    }
}

/// How long it takes until the agent is in this phase.
async fn until(prober: &Prober, phase: AgentPhase) -> Duration {
    let started = tokio::time::Instant::now();
    prober.watch().wait_for(|health| health.phase == phase).await.unwrap();
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_late_agent_joins_and_a_dead_one_is_reported() {
    let agent = Arc::new(TestAgent::default());
    let prober = agent.prober(settings());
    assert_eq!(prober.health().phase, Pending);
    until(&prober, Unreachable).await;
    assert_eq!(prober.health().message.as_deref(), Some("connection refused"));

    agent.up.store(true, Ordering::Relaxed);
    assert!(until(&prober, Ready).await < Duration::from_secs(2));
    let health = prober.health();
    assert_eq!((health.message, health.report.unwrap().skills), (None, vec!["search".to_owned()]));
    assert!(health.probed_at.is_some());

    agent.up.store(false, Ordering::Relaxed);
    let degraded = until(&prober, Degraded).await;
    assert!(degraded + until(&prober, Unreachable).await < Duration::from_secs(5));
    assert!(prober.health().report.is_some(), "the last report is kept");

    agent.up.store(true, Ordering::Relaxed);
    until(&prober, Ready).await;
    agent.hangs.store(true, Ordering::Relaxed);
    assert!(until(&prober, Unreachable).await < Duration::from_secs(5), "also where connections hang");
    assert!(prober.health().message.unwrap().contains("no answer within"));
}

#[tokio::test(start_paused = true)]
async fn a_requested_probe_starts_at_once() {
    let agent = Arc::new(TestAgent::default());
    let prober = agent.prober(ProbeSettings { refresh: Duration::from_hours(1), ..settings() });
    agent.up.store(true, Ordering::Relaxed);
    until(&prober, Ready).await;
    agent.up.store(false, Ordering::Relaxed);
    let started = tokio::time::Instant::now();
    assert_eq!(prober.probe_now().await.phase, Degraded);
    assert_eq!(prober.probe_now().await.phase, Unreachable);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_not_probed_with_checks_turned_off_or_after_its_prober_is_dropped() {
    let agent = Arc::new(TestAgent::default());
    let prober = agent.prober(ProbeSettings { check: false, ..settings() });
    prober.request_probe();
    assert_eq!(prober.probe_now().await.phase, Pending);
    assert_eq!(agent.probes.load(Ordering::Relaxed), 0);
    assert!(prober.health().message.unwrap().contains("turned off"));

    let prober = agent.prober(settings());
    until(&prober, Unreachable).await;
    drop(prober);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = agent.probes.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(agent.probes.load(Ordering::Relaxed), before);
}

#[tokio::test(start_paused = true)]
async fn new_settings_apply_at_once() {
    let agent = Arc::new(TestAgent::default());
    let prober = agent.prober(ProbeSettings { check: false, ..settings() });
    agent.up.store(true, Ordering::Relaxed);
    prober.apply(settings());
    until(&prober, Ready).await;
    assert_eq!(prober.health().message, None);

    prober.apply(ProbeSettings { refresh: Duration::from_hours(1), ..settings() });
    agent.up.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(prober.health().phase, Ready, "nobody probes for an hour");

    prober.apply(settings());
    assert!(until(&prober, Unreachable).await < Duration::from_secs(5));

    prober.apply(ProbeSettings { check: false, ..settings() });
    until(&prober, Pending).await;
    assert!(!prober.is_enabled() && prober.health().message.unwrap().contains("turned off"));
}

/// A backend that fails every time, and counts.
#[derive(Debug, Default)]
struct Failing(AtomicUsize);

#[async_trait]
impl AgentBackend for Failing {
    async fn run(
        &self,
        _: Delegation,
        _: mpsc::Sender<DelegationEvent>,
        _: CancellationToken,
    ) -> DelegationEnd {
        self.0.fetch_add(1, Ordering::Relaxed);
        DelegationEnd::failed("cut off")
    }

    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

fn delegation() -> Delegation {
    let run = RunInfo { context: "c".into(), task: "t".into(), trace_id: "x".into(), ..Default::default() };
    let agent = AgentName::new("jira");
    Delegation { call: "1".to_owned(), agent, prompt: String::new(), resume: None, run }
}

async fn ask(guarded: &ProbedBackend, cancel: CancellationToken) -> DelegationOutcome {
    match guarded.run(delegation(), mpsc::channel(1).0, cancel).await {
        DelegationEnd::Finished(outcome) => outcome,
        asks @ DelegationEnd::Asks(_) => panic!("{asks:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_agent_gets_no_delegation_until_a_probe_succeeds() {
    let (agent, backend) = (Arc::new(TestAgent::default()), Arc::new(Failing::default()));
    let guarded = ProbedBackend { backend: backend.clone(), prober: agent.prober(settings()) };
    let prober = &guarded.prober;
    prober.watch().wait_for(|health| health.phase == Unreachable).await.unwrap();
    let DelegationOutcome::Failed { reason } = ask(&guarded, CancellationToken::new()).await else {
        panic!()
    };
    assert!(reason.starts_with("connection refused. Say so"), "{reason}");
    assert_eq!(backend.0.load(Ordering::Relaxed), 0);

    let canceled = CancellationToken::new();
    canceled.cancel();
    assert_eq!(ask(&guarded, canceled).await, DelegationOutcome::Canceled);

    agent.up.store(true, Ordering::Relaxed);
    assert_eq!(
        ask(&guarded, CancellationToken::new()).await,
        DelegationOutcome::Failed { reason: "cut off".to_owned() },
        "it had come back"
    );
    assert_eq!(backend.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delegation_waits_for_an_agent_that_was_just_lost_and_for_no_other() {
    let (agent, backend) = (Arc::new(TestAgent::default()), Arc::new(Failing::default()));
    agent.up.store(true, Ordering::Relaxed);
    let guarded = ProbedBackend { backend: backend.clone(), prober: agent.prober(settings()) };
    until(&guarded.prober, Ready).await;
    agent.up.store(false, Ordering::Relaxed);
    until(&guarded.prober, Unreachable).await;
    let returns = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        agent.up.store(true, Ordering::Relaxed);
    };
    tokio::join!(ask(&guarded, CancellationToken::new()), returns);
    assert_eq!(backend.0.load(Ordering::Relaxed), 1, "it was back in time");

    until(&guarded.prober, Ready).await;
    agent.up.store(false, Ordering::Relaxed);
    until(&guarded.prober, Unreachable).await;
    let lost = tokio::time::Instant::now();
    for limit in [RETURN, Duration::from_millis(1)] {
        let begin = tokio::time::Instant::now();
        let DelegationOutcome::Failed { reason } = ask(&guarded, CancellationToken::new()).await else {
            panic!()
        };
        assert!(reason.starts_with("connection refused. Say so"), "{reason}");
        assert!(begin.elapsed() <= limit, "{:?}", begin.elapsed());
    }
    assert!(lost.elapsed() + Duration::from_secs(1) > RETURN, "{:?}", lost.elapsed());
    assert_eq!(backend.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_delegation_triggers_a_probe_and_is_no_outage_by_itself() {
    let (agent, backend) = (Arc::new(TestAgent::default()), Arc::new(Failing::default()));
    agent.up.store(true, Ordering::Relaxed);
    let guarded = ProbedBackend { backend, prober: agent.prober(settings()) };
    let prober = &guarded.prober;
    let mut health = prober.watch();
    health.wait_for(|health| health.phase == Ready).await.unwrap();
    let before = prober.health().probes;
    ask(&guarded, CancellationToken::new()).await;
    assert_eq!(health.wait_for(|health| health.probes > before).await.unwrap().phase, Ready);
    agent.up.store(false, Ordering::Relaxed);
    ask(&guarded, CancellationToken::new()).await;
    health.wait_for(|health| health.phase == Degraded).await.unwrap();
    health.wait_for(|health| health.phase == Unreachable).await.unwrap();
}

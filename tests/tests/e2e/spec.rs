//! A changed spec reaches the pod at once, and agents join and leave without a restart.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::a2a_client::STATUS;
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::{CONFIG_MAPS, SUPERVISORS};
use caipe_tests::live::pods::restarts;
use caipe_tests::live::report_table::seconds;
use caipe_tests::live::scenario_run::{NAME, Operator, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::table::{FIGURES, tell};

/// A change is in force in less than the minute or more that a kubelet takes by itself; see the page for how soon.
const IN_FORCE: Duration = Duration::from_secs(30);

#[test]
fn agents_join_and_leave_at_once_and_without_a_restart() -> Result<()> {
    live::with_addresses("spec", async |live| {
        let small = scenario();
        let large = scenario().agent_with("moon", json!([]));
        let mut run = ScenarioRun::start(live, &small, Operator::usual()).await?;
        let before = restarts(live, &[]).await?;
        let (mut last, mut slowest) = (Instant::now(), Duration::ZERO);
        for round in 0..10 {
            last = Instant::now();
            let joins = round % 2 == 0;
            let taken = run.during(declared(live, if joins { &large } else { &small })).await?;
            slowest = slowest.max(taken);
            let agents = if joins { 2 } else { 1 };
            let there = |seen: &Value| {
                caipe_tests::cluster::operator::is_settled(seen)
                    && seen["status"]["agents"].as_array().is_some_and(|all| all.len() == agents)
            };
            live.until("the agent is there, or not", SUPERVISORS, NAME, there).await?;
        }
        assert_eq!(restarts(live, &[]).await?, before, "nothing is started anew");
        let outcome = run.finish(last).await?;
        if !outcome.killed {
            FIGURES.report("a changed spec is in force, at the latest, after", &[seconds(slowest)])?;
        }
        tell("an agent joins and leaves, five times", &outcome)?;
        outcome.tally.undisturbed()?;
        ensure!(slowest < IN_FORCE, "a changed spec was in force after {slowest:?}");
        outcome.status_follows()
    })
}

/// A supervisor's pod, asked what it runs.
struct Pod {
    space: TestNamespace,
    url: String,
    token: String,
    http: reqwest::Client,
}

impl Pod {
    async fn of(live: &Live) -> Result<Self> {
        let pods = live.supervisor_pods(NAME).await?;
        let address = pods.first().and_then(|pod| pod["status"]["podIP"].as_str()).context("no pod")?;
        let url = format!("http://{address}:8000/internal/status");
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self {
            space: live.in_namespace(&live.namespace),
            url,
            token: live.key(NAME, STATUS).await?,
            http,
        })
    }

    /// The epoch of the spec that it runs.
    async fn runs(&self) -> Result<u64> {
        let response = self.http.get(&self.url).bearer_auth(&self.token).send().await?;
        let status: Value = serde_json::from_slice(&response.bytes().await?)?;
        status["epoch"].as_u64().with_context(|| format!("no epoch in {status}"))
    }

    /// The epoch of the spec that was written for it.
    async fn shall_run(&self) -> Result<u64> {
        let written = self.space.get(CONFIG_MAPS, &format!("{NAME}.spec")).await?.context("no spec")?;
        let spec: Value = serde_saphyr::from_str(written["data"]["spec.yaml"].as_str().unwrap_or_default())?;
        spec["epoch"].as_u64().context("no epoch")
    }
}

/// Declares a scenario; the time from the write of its spec until the pod runs it.
async fn declared(live: &Live, scenario: &Scenario) -> Result<Duration> {
    let measured = tokio::spawn(in_force(Pod::of(live).await?));
    live.declare(NAME, scenario)?;
    measured.await?
}

/// The time from the next write of a spec until the pod runs it.
async fn in_force(pod: Pod) -> Result<Duration> {
    let interval = Duration::from_millis(5);
    let before = pod.shall_run().await?;
    let measured = tokio::time::timeout(Duration::from_mins(1), async {
        while pod.shall_run().await? == before {
            tokio::time::sleep(interval).await;
        }
        let written = Instant::now();
        while pod.runs().await? <= before {
            tokio::time::sleep(interval).await;
        }
        Ok(written.elapsed())
    });
    measured.await.context("the pod never ran the new spec")?
}

//! The programs of the node and of the control plane go and come back.

use std::time::{Duration, Instant};

use anyhow::Result;
use caipe_tests::live;
use caipe_tests::live::node::Node;
use caipe_tests::live::pods::{restarts, until_older};
use caipe_tests::live::scenario_run::{Operator, Outcome, ScenarioRun, scenario};

use crate::table::tell;

/// How long what was killed stays away.
const AWAY: Duration = Duration::from_secs(5);

/// A restarted kubelet reports a container as not ready until its first probe if the container is younger than this
/// (`kubeletRestartGracePeriod` of Kubernetes 1.35 and later; older versions do so for containers of any age). The
/// Service has no endpoint in that time, whatever the container does.
const KUBELET_GRACE: Duration = Duration::from_secs(10);

/// What happens to a program of the cluster while one agent is remote: nobody who asks notices, no container is started
/// again, and after that the agent moves as ever.
fn undisturbed(
    name: &str,
    row: &str,
    operator: Operator,
    follows: fn(&Outcome) -> Result<()>,
    fault: impl AsyncFnOnce(&Node) -> Result<()>,
) -> Result<()> {
    live::with_node(name, async |live, node| {
        let mut run = ScenarioRun::start(live, &scenario(), operator).await?;
        run.migrate(true).await?;
        until_older(live, KUBELET_GRACE).await?;
        let before = restarts(live, &[]).await?;
        let began = Instant::now();
        run.during(fault(node)).await?;
        let back = async || Ok(live.list(caipe_tests::cluster::objects::PODS).await.is_ok());
        caipe_tests::supervisor::until("the API server answers", back).await?;
        run.wait_for_answers().await?;
        assert_eq!(restarts(live, &[]).await?, before, "nothing is started anew");
        run.migrate(false).await?;
        let outcome = run.finish(began).await?;
        tell(row, &outcome)?;
        outcome.tally.undisturbed()?;
        follows(&outcome)
    })
}

#[test]
fn a_restarted_kubelet_stops_nobody() -> Result<()> {
    undisturbed(
        "kubelet",
        "the kubelet is restarted",
        Operator::usual(),
        Outcome::status_follows,
        async |node| node.restart("kubelet"),
    )
}

#[test]
fn a_restarted_containerd_stops_nobody() -> Result<()> {
    undisturbed(
        "containerd",
        "containerd is restarted",
        Operator::usual(),
        Outcome::status_follows,
        async |node| node.restart("containerd"),
    )
}

#[test]
fn an_api_server_that_is_away_stops_nobody() -> Result<()> {
    undisturbed(
        "apiserver",
        "the API server is killed, back after 5 s",
        Operator::Stays,
        Outcome::status_follows_after_outage,
        async |node| away(node, "kube-apiserver").await,
    )
}

#[test]
fn an_etcd_that_is_away_stops_nobody() -> Result<()> {
    undisturbed(
        "etcd",
        "etcd is killed, back after 5 s",
        Operator::Stays,
        Outcome::status_follows_after_outage,
        async |node| away(node, "etcd").await,
    )
}

async fn away(node: &Node, program: &str) -> Result<()> {
    node.kill(program)?;
    tokio::time::sleep(AWAY).await;
    node.start(program)
}

//! Several pods of a supervisor share a Redis: they are replaced, scaled and evicted, and nobody loses an answer.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::cluster::objects::{BUDGETS, SUPERVISORS};
use caipe_tests::cluster::operator::is_settled;
use caipe_tests::live::pods::name_of;
use caipe_tests::live::scenario_run::{CLIENTS, NAME, Operator, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{EvictParams, ListParams};
use serde_json::{Value, json};

use crate::table::tell;

/// A Redis on the node, which pods reach at the node's address, and the Secret with its URL.
async fn redis(live: &Live) -> Result<RedisServer> {
    let nodes: Api<Node> = Api::all(live.client.clone());
    let nodes = nodes.list(&ListParams::default()).await?;
    let addresses = nodes.items.iter().filter_map(|node| node.status.as_ref()?.addresses.as_ref()).flatten();
    let address = addresses.into_iter().find(|address| address.type_ == "InternalIP").context("no address")?;
    let server =
        RedisServer::start(&["--bind", &address.address, "127.0.0.1", "--protected-mode", "no"])?;
    let url = format!("redis://{}:{}", address.address, server.port());
    live.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "redis"},
        "stringData": {"REDIS_URL": url}}))?;
    Ok(server)
}

/// The usual supervisor, with three pods.
fn replicated(port: u16) -> Scenario {
    let egress = json!([{"ports": [{"port": port}]}]);
    scenario()
        .set("replicas", json!(3))
        .set("store", json!({"redis": {"secretRef": {"name": "redis"}}}))
        .set("networkPolicy", json!({"egress": egress}))
}

/// Sets the number of pods as people do, and waits until they are there.
async fn scale(live: &Live, count: usize) -> Result<()> {
    live.kubectl(&["scale", &format!("caipe/{NAME}"), "--replicas", &count.to_string()])?;
    until_pods(live, count).await
}

async fn until_pods(live: &Live, count: usize) -> Result<()> {
    let there = |seen: &Value| {
        is_settled(seen) && ["replicas", "readyReplicas"].iter().all(|field| seen["status"][*field] == count)
    };
    live.until(&format!("{count} pods are ready"), SUPERVISORS, NAME, there).await.map(drop)
}

/// Evicts two pods, as the drain of a node does: the second one has to wait until the first one is replaced.
async fn evict(live: &Live) -> Result<()> {
    let pods = live.supervisor_pods(NAME).await?;
    let [first, second, ..] = pods.as_slice() else { anyhow::bail!("not two pods: {pods:?}") };
    let api: Api<Pod> = Api::namespaced(live.client.clone(), &live.namespace);
    let evict = |pod| api.evict(name_of(pod), &EvictParams::default());
    evict(first).await.context("failed to evict a pod")?;
    let refused = evict(second).await.err();
    let is_refused = matches!(&refused, Some(kube::Error::Api(status)) if status.code == 429);
    ensure!(is_refused, "two pods are evicted at a time: {refused:?}");
    until_pods(live, pods.len()).await?;
    evict(second).await.context("failed to evict the second pod")?;
    until_pods(live, pods.len()).await
}

#[test]
fn replicas_come_and_go_and_lose_no_answer() -> Result<()> {
    live::with_addresses("replicas", async |live| {
        let server = redis(live).await?;
        let scenario = replicated(server.port());
        let mut run = ScenarioRun::start(live, &scenario, Operator::usual()).await?;
        until_pods(live, 3).await?;
        ensure!(live.get(BUDGETS, NAME).await?.is_some(), "there is no PodDisruptionBudget");
        let note = json!({"metadata": {"annotations": {"example.com/note": "new"}}});
        let rolled = scenario.set("podTemplate", note);
        run.during(async { live.declare(NAME, &rolled).map(drop) }).await?;
        until_pods(live, 3).await?;
        run.wait_for_answers().await?;
        run.during(scale(live, 5)).await?;
        run.wait_for_answers().await?;
        run.during(evict(live)).await?;
        let last = Instant::now();
        run.during(scale(live, 2)).await?;
        let outcome = run.finish(last).await?;
        tell("three pods with Redis are rolled out, scaled to five, evicted and scaled to two", &outcome)?;
        outcome.tally.answered()?;
        outcome.status_follows()?;
        scale(live, 1).await?;
        live.until_gone(BUDGETS, NAME).await
    })
}

#[test]
fn the_others_continue_the_runs_of_a_killed_replica() -> Result<()> {
    live::with_addresses("replica-killed", async |live| {
        let server = redis(live).await?;
        let mut run = ScenarioRun::start(live, &replicated(server.port()), Operator::usual()).await?;
        until_pods(live, 3).await?;
        let victim = live.supervisor_pods(NAME).await?.into_iter().next().context("no pod")?;
        let killed = Instant::now();
        run.during(live.kill_pod(&victim)).await?;
        until_pods(live, 3).await?;
        let outcome = run.finish(killed).await?;
        tell("one of three pods with Redis is killed", &outcome)?;
        // The outcome of a tool call whose caller was killed is unknown; the answer says so, and the call is not repeated.
        outcome.tally.answered_or_says(&["did not complete (session was interrupted)"], CLIENTS)?;
        outcome.status_follows()
    })
}

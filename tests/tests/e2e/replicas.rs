//! Several pods of a supervisor share a Redis: they are replaced, scaled and evicted, and nobody loses an answer.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::cluster::objects::{BUDGETS, SUPERVISORS};
use caipe_tests::cluster::operator::is_settled;
use caipe_tests::live::metrics_api::MetricsApi;
use caipe_tests::live::pods::name_of;
use caipe_tests::live::scenario_run::{CLIENTS, NAME, Operator, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::until;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{EvictParams, ListParams};
use serde_json::{Value, json};

use crate::table::tell;

/// The address of the node, which pods reach.
pub(crate) async fn node_address(live: &Live) -> Result<String> {
    let nodes: Api<Node> = Api::all(live.client.clone());
    let nodes = nodes.list(&ListParams::default()).await?;
    let mut addresses =
        nodes.items.iter().filter_map(|node| node.status.as_ref()?.addresses.as_ref()).flatten();
    let address = addresses.find(|address| address.type_ == "InternalIP").context("no address")?;
    Ok(address.address.clone())
}

/// A Redis on the node, and the Secret with its URL.
pub(crate) async fn redis(live: &Live) -> Result<RedisServer> {
    let address = node_address(live).await?;
    let server = RedisServer::start(&["--bind", &address, "127.0.0.1", "--protected-mode", "no"])?;
    let url = format!("redis://{address}:{}", server.port());
    live.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "redis"},
        "stringData": {"REDIS_URL": url}}))?;
    Ok(server)
}

/// A store in this Redis, of a supervisor or an agent.
pub(crate) fn in_redis() -> Value {
    json!({"redis": {"secretRef": {"name": "redis"}}})
}

/// The usual supervisor, with three pods.
fn replicated(port: u16) -> Scenario {
    scenario()
        .set("replicas", json!(3))
        .set("store", in_redis())
        .set("networkPolicy", json!({"egress": [{"ports": [{"port": port}]}]}))
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
    let options = EvictParams::default();
    let evict = |pod| api.evict(name_of(pod), &options);
    // The controller of budgets counts a pod a moment after it is ready, so `kubectl drain` tries again too.
    let admitted =
        async |pod| until("the budget allows an eviction", async || is_evicted(evict(pod).await)).await;
    admitted(first).await?;
    ensure!(!is_evicted(evict(second).await)?, "two pods are evicted at a time");
    until_pods(live, pods.len()).await?;
    admitted(second).await?;
    until_pods(live, pods.len()).await
}

/// Whether an eviction was admitted; not if the budget forbids it.
fn is_evicted<T>(answer: kube::Result<T>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
        Err(error) => Err(error).context("failed to evict a pod"),
    }
}

/// An autoscaler for two to four pods, which acts at once; it adds pods above this use of the processor, in percent of the request.
fn autoscaler(percent: u32) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    let at_once = json!({"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 1}]});
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": NAME}, "spec": {
        "scaleTargetRef": {"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "name": NAME},
        "minReplicas": 2, "maxReplicas": 4, "behavior": {"scaleDown": at_once, "scaleUp": at_once},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}})
}

/// Lets an autoscaler add pods under the load, and remove them when it allows more use.
async fn autoscale(live: &Live) -> Result<()> {
    let metrics = MetricsApi::start(live, &node_address(live).await?).await?;
    let scaled = async {
        live.apply(&autoscaler(1))?;
        until_pods(live, 4).await?;
        live.apply(&autoscaler(10_000))?;
        until_pods(live, 2).await
    };
    let scaled = scaled.await.with_context(|| live.kubectl(&["describe", "hpa"]).unwrap_or_default());
    live.kubectl(&["delete", "hpa", NAME])?;
    metrics.stop(live)?;
    scaled
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
        run.during(scale(live, 2)).await?;
        let last = Instant::now();
        run.during(autoscale(live)).await?;
        let outcome = run.finish(last).await?;
        tell(
            "three pods with Redis are rolled out, scaled to five, evicted, scaled to two and autoscaled",
            &outcome,
        )?;
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

//! The operator is restarted and replaced: what it writes then, and which operator leads.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::{LEASES, SERVICES, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::live::audit_log::AuditLog;
use caipe_tests::live::node::Node;
use caipe_tests::live::pods::name_of;
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::scenario_of;

/// Writes of these kinds change no declared object.
const ASIDE: [&str; 3] = ["leases", "events", "selfsubjectreviews"];

#[test]
fn a_new_one_writes_what_changed_meanwhile_and_nothing_else() -> Result<()> {
    live::with_node("restarted", async |live, node| {
        live.declare(NAME, &scenario_of(&["tide", "moon"]).set("distributedAgents", json!(["tide"])))?;
        live.until_settled(NAME).await?;
        rests(live, &AuditLog::from_now(node)?).await?;
        let audit = AuditLog::from_now(node)?;
        live.replace_operators().await?;
        let change = json!({"spec": {"ports": [{"port": 8000, "name": "changed"}]}});
        live.merge(SERVICES, NAME, &change).await?;
        let reverted = |service: &Value| service["spec"]["ports"][0]["name"] != "changed";
        live.until("the Service is as it was", SERVICES, NAME, reverted).await?;
        rests(live, &audit).await?;
        let writes = writes(live, &audit)?;
        ensure!(writes == ["patch services platform"], "{writes:#?}");
        Ok(())
    })
}

/// The operator's writes of declared objects in the test's namespace.
fn writes(live: &Live, audit: &AuditLog) -> Result<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_write = |event: &&Value| {
        event["objectRef"]["namespace"] == live.namespace.as_str()
            && ["create", "update", "patch", "delete"].contains(&event["verb"].as_str().unwrap_or_default())
            && !ASIDE.contains(&event["objectRef"]["resource"].as_str().unwrap_or_default())
    };
    let shown = |event: &Value| {
        let object = &event["objectRef"];
        format!("{} {} {}", text(&event["verb"]), text(&object["resource"]), text(&object["name"]))
    };
    Ok(audit.events()?.iter().filter(is_write).map(shown).collect())
}

/// Waits until a hundred checks in a row, for two seconds or more, see no new write.
async fn rests(live: &Live, audit: &AuditLog) -> Result<()> {
    let seen = Cell::new((0, 0));
    until("the operator writes nothing more", async || {
        let (known, checks) = seen.get();
        let written = writes(live, audit)?.len();
        seen.set((written, if written == known { checks + 1 } else { 0 }));
        Ok(checks >= 100)
    })
    .await
}

/// The duration of the lease.
const LEASE: Duration = Duration::from_secs(15);

#[test]
fn the_second_one_takes_over_from_one_that_crashed() -> Result<()> {
    live::with_node("leaders", async |live, node| {
        live.helm_operator(&["--set", "replicas=2"])?;
        let outcome = take_over(live, node).await;
        live.helm_operator(&[])?;
        outcome
    })
}

async fn take_over(live: &Live, node: &Node) -> Result<()> {
    let system = live.in_namespace(SYSTEM);
    live.declare(NAME, &scenario_of(&["tide"]))?;
    live.until_settled(NAME).await?;
    until("one operator leads", async || Ok(leaders(&system).await? == 1)).await?;
    let crashed = holder(&system).await?;
    let operators = live.operators().await?;
    let pod = operators.iter().find(|pod| crashed.starts_with(&format!("{}_", name_of(pod))));
    // The container restarts in its pod, so the earlier process is gone: its lease does not have to expire.
    let pod = pod.unwrap_or(&Value::Null);
    node.crash(pod)?;
    let began = Instant::now();
    live.merge(SUPERVISORS, NAME, &json!({"spec": {"limits": {"recursion": 31}}})).await?;
    until("one operator leads again", async || Ok(leaders(&system).await? == 1)).await?;
    ensure!(holder(&system).await? == crashed, "another operator holds the lease");
    ensure!(began.elapsed() < LEASE, "leads again after {:?}", began.elapsed());
    let leads = began.elapsed().as_secs_f64();
    live.until_settled(NAME).await?;
    let settled = began.elapsed().as_secs_f64() - leads;
    eprintln!(
        "a crashed operator leads again after {leads:.1} s; {settled:.1} s later the status of a change meanwhile is right"
    );
    live.migrate(NAME, "tide", true).await?;

    // A pod that is gone does not come back, so another operator takes over.
    live.kill_pod(pod).await?;
    until_other(&system, &crashed).await?;
    until("one operator leads again", async || Ok(leaders(&system).await? == 1)).await?;
    live.migrate(NAME, "tide", false).await?;

    // An operator that stops hands over at once instead of letting its lease expire.
    let stopped = holder(&system).await?;
    system.kubectl(&["rollout", "restart", &format!("deployment/{RELEASE}")])?;
    until_other(&system, &stopped).await?;
    live.until_settled(NAME).await.map(drop)
}

/// The number of operators that report that they lead.
async fn leaders(system: &TestNamespace) -> Result<usize> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut count = 0;
    for pod in system.pods(&[("app.kubernetes.io/name", RELEASE)]).await? {
        let Some(address) = pod["status"]["podIP"].as_str() else { continue };
        let Ok(answer) = client.get(format!("http://{address}:8080/metrics")).send().await else { continue };
        let text = answer.text().await?;
        count += text.lines().filter(|line| line.starts_with("caipe_operator_is_leader 1")).count();
    }
    Ok(count)
}

fn holder_of(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

async fn holder(system: &TestNamespace) -> Result<String> {
    Ok(holder_of(&system.get(LEASES, RELEASE).await?.unwrap_or_default()).to_owned())
}

async fn until_other(system: &TestNamespace, before: &str) -> Result<()> {
    let is_other = |lease: &Value| !holder_of(lease).is_empty() && holder_of(lease) != before;
    system.until("another operator holds the lease", LEASES, RELEASE, is_other).await.map(drop)
}

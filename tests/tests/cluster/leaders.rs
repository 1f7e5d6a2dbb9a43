//! Two operators: one works, the other takes over.

use anyhow::Result;
use caipe_tests::cluster;
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::{LEASES, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::{apply, scenario};

/// How many operators say that they lead.
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

#[test]
fn the_second_operator_takes_over_from_one_that_crashed() -> Result<()> {
    cluster::alone(async |cluster| {
        cluster.install_operator(&["--set", "replicas=2"])?;
        let system = cluster.in_namespace(SYSTEM);
        until("one operator leads", async || Ok(leaders(&system).await? == 1)).await?;
        apply(cluster, "platform", &scenario(&["tide"]))?;
        cluster.until_settled("platform").await?;

        let lease = system.list(LEASES).await?.into_iter().next().unwrap_or_default();
        let name = lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let holder = lease["spec"]["holderIdentity"].clone();
        let pod = holder.as_str().and_then(|holder| holder.split_once('_')).map_or("", |(pod, _)| pod);
        cluster.kill_operator(pod)?;
        let other = |lease: &Value| {
            lease["spec"]["holderIdentity"] != holder && lease["spec"]["holderIdentity"].as_str() > Some("")
        };
        system.until("another one holds the lease", LEASES, &name, other).await?;
        until("one operator leads again", async || Ok(leaders(&system).await? == 1)).await?;
        cluster.merge(SUPERVISORS, "platform", &json!({"spec": {"distributedAgents": ["tide"]}})).await?;
        let moved = |seen: &Value| seen["status"]["remoteAgents"] == 1;
        cluster.until("the new one works", SUPERVISORS, "platform", moved).await?;

        // Told to stop, one hands over at once instead of letting the lease run out.
        let holder = system.get(LEASES, &name).await?.unwrap_or_default()["spec"]["holderIdentity"].clone();
        system.kubectl(&["rollout", "restart", &format!("deployment/{RELEASE}")])?;
        let other = |lease: &Value| {
            lease["spec"]["holderIdentity"] != holder && lease["spec"]["holderIdentity"].as_str() > Some("")
        };
        system.until("the lease is handed over", LEASES, &name, other).await?;
        cluster.until_settled("platform").await.map(drop)
    })
}

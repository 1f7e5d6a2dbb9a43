//! The API server goes and comes back: nobody who asks a supervisor notices.

use anyhow::Result;
use caipe_tests::cluster::objects::{LEASES, PODS, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::cluster::{self, Cluster, DEFINITION};
use serde_json::json;

use crate::{apply, scenario};

/// The pods in the test's namespace and how often their programs were started, by name.
async fn pods(cluster: &Cluster) -> Result<Vec<String>> {
    let pods = cluster.list(PODS).await?;
    let mut pods: Vec<String> = pods
        .iter()
        .map(|pod| {
            format!("{} {}", pod["metadata"]["name"], pod["status"]["containerStatuses"][0]["restartCount"])
        })
        .collect();
    pods.sort();
    Ok(pods)
}

#[test]
fn an_api_server_that_was_away_finds_all_as_it_was() -> Result<()> {
    cluster::alone(async |cluster| {
        cluster.install_operator(&[])?;
        let scenario = scenario(&["tide", "moon"]).set("distributedAgents", json!(["tide"]));
        apply(cluster, "platform", &scenario)?;
        let before = cluster.until_settled("platform").await?;
        let running = pods(cluster).await?;
        let client = cluster.client("platform").await?;

        cluster.plane.kill_server();
        assert!(cluster.list(PODS).await.is_err(), "the API server is away");
        for _ in 0..5 {
            assert_eq!(client.ask("ask").await?.result()?, "tide here\nmoon here");
        }
        cluster.plane.start_server().await?;
        let after = cluster.until_settled("platform").await?;
        assert_eq!(after["status"]["conditions"], before["status"]["conditions"]);
        assert_eq!(pods(cluster).await?, running, "nothing was started anew");
        cluster.merge(SUPERVISORS, "platform", &json!({"spec": {"distributedAgents": []}})).await?;
        let moved = |seen: &serde_json::Value| seen["status"]["remoteAgents"] == 0;
        cluster.until("the agent moves back", SUPERVISORS, "platform", moved).await?;
        cluster.until_settled("platform").await?;
        uninstalled(cluster).await
    })
}

/// Without the operator, and with its chart gone, what people declared stays and runs.
async fn uninstalled(cluster: &Cluster) -> Result<()> {
    cluster.helm(&["uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "60s"])?;
    // Another installation would wait for its end.
    cluster.in_namespace(SYSTEM).until_gone(LEASES, RELEASE).await?;
    let left = cluster.kubectl(&["get", "crd", DEFINITION, "-o", "name"])?;
    assert_eq!(left.trim(), format!("customresourcedefinition.apiextensions.k8s.io/{DEFINITION}"));
    assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here\nmoon here");
    Ok(())
}

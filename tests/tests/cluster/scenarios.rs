//! What people do with a supervisor, from `kubectl apply` to `kubectl delete`.

use anyhow::{Result, ensure};
use caipe_tests::cluster::objects::{
    CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS, SUPERVISORS, condition, message,
};
use caipe_tests::cluster::operator::is_settled;
use caipe_tests::cluster::{self, Cluster};
use serde_json::{Value, json};

use crate::{apply, scenario};

/// Where a supervisor says that an agent runs.
fn placement(supervisor: &Value, agent: &str) -> String {
    let agents = supervisor["status"]["agents"].as_array();
    let found = agents.into_iter().flatten().find(|one| one["name"] == agent);
    found.and_then(|agent| agent["placement"].as_str()).unwrap_or_default().to_owned()
}

/// Says where agents run, and waits until they do.
async fn distribute(cluster: &Cluster, agents: Value) -> Result<Value> {
    cluster.merge(SUPERVISORS, "platform", &json!({"spec": {"distributedAgents": agents}})).await?;
    cluster.until_settled("platform").await
}

/// The pods of the supervisor itself, by their uid.
async fn supervisor_pods(cluster: &Cluster) -> Result<Vec<String>> {
    let pods = cluster.pods(&[("app.kubernetes.io/component", "supervisor")]).await?;
    Ok(pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect())
}

#[test]
fn a_supervisor_is_applied_asked_moved_and_deleted() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        apply(cluster, "platform", &scenario(&["tide", "moon"]))?;
        let settled = cluster.until_settled("platform").await?;
        assert_eq!(settled["status"]["agentsReady"], "2/2");
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here\nmoon here");
        let pods = supervisor_pods(cluster).await?;

        let away = distribute(cluster, json!(["tide"])).await?;
        assert_eq!(
            (placement(&away, "tide"), placement(&away, "moon")),
            ("Remote".to_owned(), "InProcess".to_owned())
        );
        assert_eq!(away["status"]["remoteAgents"], 1);
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here\nmoon here");

        let back = distribute(cluster, json!([])).await?;
        assert_eq!(placement(&back, "tide"), "InProcess");
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here\nmoon here");
        cluster.until_gone(DEPLOYMENTS, "platform-tide").await?;
        assert_eq!(supervisor_pods(cluster).await?, pods, "no move rolls the supervisor");

        cluster.kubectl(&["delete", "caipe", "platform"])?;
        cluster.until_gone(SUPERVISORS, "platform").await?;
        let nothing = async || Ok(cluster.made().await?.is_empty());
        let gone = caipe_tests::supervisor::until("nothing is left", nothing).await;
        ensure!(gone.is_ok(), "left behind: {:?}", cluster.made().await?);
        Ok(())
    })
}

#[test]
fn a_bad_resource_says_what_is_wrong_and_what_runs_keeps_running() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        let good = apply(cluster, "platform", &scenario(&["tide"]))?;
        cluster.until_settled("platform").await?;
        let pods = supervisor_pods(cluster).await?;
        let mut bad = good.clone();
        bad["spec"]["agents"] = json!([good["spec"]["agents"][0], {"name": "nobody-knows"}]);
        cluster.apply(&bad)?;
        let stalled = cluster.until_condition("platform", "Stalled", "True InvalidSpec").await?;
        assert!(message(&stalled, "Stalled").contains("nobody-knows"), "{}", message(&stalled, "Stalled"));
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here");
        assert_eq!(supervisor_pods(cluster).await?, pods);
        cluster.apply(&good)?;
        cluster.until_settled("platform").await.map(drop)
    })
}

#[test]
fn what_is_missing_is_named_and_may_come_later() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        let mut scenario = scenario(&["tide"]);
        scenario.change_agent("tide", "secretRef", json!({"name": "tide-token"}));
        scenario.change_agent("tide", "identity", json!({"configMapRef": {"name": "tide-identity"}}));
        apply(cluster, "platform", &scenario)?;
        let names = |what: &'static str| {
            move |seen: &Value| {
                condition(seen, "Ready").starts_with("False") && message(seen, "Ready").contains(what)
            }
        };
        cluster.until("the ConfigMap is named", SUPERVISORS, "platform", names("tide-identity")).await?;
        let identity =
            json!({"description": "Knows all about tide.", "systemPrompt": "You are the tide agent."});
        let identity = json!({"metadata": {"name": "tide-identity"}, "data": identity});
        cluster.create(CONFIG_MAPS, &identity, false).await?;
        cluster.until("the Secret is named", SUPERVISORS, "platform", names("tide-token")).await?;
        let secret = json!({"metadata": {"name": "tide-token"}, "stringData": {"TIDE_TOKEN": "one"}});
        cluster.create(SECRETS, &secret, false).await?;
        cluster.until_settled("platform").await?;
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here");
        let pods = supervisor_pods(cluster).await?;
        cluster.merge(SECRETS, "tide-token", &json!({"stringData": {"TIDE_TOKEN": "two"}})).await?;
        let rolled = async || {
            let now = supervisor_pods(cluster).await?;
            Ok(!now.is_empty() && now.iter().all(|pod| !pods.contains(pod)))
        };
        caipe_tests::supervisor::until("a changed Secret rolls what uses it", rolled).await?;
        cluster.until_settled("platform").await.map(drop)
    })
}

#[test]
fn a_missing_image_is_reported_and_can_be_corrected() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        let scenario = scenario(&["tide"]).set("image", json!("registry.example.com/caipe:none"));
        let mut resource = apply(cluster, "platform", &scenario)?;
        let names_image =
            |supervisor: &Value| message(supervisor, "Ready").contains("registry.example.com/caipe:none");
        let seen = cluster.until("the image is named", SUPERVISORS, "platform", names_image).await?;
        assert!(condition(&seen, "Ready").starts_with("False"), "{seen}");
        resource["spec"]["image"] = json!("caipe.test/caipe-supervisor:1");
        cluster.apply(&resource)?;
        cluster.until_settled("platform").await?;
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here");
        Ok(())
    })
}

#[test]
fn what_another_client_changes_is_changed_back() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        apply(cluster, "platform", &scenario(&["tide"]))?;
        cluster.until_settled("platform").await?;
        let pods = supervisor_pods(cluster).await?;
        let change = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}, "spec": {"replicas": 0}});
        cluster.merge(DEPLOYMENTS, "platform", &change).await?;
        let healed = |deployment: &Value| {
            deployment["spec"]["replicas"] == 1
                && deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "caipe-operator"
        };
        cluster.until("the Deployment is healed", DEPLOYMENTS, "platform", healed).await?;
        cluster.kubectl(&[
            "delete",
            "service,networkpolicy,configmap",
            "-l",
            "app.kubernetes.io/managed-by=caipe-operator",
        ])?;
        let whole = async || {
            let made = cluster.made().await?;
            Ok(["services/platform", "networkpolicies/platform", "configmaps/platform.spec"]
                .iter()
                .all(|name| made.iter().any(|one| one == name)))
        };
        caipe_tests::supervisor::until("what was deleted is there again", whole).await?;
        cluster.until_settled("platform").await?;
        drop(pods);
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here");
        Ok(())
    })
}

#[test]
fn pods_meet_the_restricted_level_of_pod_security() -> Result<()> {
    cluster::with_pods(async |cluster| {
        cluster.with_operator()?;
        let enforce = "pod-security.kubernetes.io/enforce=restricted";
        cluster.kubectl(&["label", "namespace", &cluster.namespace, enforce])?;
        let scenario = scenario(&["tide", "moon"]).set("distributedAgents", json!(["all"]));
        apply(cluster, "platform", &scenario)?;
        let settled = cluster.until_settled("platform").await?;
        assert!(is_settled(&settled) && placement(&settled, "moon") == "Remote", "{settled}");
        assert_eq!(cluster.list(PODS).await?.len(), 3);
        assert_eq!(cluster.ask("platform", "ask").await?.result()?, "tide here\nmoon here");
        Ok(())
    })
}

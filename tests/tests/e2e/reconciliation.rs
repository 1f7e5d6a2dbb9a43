//! Objects that a resource refers to may be missing at first, and other clients may change what the operator made.

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::{CONFIG_MAPS, DEPLOYMENTS, SECRETS, SUPERVISORS, condition, message};
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::scenario_of;

#[test]
fn missing_objects_are_named_and_changes_of_other_clients_are_reverted() -> Result<()> {
    live::with("reconciliation", async |live| {
        references_come_later(live).await?;
        only_changed_data_of_a_secret_rolls(live).await?;
        changes_are_reverted(live).await?;
        live.until_settled(NAME).await?;
        assert_eq!(live.ask(NAME, "ask").await?.result()?, "tide here");
        Ok(())
    })
}

async fn references_come_later(live: &Live) -> Result<()> {
    let mut scenario = scenario_of(&["tide"]);
    scenario.change_agent("tide", "secretRef", json!({"name": "tide-token"}));
    scenario.change_agent("tide", "identity", json!({"configMapRef": {"name": "tide-identity"}}));
    live.declare(NAME, &scenario)?;
    let names = |what: &'static str| {
        move |seen: &Value| {
            condition(seen, "Ready").starts_with("False") && message(seen, "Ready").contains(what)
        }
    };
    live.until("the ConfigMap is named", SUPERVISORS, NAME, names("tide-identity")).await?;
    let identity = json!({"description": "Knows all about tide.", "systemPrompt": "You are the tide agent."});
    let identity = json!({"metadata": {"name": "tide-identity"}, "data": identity});
    live.create(CONFIG_MAPS, &identity, false).await?;
    live.until("the Secret is named", SUPERVISORS, NAME, names("tide-token")).await?;
    let secret = json!({"metadata": {"name": "tide-token"}, "stringData": {"TIDE_TOKEN": "one"}});
    live.create(SECRETS, &secret, false).await?;
    live.until_settled(NAME).await?;
    assert_eq!(live.ask(NAME, "ask").await?.result()?, "tide here");
    Ok(())
}

/// The pods use the Secret: its labels and annotations replace none, and its data replaces each once.
async fn only_changed_data_of_a_secret_rolls(live: &Live) -> Result<()> {
    let own = [("app.kubernetes.io/instance", NAME), ("app.kubernetes.io/component", "supervisor")];
    let pods = live.pods(&own).await?;
    let before = generation(live).await?;
    // By another client than the one that wrote the data: the API server records a time for all fields of a client.
    live.kubectl(&["label", "secret", "tide-token", "team=tides"])?;
    live.kubectl(&["annotate", "secret", "tide-token", "rotated-by=nobody"])?;
    // A later change of the resource, which reaches running pods, shows that the operator has reconciled since.
    live.merge(SUPERVISORS, NAME, &json!({"spec": {"limits": {"recursion": 26}}})).await?;
    live.until_settled(NAME).await?;
    assert_eq!(uids(&live.pods(&own).await?), uids(&pods), "labels and annotations replace no pod");
    live.merge(SECRETS, "tide-token", &json!({"stringData": {"TIDE_TOKEN": "two"}})).await?;
    live.until_replaced(&pods, &own).await?;
    live.until_settled(NAME).await?;
    let rollouts = generation(live).await? - before;
    assert_eq!(rollouts, 1, "one rollout, for the data");
    Ok(())
}

/// The generation of the supervisor's Deployment, which counts each change of its pods.
async fn generation(live: &Live) -> Result<i64> {
    let deployment = live.get(DEPLOYMENTS, NAME).await?.context("no Deployment")?;
    deployment["metadata"]["generation"].as_i64().context("no generation")
}

fn uids(pods: &[Value]) -> Vec<&Value> {
    pods.iter().map(|pod| &pod["metadata"]["uid"]).collect()
}

async fn changes_are_reverted(live: &Live) -> Result<()> {
    const MANAGER: &str = "app.kubernetes.io/managed-by";
    let change = json!({"metadata": {"labels": {MANAGER: "another"}}, "spec": {"replicas": 0}});
    live.merge(DEPLOYMENTS, NAME, &change).await?;
    let reverted = |seen: &Value| {
        seen["metadata"]["labels"][MANAGER] == "caipe-operator"
            && seen["metadata"]["generation"] == seen["status"]["observedGeneration"]
            && seen["spec"]["replicas"] == 1
            && seen["status"]["availableReplicas"] == 1
    };
    live.until("the Deployment is as it was", DEPLOYMENTS, NAME, reverted).await?;
    let ours = format!("{MANAGER}=caipe-operator");
    live.kubectl(&["delete", "service,networkpolicy,configmap", "-l", &ours])?;
    let all_back = async || {
        let made = live.made().await?;
        let deleted = ["services/platform", "networkpolicies/platform", "configmaps/platform.spec"];
        Ok(deleted.iter().all(|name| made.iter().any(|one| one == name)))
    };
    until("the deleted objects are back", all_back).await
}

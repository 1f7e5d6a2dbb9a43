//! Objects that a resource refers to may be missing at first, and other clients may change what the operator made.

use anyhow::Result;
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
        a_changed_secret_rolls(live).await?;
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

async fn a_changed_secret_rolls(live: &Live) -> Result<()> {
    let own = [("app.kubernetes.io/instance", NAME), ("app.kubernetes.io/component", "supervisor")];
    let pods = live.pods(&own).await?;
    live.merge(SECRETS, "tide-token", &json!({"stringData": {"TIDE_TOKEN": "two"}})).await?;
    live.until_replaced(&pods, &own).await?;
    live.until_settled(NAME).await.map(drop)
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

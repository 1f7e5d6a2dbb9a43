//! A new installation of the operator: every request is allowed, and every permission of its roles is used.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::DEFINITION;
use caipe_tests::cluster::objects::{BUDGETS, DEPLOYMENTS};
use caipe_tests::cluster::operator::RELEASE;
use caipe_tests::live::audit_log::AuditLog;
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::scenario_of;

/// Permissions, each as `VERB GROUP/RESOURCE`.
type Rights = BTreeSet<String>;

/// Granted permissions that no request of these tests shows.
const UNSEEN: [&str; 2] = [
    // The admission of owner references requires it.
    "update caipe.io/caipesupervisors/finalizers",
    // The operator patches an event only when the event repeats.
    "patch events.k8s.io/events",
];
/// Granted to every account by the role `system:basic-user`.
const ANYBODY: &str = "create authentication.k8s.io/selfsubjectreviews";

#[test]
fn supervisors_outlive_the_operator_and_a_new_one_uses_every_right_and_no_other() -> Result<()> {
    live::with_node("installed", async |live, node| {
        live.declare(NAME, &scenario_of(&["tide"]))?;
        live.until_settled(NAME).await?;
        let mut audit = None;
        let outlived = live.while_uninstalled(async || {
            live.kubectl(&["get", "crd", DEFINITION])?;
            ensure!(live.ask(NAME, "ask").await?.result()? == "tide here");
            audit = Some(AuditLog::from_now(node)?);
            Ok(())
        });
        outlived.await?;
        live.declare("second", &scenario_of(&["tide"]))?;
        live.until_settled("second").await?;
        live.migrate("second", "tide", true).await?;
        live.migrate("second", "tide", false).await?;
        live.until_gone(DEPLOYMENTS, "second-tide").await?;
        limit_disruptions(live).await?;
        let audit = audit.context("the operator was not uninstalled")?.of(&live.operators().await?);
        rights_are_used(live, &audit).await
    })
}

/// Has the operator create and delete a `PodDisruptionBudget`. Nobody needs the pods, so their Redis need not exist.
async fn limit_disruptions(live: &Live) -> Result<()> {
    live.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "redis"},
        "stringData": {"REDIS_URL": "redis://127.0.0.1:1"}}))?;
    let store = json!({"redis": {"secretRef": {"name": "redis"}}});
    live.declare("third", &scenario_of(&["tide"]).set("store", store).set("replicas", json!(2)))?;
    live.until("a PodDisruptionBudget", BUDGETS, "third", |_| true).await?;
    live.kubectl(&["scale", "caipe/third", "--replicas", "1"])?;
    live.until_gone(BUDGETS, "third").await
}

async fn rights_are_used(live: &Live, audit: &AuditLog) -> Result<()> {
    let granted = granted(live)?;
    let unused = || -> Result<Vec<String>> {
        let used = used(audit)?;
        Ok(granted.difference(&used).filter(|right| !UNSEEN.contains(&right.as_str())).cloned().collect())
    };
    let waited = until("every right is used", async || Ok(unused()?.is_empty())).await;
    ensure!(waited.is_ok(), "granted, but not used: {:#?}", unused()?);
    let refused = audit.events()?.into_iter().filter(|event| !is_allowed(event)).collect::<Vec<_>>();
    ensure!(refused.is_empty(), "refused: {refused:#?}");
    let used = used(audit)?;
    let beyond: Vec<&String> = used.difference(&granted).filter(|right| *right != ANYBODY).collect();
    ensure!(beyond.is_empty(), "used, but granted by another role: {beyond:#?}");
    Ok(())
}

fn is_allowed(event: &Value) -> bool {
    event["annotations"]["authorization.k8s.io/decision"] == "allow"
}

/// The permissions that the operator's roles grant.
fn granted(live: &Live) -> Result<Rights> {
    let selector = format!("app.kubernetes.io/name={RELEASE}");
    let list = ["get", "clusterroles,roles", "--all-namespaces", "-o", "json", "-l", &selector];
    let roles: Value = serde_json::from_str(&live.kubectl(&list)?)?;
    let is_own = |role: &&Value| {
        let labels = role["metadata"]["labels"].as_object();
        !labels.into_iter().flatten().any(|(name, _)| name.contains("aggregate-to"))
    };
    let own = roles["items"].as_array().into_iter().flatten().filter(is_own);
    Ok(own.filter_map(|role| role["rules"].as_array()).flatten().flat_map(of_rule).collect())
}

fn of_rule(rule: &Value) -> Rights {
    let texts = |key: &str| rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut rights = Rights::new();
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            rights.extend(texts("verbs").map(|verb| format!("{verb} {group}/{resource}")));
        }
    }
    rights
}

/// The permissions that the operator's requests needed.
fn used(audit: &AuditLog) -> Result<Rights> {
    let mut used = Rights::new();
    for event in audit.events()?.iter().filter(|event| event["objectRef"]["resource"].is_string()) {
        let text = |key: &str| event["objectRef"][key].as_str().unwrap_or_default();
        let below = if text("subresource").is_empty() { "" } else { "/" };
        let resource = format!("{}/{}{below}{}", text("apiGroup"), text("resource"), text("subresource"));
        used.insert(format!("{} {resource}", event["verb"].as_str().unwrap_or_default()));
        // A server-side apply that creates the object also needs the right to create.
        if event["responseStatus"]["code"] == 201 {
            used.insert(format!("create {resource}"));
        }
    }
    Ok(used)
}

//! The operator is installed, restarted and replaced: what it asks of the API server, and what it writes.

use std::cell::Cell;
use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use caipe_tests::cluster::DEFINITION;
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::{DEPLOYMENTS, LEASES, SERVICES};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::live::audit_log::AuditLog;
use caipe_tests::live::node::Node;
use caipe_tests::live::pods::name_of;
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
/// Writes of these kinds change no declared object.
const ASIDE: [&str; 3] = ["leases", "events", "selfsubjectreviews"];

#[test]
fn supervisors_outlive_it_and_a_new_one_uses_every_right_and_no_other() -> Result<()> {
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
        match audit {
            Some(audit) => rights_are_used(live, &audit).await,
            None => Ok(()),
        }
    })
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
    node.crash(pod.unwrap_or(&Value::Null))?;
    until_other(&system, &crashed).await?;
    until("one operator leads again", async || Ok(leaders(&system).await? == 1)).await?;
    live.migrate(NAME, "tide", true).await?;

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

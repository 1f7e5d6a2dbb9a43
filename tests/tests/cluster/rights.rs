//! The chart's rules against what the operator asks of the API server: nothing is refused, and nothing is granted that
//! it does not use.

use std::collections::BTreeSet;

use anyhow::Result;
use caipe_tests::cluster::objects::{DEPLOYMENTS, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::cluster::{self, Cluster};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::{apply, scenario};

/// A right: `VERB GROUP/RESOURCE`.
type Rights = BTreeSet<String>;

/// What is granted though no request of these tests shows it, and why.
const UNSEEN: [(&str, &str); 2] = [
    (
        "update caipe.io/caipesupervisors/finalizers",
        "asked for by the admission of owner references, which is on here",
    ),
    ("patch events.k8s.io/events", "only an event that goes on repeating is patched"),
];

/// What everybody may do by Kubernetes' own roles (`system:basic-user`): ask who they are.
const ANYBODY: &str = "create authentication.k8s.io/selfsubjectreviews";

/// Does what needs every right once.
async fn exercise(cluster: &Cluster) -> Result<()> {
    apply(cluster, "platform", &scenario(&["tide"]))?;
    cluster.until_settled("platform").await?;
    for agents in [json!(["tide"]), json!([])] {
        cluster.merge(SUPERVISORS, "platform", &json!({"spec": {"distributedAgents": agents}})).await?;
        cluster.until_settled("platform").await?;
    }
    cluster.until_gone(DEPLOYMENTS, "platform-tide").await
}

/// The rights that roles of the operator grant.
fn granted(cluster: &Cluster) -> Result<Rights> {
    let mut rights = Rights::new();
    for role in ["clusterrole", "role"] {
        let text = cluster.kubectl(&[
            "get",
            role,
            "--all-namespaces",
            "-o",
            "json",
            "-l",
            "app.kubernetes.io/name=caipe-operator",
        ])?;
        let roles: Value = serde_json::from_str(&text)?;
        let roles = roles["items"].as_array().cloned().unwrap_or_default();
        let own = |role: &&Value| {
            let labels = role["metadata"]["labels"].as_object();
            !labels.into_iter().flatten().any(|(name, _)| name.contains("aggregate-to"))
        };
        for rule in
            roles.iter().filter(own).flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default())
        {
            rights.extend(of_rule(&rule));
        }
    }
    Ok(rights)
}

fn of_rule(rule: &Value) -> Rights {
    let texts = |key: &str| -> Vec<String> {
        rule[key].as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let mut rights = Rights::new();
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            rights.extend(texts("verbs").iter().map(|verb| format!("{verb} {group}/{resource}")));
        }
    }
    rights
}

/// What the operator asked for, and what of that was refused.
fn asked(cluster: &Cluster) -> Result<(Rights, Vec<Value>)> {
    let account = format!("system:serviceaccount:{SYSTEM}:{RELEASE}");
    let (mut used, mut refused) = (Rights::new(), Vec::new());
    for event in cluster.plane.audit()? {
        if event["user"]["username"] != account.as_str() || !event["objectRef"]["resource"].is_string() {
            continue;
        }
        let text = |key: &str| event["objectRef"][key].as_str().unwrap_or_default().to_owned();
        let below =
            if text("subresource").is_empty() { String::new() } else { format!("/{}", text("subresource")) };
        let verb = event["verb"].as_str().unwrap_or_default();
        let resource = format!("{}/{}{below}", text("apiGroup"), text("resource"));
        used.insert(format!("{verb} {resource}"));
        // An apply that makes the object needs the right to create too.
        if event["responseStatus"]["code"] == 201 {
            used.insert(format!("create {resource}"));
        }
        let allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow";
        if !allowed {
            refused.push(event);
        }
    }
    Ok((used, refused))
}

#[test]
fn every_call_is_allowed_and_every_right_is_used() -> Result<()> {
    cluster::alone(async |cluster| {
        cluster.install_operator(&[])?;
        exercise(cluster).await?;
        let granted = granted(cluster)?;
        let known = |right: &&String| !UNSEEN.iter().any(|(unseen, _)| unseen == right);
        let unused = || -> Result<Vec<String>> {
            let (used, _) = asked(cluster)?;
            Ok(granted.difference(&used).filter(known).cloned().collect())
        };
        let waited = until("every right is used", async || Ok(unused()?.is_empty())).await;
        assert!(waited.is_ok(), "granted, but not used: {:#?}", unused()?);
        let (used, refused) = asked(cluster)?;
        assert!(refused.is_empty(), "refused: {refused:#?}");
        let beyond: Vec<&String> = used.difference(&granted).filter(|right| *right != ANYBODY).collect();
        assert!(beyond.is_empty(), "used, but granted by somebody else: {beyond:#?}");
        Ok(())
    })
}

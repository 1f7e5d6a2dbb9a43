//! The Applications of our example, and what Argo CD says of them.

use anyhow::{Context, Result, ensure};
use serde_json::{Deserializer, Value, json};

use super::{ArgoCd, NAMESPACE, Repository};
use crate::cluster::objects::APPLICATIONS;
use crate::programs::workspace;

/// The Application of the operator's chart.
pub const OPERATOR: &str = "caipe-operator";
/// The Application of the team's supervisors.
pub const SUPERVISORS: &str = "team-a-supervisors";

/// Asks Argo CD to look; it takes the annotation away once it has.
const REFRESH: &str = "argocd.argoproj.io/refresh";

impl ArgoCd {
    /// Applies our example: the operator's chart, then a team's supervisors, from this repository into this namespace.
    pub fn apply_example(&self, repository: &Repository, namespace: &str) -> Result<()> {
        let example = workspace().join("deploy/argocd/application.yaml");
        let read = ["create", "--dry-run=client", "--output=json", "--filename"];
        let read = self.space.kubectl(&[&read[..], &[&example.to_string_lossy()]].concat())?;
        let documents: Vec<Value> =
            Deserializer::from_str(&read).into_iter().collect::<Result<_, _>>().context("not JSON")?;
        let lists = documents.iter().filter_map(|document| document["items"].as_array()).flatten();
        let plain = documents.iter().filter(|document| document["items"].is_null());
        let mut applied = 0;
        for application in lists.chain(plain) {
            self.space.apply(&moved(application.clone(), repository, namespace))?;
            applied += 1;
        }
        ensure!(applied == 2, "the example has {applied} Applications");
        Ok(())
    }

    /// Waits until the cluster is like this commit, and healthy; what Argo CD says then.
    pub async fn until_healthy(&self, application: &str, commit: &str) -> Result<Value> {
        let what = format!("{application} is Synced and Healthy at {commit}");
        self.until(application, &what, |seen| is_healthy(seen) && is_at(seen, commit)).await
    }

    /// Waits until the cluster is like this commit, and what is declared in it cannot be.
    pub async fn until_degraded(&self, application: &str, commit: &str) -> Result<Value> {
        let what = format!("{application} is Degraded at {commit}");
        let degraded = |seen: &Value| seen["status"]["health"]["status"] == "Degraded" && is_at(seen, commit);
        self.until(application, &what, degraded).await
    }

    /// Refreshes the application, waits for the comparison and returns its status.
    pub async fn refresh(&self, application: &str) -> Result<Value> {
        let ask = json!({"metadata": {"annotations": {REFRESH: "hard"}}});
        self.space.merge(APPLICATIONS, application, &ask).await?;
        let looked = |seen: &Value| seen["metadata"]["annotations"][REFRESH].is_null();
        self.until(application, "it was looked at again", looked).await
    }

    /// Deletes an Application with all that it brought, and waits until it is gone.
    pub async fn prune(&self, application: &str) -> Result<()> {
        let all = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
        self.space.merge(APPLICATIONS, application, &all).await?;
        self.space.delete(APPLICATIONS, application).await?;
        let gone = self.space.until_gone(APPLICATIONS, application).await;
        gone.with_context(|| self.logs())
    }

    async fn until(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        self.space.until(what, APPLICATIONS, name, wanted).await.with_context(|| self.logs())
    }
}

/// Whether the cluster is as declared, and well.
pub fn is_healthy(seen: &Value) -> bool {
    seen["status"]["sync"]["status"] == "Synced" && seen["status"]["health"]["status"] == "Healthy"
}

fn is_at(seen: &Value, commit: &str) -> bool {
    seen["status"]["sync"]["status"] == "Synced" && seen["status"]["sync"]["revision"] == commit
}

/// What Argo CD says of the health of a resource of this kind.
pub fn health<'a>(application: &'a Value, kind: &str) -> &'a Value {
    let mut resources = application["status"]["resources"].as_array().into_iter().flatten();
    resources.find(|resource| resource["kind"] == kind).map_or(&Value::Null, |resource| &resource["health"])
}

/// How often Argo CD has changed the cluster.
pub fn syncs(application: &Value) -> usize {
    application["status"]["history"].as_array().map_or(0, Vec::len)
}

/// An Application of the example, where this test has what it names.
fn moved(mut application: Value, repository: &Repository, namespace: &str) -> Value {
    let source = &mut application["spec"]["source"];
    source["repoURL"] = repository.url().into();
    source["targetRevision"] = "main".into();
    if let Some(chart) = source.as_object_mut().and_then(|source| source.remove("chart")) {
        source["path"] = format!("charts/{}", chart.as_str().unwrap_or_default()).into();
    } else {
        application["spec"]["destination"]["namespace"] = namespace.into();
    }
    application["metadata"]["namespace"] = NAMESPACE.into();
    application
}

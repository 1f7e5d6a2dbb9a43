//! Objects of the API server, as JSON.

use anyhow::{Context, Result};
use serde_json::Value;

use super::namespace::TestNamespace;
use crate::supervisor::until;

/// A kind of object, as the API server's paths name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    group: &'static str,
    plural: &'static str,
}

impl Kind {
    /// `group` as in `apis/apps/v1`; namespaced.
    const fn new(group: &'static str, plural: &'static str) -> Self {
        Self { group, plural }
    }

    pub const fn plural(self) -> &'static str {
        self.plural
    }
}

/// What this project defines.
pub const SUPERVISORS: Kind = Kind::new("apis/caipe.io/v1alpha1", "caipesupervisors");
pub const DEPLOYMENTS: Kind = Kind::new("apis/apps/v1", "deployments");
pub const PODS: Kind = Kind::new("api/v1", "pods");
pub const SERVICES: Kind = Kind::new("api/v1", "services");
pub const CONFIG_MAPS: Kind = Kind::new("api/v1", "configmaps");
pub const SECRETS: Kind = Kind::new("api/v1", "secrets");
/// Accounts of pods.
pub const ACCOUNTS: Kind = Kind::new("api/v1", "serviceaccounts");
/// Claims of volumes.
pub const CLAIMS: Kind = Kind::new("api/v1", "persistentvolumeclaims");
/// Network policies.
pub const POLICIES: Kind = Kind::new("apis/networking.k8s.io/v1", "networkpolicies");
/// How many pods may be evicted at a time.
pub const BUDGETS: Kind = Kind::new("apis/policy/v1", "poddisruptionbudgets");
pub const LEASES: Kind = Kind::new("apis/coordination.k8s.io/v1", "leases");
/// What Argo CD keeps the cluster like.
pub const APPLICATIONS: Kind = Kind::new("apis/argoproj.io/v1alpha1", "applications");
/// What happened.
pub const EVENTS: Kind = Kind::new("apis/events.k8s.io/v1", "events");

/// Every kind that may be made for a supervisor.
pub const MADE: [Kind; 9] =
    [DEPLOYMENTS, PODS, SERVICES, CONFIG_MAPS, SECRETS, ACCOUNTS, CLAIMS, POLICIES, BUDGETS];

impl TestNamespace {
    /// The object of this name in the test's namespace; nothing if there is none.
    pub async fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>> {
        match self.send("GET", &self.path(kind, name), "", None).await {
            Err(error) if is_missing(&error) => Ok(None),
            other => Ok(Some(other?)),
        }
    }

    /// All objects of a kind in the test's namespace.
    pub async fn list(&self, kind: Kind) -> Result<Vec<Value>> {
        let mut list = self.send("GET", &self.path(kind, ""), "", None).await?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Everything in the test's namespace that the operator has made, as `deployments/platform`.
    pub async fn made(&self) -> Result<Vec<String>> {
        let ours = |object: &&Value| {
            object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "caipe-operator"
        };
        let mut names = Vec::new();
        for kind in MADE {
            let name = |object: &Value| {
                format!("{}/{}", kind.plural, object["metadata"]["name"].as_str().unwrap_or_default())
            };
            names.extend(self.list(kind).await?.iter().filter(ours).map(name));
        }
        Ok(names)
    }

    /// Makes an object; with `dry`, the API server only checks it. What it says against it is the error.
    pub async fn create(&self, kind: Kind, object: &Value, dry: bool) -> Result<Value, kube::Error> {
        let dry = if dry { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldValidation=Strict{dry}", self.path(kind, ""));
        self.send("POST", &path, "application/json", Some(object)).await
    }

    /// Changes an object (RFC 7386). `name` may end in `/status`.
    pub async fn merge(&self, kind: Kind, name: &str, patch: &Value) -> Result<Value, kube::Error> {
        self.send("PATCH", &self.path(kind, name), "application/merge-patch+json", Some(patch)).await
    }

    /// Deletes an object.
    pub async fn delete(&self, kind: Kind, name: &str) -> Result<(), kube::Error> {
        self.send("DELETE", &self.path(kind, name), "", None).await.map(drop)
    }

    /// Deletes an object at once: a pod gets no time to end.
    pub async fn kill(&self, kind: Kind, name: &str) -> Result<(), kube::Error> {
        let path = format!("{}?gracePeriodSeconds=0", self.path(kind, name));
        self.send("DELETE", &path, "", None).await.map(drop)
    }

    /// Waits until the object of this name is as wanted; returns it.
    pub async fn until(
        &self,
        what: &str,
        kind: Kind,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let holds = async || Ok(self.get(kind, name).await.ok().flatten().is_some_and(|seen| wanted(&seen)));
        let outcome = until(what, holds).await;
        let seen = self.get(kind, name).await?.unwrap_or_default();
        outcome.with_context(|| format!("{}/{name}: {:#}", kind.plural, brief(&seen)))?;
        Ok(seen)
    }

    /// Waits until there is no object of this name.
    pub async fn until_gone(&self, kind: Kind, name: &str) -> Result<()> {
        let gone = async || Ok(self.get(kind, name).await.is_ok_and(|seen| seen.is_none()));
        until(&format!("{}/{name} is gone", kind.plural), gone).await
    }

    fn path(&self, kind: Kind, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/{}/namespaces/{}/{}{slash}{name}", kind.group, self.namespace, kind.plural)
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let mut request = http::Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The parts of an object that explain a failed test.
fn brief(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    object
}

/// A condition of an object: its status and reason, as in `True AllAgentsUsable`; empty if there is none.
pub fn condition(object: &Value, name: &str) -> String {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|condition| condition["type"] == name);
    let text = |key: &str| found.and_then(|condition| condition[key].as_str()).unwrap_or_default();
    format!("{} {}", text("status"), text("reason")).trim().to_owned()
}

/// The message of a condition; empty if there is none.
pub fn message(object: &Value, name: &str) -> String {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|condition| condition["type"] == name);
    found.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned()
}

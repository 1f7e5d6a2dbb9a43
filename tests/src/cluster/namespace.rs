//! A namespace of a cluster, as an administrator sees it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

/// An administrator's files: what kubectl and helm need.
#[derive(Debug, Clone)]
pub struct Admin {
    /// How the API server is reached.
    pub kubeconfig: PathBuf,
    /// The home directory of the programs.
    pub home_dir: PathBuf,
}

/// A namespace, and who looks at it.
#[allow(missing_debug_implementations, reason = "a client has none")]
#[derive(Clone)]
pub struct TestNamespace {
    /// An administrator's client.
    pub client: kube::Client,
    /// An administrator's files.
    pub admin: Admin,
    pub namespace: String,
}

impl TestNamespace {
    /// A new namespace with these labels.
    pub async fn make(client: kube::Client, admin: Admin, name: &str, labels: &Value) -> Result<Self> {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}}))?;
        let all: Api<Namespace> = Api::all(client.clone());
        all.create(&PostParams::default(), &namespace).await.context("failed to create a namespace")?;
        Ok(Self { client, admin, namespace: name.to_owned() })
    }

    /// The same cluster, seen from another namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// Begins to delete the namespace; nobody waits for it.
    pub async fn abandon(&self) {
        let all: Api<Namespace> = Api::all(self.client.clone());
        drop(all.delete(&self.namespace, &DeleteParams::background()).await);
    }
}

impl Admin {
    /// Files in these places.
    pub fn new(kubeconfig: &Path, home_dir: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), home_dir: home_dir.to_owned() }
    }
}

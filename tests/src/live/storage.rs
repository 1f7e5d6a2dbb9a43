//! Volumes for claims, where the cluster has nobody who makes them.

use anyhow::Result;
use serde_json::{Value, json};

use super::Live;

/// The label of a volume with the namespace that it is for.
const OF: &str = "caipe.test/namespace";

impl Live {
    /// Begins to take away the volumes that were made for this namespace.
    pub fn drop_volumes(&self) -> Result<()> {
        let ours = format!("--selector={OF}={}", self.namespace);
        self.kubectl(&["delete", "persistentvolumes", &ours, "--wait=false"]).map(drop)
    }

    /// Makes a volume for a claim of this name, unless the cluster has a default class and so makes it itself.
    pub fn volume(&self, claim: &str) -> Result<()> {
        let Some(node) = &self.node else { return Ok(()) };
        let classes: Value =
            serde_json::from_str(&self.kubectl(&["get", "storageclasses", "-o", "json"])?)?;
        let default = "storageclass.kubernetes.io/is-default-class";
        let mut classes = classes["items"].as_array().into_iter().flatten();
        if classes.any(|class| class["metadata"]["annotations"][default] == "true") {
            return Ok(());
        }
        let name = format!("{}-{claim}", self.namespace);
        let meta = json!({"name": name, "labels": {OF: self.namespace}});
        let here = json!({"key": "kubernetes.io/os", "operator": "Exists"});
        let nodes = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}});
        self.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": nodes,
            "claimRef": {"namespace": self.namespace, "name": claim}, "local": {"path": node.directory(&name)?}}}))
            .map(drop)
    }
}

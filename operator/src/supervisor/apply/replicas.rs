//! How many pods a Deployment has, once the resource leaves that to somebody else.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::super::error::Error;
use super::super::manifest::Manifest;
use super::Applier;
use crate::labels;
use crate::metrics::labels::{Category, Verb};
use crate::world::{Around, Child, Kind};

impl Applier<'_> {
    /// Hands the number of pods over before the operator says nothing of it any more: the API server would make it one.
    pub(super) async fn let_go_of_replicas(
        &self,
        manifest: &Manifest,
        child: Option<&Child>,
        around: &Around,
    ) -> Result<(), Error> {
        let is_ours = child.is_some_and(|child| child.owned.has_replicas());
        let workload = around.workloads.get(&manifest.name).filter(|_| manifest.kind == Kind::Deployment);
        let (true, Some(workload), None) = (is_ours, workload, manifest.value["spec"].get("replicas")) else {
            return Ok(());
        };
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": manifest.name, "uid": child.map(|child| &child.uid) },
            "spec": { "replicas": workload.replicas },
        });
        let params = PatchParams::apply(labels::REPLICAS_MANAGER).force();
        let patched = self.api(manifest.kind).patch(&manifest.name, &params, &Patch::Apply(&object)).await;
        self.metrics.wrote(manifest.kind.into(), Verb::Apply);
        match patched.map_err(Error::api(format!("hand over the replicas of Deployment {}", manifest.name))) {
            // One that has gone meanwhile has none to keep.
            Err(error) if error.category() != Category::Conflict => Err(error),
            _ => Ok(()),
        }
    }
}

//! Volumes that outlive their pods: a directory of this machine for each claim.

use std::path::Path;

use anyhow::Result;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

/// The class of all volumes.
const CLASS: &str = "standard";
const MANAGER: &str = "node";

/// Makes the class that claims have if they name none.
pub(super) async fn class(client: &kube::Client) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "caipe.test/node", "volumeBindingMode": "Immediate"});
    let all: Api<StorageClass> = Api::all(client.clone());
    all.patch(CLASS, &PatchParams::apply(MANAGER), &Patch::Apply(class)).await?;
    Ok(())
}

/// Makes a volume for each claim that waits for one, and takes those away whose claim is gone.
pub(super) async fn provide(client: &kube::Client, claims: &Path) -> Result<()> {
    let params = ListParams::default().match_any();
    let waiting = Api::<PersistentVolumeClaim>::all(client.clone()).list(&params).await?;
    let waiting = waiting.into_iter().filter(|claim| {
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Pending") && claim.metadata.deletion_timestamp.is_none()
    });
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for claim in waiting {
        let volume = volume(&claim, claims);
        volumes.patch(&volume.name_any(), &PatchParams::apply(MANAGER), &Patch::Apply(&volume)).await?;
    }
    for volume in volumes.list(&params).await? {
        let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
        if released {
            let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            let claim = claim.and_then(|claim| Some((claim.namespace.clone()?, claim.name.clone()?)));
            if let Some((namespace, name)) = claim {
                drop(std::fs::remove_dir_all(claims.join(namespace).join(name)));
            }
            volumes.delete(&volume.name_any(), &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

fn volume(claim: &PersistentVolumeClaim, claims: &Path) -> PersistentVolume {
    let namespace = claim.namespace().unwrap_or_default();
    let spec = claim.spec.clone().unwrap_or_default();
    let size = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let path = claims.join(&namespace).join(claim.name_any());
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": format!("volume-{}", claim.uid().unwrap_or_default())},
        "spec": {"capacity": size, "accessModes": spec.access_modes, "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": path},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace,
                "name": claim.name_any(), "uid": claim.uid()}}});
    serde_json::from_value(volume).unwrap_or_default()
}

/// Whether the volumes of a pod are there.
pub(super) async fn is_bound(client: &kube::Client, pod: &Pod) -> Result<bool> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for source in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
        let claim = claims.get_opt(&source.claim_name).await?;
        let phase = claim.and_then(|claim| claim.status?.phase);
        if phase.as_deref() != Some("Bound") {
            return Ok(false);
        }
    }
    Ok(true)
}

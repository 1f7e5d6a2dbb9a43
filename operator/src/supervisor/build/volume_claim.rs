//! The volume of the `SQLite` file, which one node at a time can mount.

use std::collections::BTreeMap;

use caipe_crds::names;
use caipe_crds::resource::settings::{ReclaimPolicy, Sqlite};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::BuildContext;
use super::meta::Component;

/// The size of the volume if the resource declares none.
const SIZE: &str = "1Gi";

/// The claim of the operator; none if the resource names a claim of the user, or another store. Without an owner, Kubernetes keeps it when the
/// resource is deleted.
pub(super) fn volume_claim(cx: &BuildContext<'_>) -> Option<PersistentVolumeClaim> {
    let Sqlite { size, storage_class_name, reclaim_policy, existing_claim } = sqlite(cx)?;
    if existing_claim.is_some() {
        return None;
    }
    let requests =
        BTreeMap::from([("storage".to_owned(), Quantity(size.unwrap_or_else(|| SIZE.to_owned())))]);
    let mut metadata = cx.meta(&names::data(cx.name), Component::Supervisor);
    if reclaim_policy.unwrap_or_default() == ReclaimPolicy::Retain {
        metadata.owner_references = None;
    }
    Some(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            storage_class_name,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}

/// The name of the mounted claim, if there is one.
pub(super) fn name(cx: &BuildContext<'_>) -> Option<String> {
    sqlite(cx).map(|sqlite| sqlite.existing_claim.unwrap_or_else(|| names::data(cx.name)))
}

/// The settings of the file; `None` if the store is a server.
fn sqlite(cx: &BuildContext<'_>) -> Option<Sqlite> {
    let store = cx.inputs.resource.spec.store.clone().unwrap_or_default();
    store.server().is_none().then(|| store.sqlite.clone().unwrap_or_default())
}

//! The volume of the `SQLite` file, which one node at a time can mount.

use std::collections::BTreeMap;

use caipe_crds::names;
use caipe_crds::resource::settings::Sqlite;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::BuildContext;
use super::meta::Component;

/// The volume of the `SQLite` file, which one node at a time mounts.
pub(super) fn volume_claim(cx: &BuildContext<'_>) -> PersistentVolumeClaim {
    let store = cx.inputs.resource.spec.store.as_ref();
    let sqlite = store.and_then(|store| store.sqlite.clone()).unwrap_or_default();
    let Sqlite { size, storage_class_name } = sqlite;
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(size))]);
    PersistentVolumeClaim {
        metadata: cx.meta(&names::data(cx.name), Component::Supervisor),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            storage_class_name,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

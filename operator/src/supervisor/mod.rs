//! A `CaipeSupervisor`, made real in five steps: dereference, validate, build, apply, update the status.
//!
//! Validating, deciding ([`migration`], [`orphans`]), building and the status are pure; only [`dereference`], [`apply`] and
//! [`report`] talk to the API server, and [`pass`] does the steps in their order.

pub mod apply;
pub mod build;
mod check_defaults;
pub mod decision;
pub mod dereference;
pub mod error;
pub mod failed_containers;
pub mod kubelet_refresh;
pub mod manifest;
pub mod migration;
pub mod missing_reference;
pub mod observation;
pub mod orphans;
pub mod ports;
pub mod reconcile;
pub mod state;
pub mod status;
pub mod status_events;
pub mod update_status;
pub mod validate;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The reference to the resource that controls an object.
pub fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "caipe.io/v1alpha1".to_owned(),
        kind: "CaipeSupervisor".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

//! Reconciles a `CaipeSupervisor` in five steps: dereference, validate, build, apply, update the status.
//!
//! Validating, deciding ([`migration`], [`orphans`]), building and the status are pure. Only [`dereference`],
//! [`key_secrets`], [`apply`] and [`update_status`] use the API server; [`reconcile`] runs the steps.

pub mod apply;
pub mod build;
mod check_defaults;
pub mod decision;
pub mod dereference;
pub mod error;
pub mod failed_containers;
pub mod key_secrets;
pub mod keys;
pub mod kubelet_refresh;
pub mod manifest;
pub mod migration;
pub mod missing_reference;
pub mod observation;
pub mod orphans;
pub mod ports;
pub mod reconcile;
pub mod rollout_strategy;
pub mod rollouts;
pub mod state;
pub mod status;
pub mod status_events;
pub mod update_status;
pub mod validate;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The owner reference of managed objects.
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

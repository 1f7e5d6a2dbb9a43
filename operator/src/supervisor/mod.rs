//! A `CaipeSupervisor`, made real in five steps: dereference, validate, build, apply, update the status.
//!
//! Validating, deciding ([`moves`], [`orphans`]), building and the status are pure; only [`dereference`], [`apply`] and
//! [`report`] talk to the API server, and [`pass`] does the steps in their order.

pub mod absence;
pub mod apply;
pub mod build;
pub mod decision;
pub mod dereference;
pub mod ended;
pub mod error;
pub mod key;
pub mod manifest;
pub mod memory;
pub mod moves;
pub mod notes;
pub mod orphans;
pub mod pass;
pub mod ports;
pub mod references;
pub mod report;
pub mod settled;
pub mod sight;
pub mod status;
pub mod validate;
pub mod wakes;

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

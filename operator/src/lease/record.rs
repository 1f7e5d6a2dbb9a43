//! Reads and writes the lease object.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;

use super::LeaseOptions;
use super::contender::Seen;
use crate::labels;

/// The relevant content of the object; none without a version, because it cannot be replaced.
pub(super) fn seen(lease: &Lease) -> Option<Seen> {
    let version = lease.metadata.resource_version.clone()?;
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    Some(Seen { version, holder, duration: Duration::from_secs(seconds.unwrap_or_default()) })
}

/// The lease held by this contender. `before` is the object that it replaces.
pub(super) fn held(before: Option<&Lease>, options: &LeaseOptions, now: Timestamp) -> Lease {
    let spec = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let mine = spec.holder_identity.as_deref() == Some(&options.identity);
    let transitions = spec.lease_transitions.unwrap_or_default();
    // A new lease is not a transition.
    let handed_over = i32::from(!mine && before.is_some());
    let spec = LeaseSpec {
        acquire_time: if mine { spec.acquire_time } else { Some(MicroTime(now)) },
        holder_identity: Some(options.identity.clone()),
        lease_duration_seconds: Some(i32::try_from(options.duration.as_secs()).unwrap_or(i32::MAX)),
        lease_transitions: Some(transitions.saturating_add(handed_over)),
        renew_time: Some(MicroTime(now)),
        ..spec
    };
    Lease { metadata: metadata(before, options), spec: Some(spec) }
}

/// The released lease: the next contender takes it at once.
pub(super) fn released(before: &Lease, options: &LeaseOptions, now: Timestamp) -> Lease {
    let spec = LeaseSpec {
        holder_identity: None,
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        ..before.spec.clone().unwrap_or_default()
    };
    Lease { metadata: metadata(Some(before), options), spec: Some(spec) }
}

/// Keeps the metadata that others have set.
fn metadata(before: Option<&Lease>, options: &LeaseOptions) -> ObjectMeta {
    let fresh = || ObjectMeta {
        labels: Some([(labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned())].into()),
        owner_references: options.owner.clone().map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let before = before.map(|lease| lease.metadata.clone());
    ObjectMeta {
        name: Some(options.name.clone()),
        namespace: Some(options.namespace.clone()),
        managed_fields: None,
        ..before.unwrap_or_else(fresh)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;

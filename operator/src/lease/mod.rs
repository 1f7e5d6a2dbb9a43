//! Leader election with a `Lease` (`coordination.k8s.io/v1`): one operator of the cluster writes.
//!
//! `contender` decides (pure); `record` reads and writes the object; `elector` talks to the API server; `owner` finds
//! the owner of the object; `leadership` is the handle for the rest of the program.
//!
//! Two rules prevent a second leader. A leader counts its time from when it *sent* its last successful write and
//! stops before the lease's duration is over; others count from when they *saw* that write, which is later. And each
//! write names the version that it replaces, so one of two concurrent writes fails. No wall clocks are compared:
//! times in the object are informative. Clocks may differ by any offset, but not in speed by more than the deadline
//! and the duration differ.

mod contender;
mod elector;
mod leadership;
mod owner;
mod record;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

pub use elector::elect;
pub use leadership::Leadership;
pub use owner::owner;

/// Options of the election.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseOptions {
    /// The namespace of the lease: the operator's own.
    pub namespace: String,
    pub name: String,
    /// The identity of this process. At most one process of an identity runs at a time. See [`identity`].
    pub identity: String,
    /// How long others wait for a leader that does not renew, in whole seconds.
    pub duration: Duration,
    /// The owner of the lease object. See [`owner()`].
    pub owner: Option<OwnerReference>,
}

impl LeaseOptions {
    /// A duration of 15 s, as in Kubernetes' own controllers, and no owner.
    pub fn new(namespace: &str, name: &str, identity: String) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { namespace, name, identity, duration: Duration::from_secs(15), owner: None }
    }
}

/// The identity of this process: its pod, if the uid is known. A container that restarts in its pod then takes the lease
/// back at once, because the kubelet starts it only after the earlier process has ended. A renewal that the earlier one
/// sent may arrive late; it names the version that it replaces, so it either comes first or fails. Other pods see a
/// renewal like any other. Without a uid, the identity is unique: the earlier process may still run.
pub fn identity(pod: &str, uid: Option<&str>) -> String {
    match uid {
        Some(uid) => format!("{pod}_{uid}"),
        None => format!("{pod}_{}", uuid::Uuid::new_v4()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_restarts_in_its_pod_keeps_its_identity() {
        assert_eq!(identity("operator-0", Some("u1")), identity("operator-0", Some("u1")));
        assert_ne!(identity("operator-0", Some("u1")), identity("operator-0", Some("u2")), "another pod");
        assert_ne!(identity("operator-0", None), identity("operator-0", None));
        assert!(identity("operator-0", None).starts_with("operator-0_"));
    }
}

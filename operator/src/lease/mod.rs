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
    /// The identity of this process; unique. See [`identity`].
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

/// A unique identity: a container that restarts in the same pod is another process.
pub fn identity(pod: &str) -> String {
    format!("{pod}_{}", uuid::Uuid::new_v4())
}

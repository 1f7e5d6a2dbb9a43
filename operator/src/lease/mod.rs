//! Leadership: of all operators in a cluster, one writes. Who it is stands in a `Lease` (`coordination.k8s.io/v1`).
//!
//! `contender` decides, purely; `record` reads and writes the object; `elector` talks to the API server;
//! `owner` says with whom the object goes; `leadership` tells the rest of the program.
//!
//! Two things keep a second leader away. A leader counts its time from when it *sent* the last write that went through,
//! and stops before the lease's duration is over; others count from when they *saw* that write, which is later. And
//! each write names the version that it replaces, so that of two who try, one succeeds. No wall clock is compared:
//! times in the object are for people. Clocks may differ by any amount, but must not run at speeds that differ by more
//! than the deadline and the duration do.

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

/// How leadership is contended for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseOptions {
    /// The namespace of the lease: the operator's own.
    pub namespace: String,
    /// Its name; those who contend for the same name are one group.
    pub name: String,
    /// Who contends; no two processes ever share it. See [`identity`].
    pub identity: String,
    /// How long a leader that is not heard of is waited for. Whole seconds.
    pub duration: Duration,
    /// With whom the lease goes. See [`owner()`].
    pub owner: Option<OwnerReference>,
}

impl LeaseOptions {
    /// With a duration of 15 s, as in Kubernetes' own controllers, and without an owner.
    pub fn new(namespace: &str, name: &str, identity: String) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { namespace, name, identity, duration: Duration::from_secs(15), owner: None }
    }
}

/// An identity that no other process has: a container that is started anew in the same pod is another process, and must
/// not take its predecessor's word for its own.
pub fn identity(pod: &str) -> String {
    format!("{pod}_{}", uuid::Uuid::new_v4())
}

//! Kubernetes events about resources (`events.k8s.io/v1`): what `kubectl describe` shows below the status.
//!
//! `deduplicator` knows what was said already, `object` makes the object, `publisher` sends it. kube's own recorder is not
//! used: it takes two events of the same reason for the same one, and so would tell of the second agent that cannot be
//! reached with the words about the first; and it waits for the API server where a pass would have to wait with it.
//!
//! Needs the verbs `create` and `patch` on `events` of the group `events.k8s.io`.

mod deduplicator;
mod object;
mod publisher;
mod reason;

pub use publisher::{Events, EventsOptions};
pub use reason::Reason;

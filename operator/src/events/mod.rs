//! Kubernetes events about resources (`events.k8s.io/v1`), as `kubectl describe` shows them.
//!
//! `deduplicator` suppresses repeated events, `object` builds the object, `publisher` sends it. kube's recorder is
//! not used: it merges events that have the same reason but different agents, and it blocks the caller while the API
//! server responds.
//!
//! Needs the verbs `create` and `patch` on `events` of the group `events.k8s.io`.

mod deduplicator;
mod object;
mod publisher;
mod reason;

pub use publisher::{Events, EventsOptions};
pub use reason::Reason;

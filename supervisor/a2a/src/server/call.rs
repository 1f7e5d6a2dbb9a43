//! A call, its principal, and the result of a message.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap};

use super::log::TaskLog;
use crate::model::Message;
use crate::version::ProtocolVersion;

/// What is known of a call besides its parameters.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The version that the client speaks.
    pub version: ProtocolVersion,
    /// The URIs of the extensions that the client declared (`A2A-Extensions`, `X-A2A-Extensions`).
    pub declared_extensions: Vec<String>,
    /// Who calls, if an outer layer found out.
    pub principal: Option<Principal>,
    /// The request's headers, for example `traceparent`.
    pub headers: HeaderMap,
    /// What outer layers found out, for example who calls.
    pub extensions: Extensions,
}

/// Who calls. An outer layer that authenticates puts it into the request's extensions; tasks are scoped to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

impl Principal {
    /// A caller by name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The caller's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What became of a message.
#[derive(Debug, Clone)]
pub enum Sent {
    /// A task carries it on: read of it here.
    Task(Subscription),
    /// A direct answer, without any task.
    Message(Box<Message>),
}

impl From<Subscription> for Sent {
    fn from(subscription: Subscription) -> Self {
        Self::Task(subscription)
    }
}

impl From<Message> for Sent {
    fn from(message: Message) -> Self {
        Self::Message(Box::new(message))
    }
}

/// Where to read of a task.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The task's log.
    pub log: Arc<TaskLog>,
    /// The last sequence number that the client needs no more. 0 reads the log from its start, whose first
    /// event is the task itself; with any other number the stream begins with the task as it was then.
    pub after: u64,
}

impl Subscription {
    /// Everything from the start: what a new task's client wants.
    pub const fn from_start(log: Arc<TaskLog>) -> Self {
        Self { log, after: 0 }
    }

    /// The task as it is, then what is new.
    pub fn from_now(log: Arc<TaskLog>) -> Self {
        let after = log.last_seq();
        Self { log, after }
    }

    /// What comes after `after`, or what is new if `None`. A number that the log has not reached means now.
    pub fn after(log: Arc<TaskLog>, after: Option<u64>) -> Self {
        let last = log.last_seq();
        let after = after.map_or(last, |after| after.min(last));
        Self { log, after }
    }
}

//! A call, its principal, and the result of a message.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap};

use super::task_log::TaskLog;
use crate::model::Message;
use crate::version::ProtocolVersion;

/// A call without its parameters.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The version that the client speaks.
    pub version: ProtocolVersion,
    /// The URIs of the extensions that the client declared (`A2A-Extensions`, `X-A2A-Extensions`).
    pub declared_extensions: Vec<String>,
    /// The principal, if an outer layer has authenticated the caller.
    pub principal: Option<Principal>,
    /// The request's headers, for example `traceparent`.
    pub headers: HeaderMap,
    /// Data of outer layers.
    pub extensions: Extensions,
}

/// The authenticated caller. An outer layer sets it in the request's extensions; tasks belong to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

impl Principal {
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The result of a message.
#[derive(Debug, Clone)]
pub enum Sent {
    /// A task processes the message.
    Task(Subscription),
    /// A direct reply without a task.
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

/// The events of a task after a position.
#[derive(Debug, Clone)]
pub struct Subscription {
    pub log: Arc<TaskLog>,
    /// The number of the last event that the client has. 0 reads the log from its start, whose first event is the task;
    /// with another number the stream starts with the task as it was then.
    pub after: u64,
}

impl Subscription {
    /// All events.
    pub const fn from_start(log: Arc<TaskLog>) -> Self {
        Self { log, after: 0 }
    }

    /// The current task, then new events.
    pub fn from_now(log: Arc<TaskLog>) -> Self {
        let after = log.last_seq();
        Self { log, after }
    }

    /// The events after `after`, or new events if `None`. A number beyond the end of the log means new events.
    pub fn after(log: Arc<TaskLog>, after: Option<u64>) -> Self {
        let last = log.last_seq();
        let after = after.map_or(last, |after| after.min(last));
        Self { log, after }
    }
}

//! The steps of following a task.

use futures::stream::BoxStream;

use super::error::ClientError;
use crate::model::Event;

#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// The number, if the server numbers its events. A new subscription continues after it.
    pub seq: Option<u64>,
    pub event: Event,
    /// Whether the event replaces all earlier ones: it is the whole task, because events in between may be missing.
    /// Text of earlier events is in it again.
    pub resumed: bool,
}

impl From<Event> for StreamEvent {
    fn from(event: Event) -> Self {
        Self { seq: None, event, resumed: false }
    }
}

/// A step of following a task.
#[derive(Debug)]
pub enum Followed {
    /// The next event.
    Event(Box<StreamEvent>),
    /// The connection is lost; the client reconnects.
    Lost {
        /// The number of the next attempt, from 1.
        attempt: u32,
        /// The most attempts without a new event.
        of: u32,
    },
    /// The client has reconnected.
    Back,
}

/// The steps; an error is the last one.
pub(super) type Steps = BoxStream<'static, Result<Followed, ClientError>>;

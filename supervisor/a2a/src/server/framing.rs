//! The framing of events and errors in a binding's stream.

use bytes::{BufMut, Bytes, BytesMut};

use super::jsonrpc::{Id, failure};
use super::log_entry::LoggedEvent;
use super::rest::failure as rest_failure;
use crate::error::A2aError;
use crate::v03;
use crate::version::ProtocolVersion;

/// The framing of a stream.
#[derive(Debug, Clone)]
pub(super) enum Framing {
    /// Every event is a response to the request with this id.
    JsonRpc(Id),
    /// Every event is a message of its own.
    Rest,
}

impl Framing {
    /// The bytes before an event's JSON.
    pub(super) fn prefix(&self) -> Bytes {
        match self {
            Self::JsonRpc(id) => {
                Bytes::from(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", id.as_str()))
            }
            Self::Rest => Bytes::from_static(b"data: "),
        }
    }

    /// An event's JSON. The REST binding of 0.3 has a form of its own.
    pub(super) fn json<'a>(
        &self,
        event: &'a LoggedEvent,
        version: ProtocolVersion,
    ) -> Result<&'a Bytes, serde_json::Error> {
        match (self, version) {
            (Self::Rest, ProtocolVersion::V0_3) => event.rest_json_v0_3(),
            _ => event.json(version),
        }
    }

    /// The JSON of an event that makes the task wait but does not end the stream: in 0.3, `final` is false. Rare, so the
    /// JSON is not cached.
    pub(super) fn json_not_final(
        &self,
        event: &LoggedEvent,
        version: ProtocolVersion,
    ) -> Result<Bytes, serde_json::Error> {
        match (self, version) {
            (Self::Rest, ProtocolVersion::V0_3) => {
                serde_json::to_vec(&v03::rest::event(event.event(), false))
            }
            (Self::JsonRpc(_), ProtocolVersion::V0_3) => {
                serde_json::to_vec(&v03::serialize::event_of(event.event(), false))
            }
            (_, ProtocolVersion::V1_0) => return self.json(event, version).cloned(),
        }
        .map(Bytes::from)
    }

    /// The bytes after an event's JSON.
    pub(super) const fn suffix(&self) -> &'static [u8] {
        match self {
            Self::JsonRpc(_) => b"}\n\n",
            Self::Rest => b"\n\n",
        }
    }

    /// An error as the stream's last event.
    pub(super) fn failure(&self, error: &A2aError, version: ProtocolVersion) -> Bytes {
        // Clients of the REST binding recognize an error by the event's name.
        let (head, body): (&[u8], _) = match self {
            Self::JsonRpc(id) => (b"data: ", failure(id, error, version)),
            Self::Rest => (b"event: error\ndata: ", rest_failure(error, version)),
        };
        let mut frame = BytesMut::with_capacity(head.len() + body.len() + 2);
        frame.put_slice(head);
        frame.put_slice(&body);
        frame.put_slice(b"\n\n");
        frame.freeze()
    }
}

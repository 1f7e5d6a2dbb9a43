//! The framing of events and errors in a binding's stream.

use bytes::{BufMut, Bytes, BytesMut};

use super::encoding::Encoding;
use super::jsonrpc::{Id, failure};
use super::rest::failure as rest_failure;
use crate::error::A2aError;
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

    /// The form of an event's JSON. The REST binding of 0.3 has a form of its own.
    pub(super) fn encoding(&self, version: ProtocolVersion) -> Encoding {
        match (self, version) {
            (Self::Rest, ProtocolVersion::V0_3) => Encoding::RestV0_3,
            _ => version.into(),
        }
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

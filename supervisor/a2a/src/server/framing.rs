//! How an event, or a failure, is wrapped on a binding's stream.

use bytes::{BufMut, Bytes, BytesMut};

use super::jsonrpc::{Id, failure};
use crate::error::A2aError;
use crate::version::ProtocolVersion;

/// What surrounds each event of a stream.
#[derive(Debug, Clone)]
pub(super) enum Framing {
    /// Every event is a response to the request with this id.
    JsonRpc(Id),
}

impl Framing {
    /// What comes before an event's JSON, up to the event's first byte.
    pub(super) fn prefix(&self) -> Bytes {
        match self {
            Self::JsonRpc(id) => {
                Bytes::from(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", id.as_str()))
            }
        }
    }

    /// What comes after it.
    pub(super) const fn suffix(&self) -> &'static [u8] {
        match self {
            Self::JsonRpc(_) => b"}\n\n",
        }
    }

    /// A failure as the stream's last event.
    pub(super) fn failure(&self, error: &A2aError, version: ProtocolVersion) -> Bytes {
        let body = match self {
            Self::JsonRpc(id) => failure(id, error, version),
        };
        let mut frame = BytesMut::with_capacity(body.len() + 8);
        frame.put_slice(b"data: ");
        frame.put_slice(&body);
        frame.put_slice(b"\n\n");
        frame.freeze()
    }
}

//! The forms of an event's JSON.

use crate::model::Event;
use crate::v03;
use crate::version::ProtocolVersion;

/// A form of an event's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    V0_3,
    V1_0,
    /// The form of 0.3's REST binding.
    RestV0_3,
}

impl Encoding {
    /// The number of forms.
    pub(super) const COUNT: usize = 3;
}

impl From<ProtocolVersion> for Encoding {
    fn from(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V0_3 => Self::V0_3,
            ProtocolVersion::V1_0 => Self::V1_0,
        }
    }
}

/// The JSON of an event. A status that makes the task wait ends the stream, which 0.3 says in the event.
pub(super) fn encode(event: &Event, encoding: Encoding) -> Result<Vec<u8>, serde_json::Error> {
    encode_with(event, encoding, true)
}

/// The JSON of an event. `ends` says whether a status that makes the task wait ends the stream.
pub(super) fn encode_with(
    event: &Event,
    encoding: Encoding,
    ends: bool,
) -> Result<Vec<u8>, serde_json::Error> {
    match encoding {
        Encoding::V0_3 => serde_json::to_vec(&v03::serialize::event_of(event, ends)),
        Encoding::V1_0 => serde_json::to_vec(event),
        Encoding::RestV0_3 => serde_json::to_vec(&v03::rest::event(event, ends)),
    }
}

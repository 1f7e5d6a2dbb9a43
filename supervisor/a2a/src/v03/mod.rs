//! A2A 0.3: types that read its JSON and convert to the canonical model, and writers of the canonical model.
//!
//! Objects are tagged by `kind`. CAIPE's clients and agents sometimes leave the tag out, so it may be missing (unless
//! the server applies [`SendParams::strict_faults`]) but not wrong.

pub mod card;
mod convert;
mod event;
mod message;
mod push;
mod request;
pub mod rest;
pub mod serialize;
mod task;

pub use event::{ArtifactUpdate, Event, StatusUpdate};
pub use message::{File, Message, Part, PartKind, Role};
pub use push::{Authentication, PushConfig, PushConfigParams, TaskPushConfig};
pub use request::{Configuration, SendParams, TaskIdParams, TaskQueryParams};
pub use task::{Artifact, Task, TaskState, TaskStatus};

/// A tag with one possible value: any other fails to decode, at its place.
macro_rules! tag {
    ($name:ident, $value:literal) => {
        #[doc = concat!("The tag `", $value, "`.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
        pub enum $name {
            /// The only value.
            #[serde(rename = $value)]
            Tag,
        }
    };
}
tag!(MessageTag, "message");
tag!(TaskTag, "task");
tag!(StatusUpdateTag, "status-update");
tag!(ArtifactUpdateTag, "artifact-update");

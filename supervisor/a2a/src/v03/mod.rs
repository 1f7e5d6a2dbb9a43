//! The objects of A2A 0.3 in their JSON form, and their conversions to and from the canonical model.
//!
//! Objects are tagged by `kind`. CAIPE's clients and agents leave the tag out now and then; so a missing tag
//! is read (and can be refused with [`SendParams::strict_faults`]), while a wrong one never is.

mod card;
mod convert;
mod convert_card;
mod event;
mod message;
pub mod proto;
mod push;
mod request;
mod task;
pub mod write;

pub use card::{AgentCard, Capabilities, Interface, SecurityNeed, SecurityScheme, Skill};
pub use event::{ArtifactUpdate, Event, StatusUpdate};
pub use message::{File, Message, Part, PartKind, Role};
pub use push::{Authentication, PushConfig, PushConfigParams, TaskPushConfig};
pub use request::{Configuration, SendParams, TaskIdParams, TaskQueryParams};
pub use task::{Artifact, Task, TaskState, TaskStatus};

/// A tag with one possible value: any other fails to decode, at its place.
macro_rules! tag {
    ($name:ident, $value:literal) => {
        #[doc = concat!("The tag `", $value, "`.")]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            /// The only value.
            #[default]
            #[serde(rename = $value)]
            Tag,
        }
    };
}
tag!(MessageTag, "message");
tag!(TaskTag, "task");
tag!(StatusUpdateTag, "status-update");
tag!(ArtifactUpdateTag, "artifact-update");

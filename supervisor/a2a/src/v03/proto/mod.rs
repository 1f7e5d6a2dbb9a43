//! The objects of A2A 0.3 in their third form: `ProtoJSON` of the package `a2a.v1`, which its REST binding
//! speaks (0.3, section 3.2.3), beside the tagged objects of its JSON-RPC binding.
//!
//! Members are written under the names of `json_name` (`message`, never `request`, `msg` or `update`) and
//! nothing but what the package knows, for the official Python client of 0.3 refuses anything else. Names of
//! the package itself (`message_id`, `request`) are read too, as `ProtoJSON` demands and Python's clients of
//! 1.0 write them. Conversions go by the tagged objects, so that what 0.3 can say is decided once.

mod convert;
mod message;
mod request;
mod response;
mod task;

pub use message::{DataPart, FilePart, Message, Part, Role};
pub use request::{Configuration, CreatePushConfig, SendRequest, TaskPushConfig};
pub use response::{ArtifactUpdate, ListPushConfigs, ListTasks, SendResponse, StatusUpdate, StreamResponse};
pub use task::{Artifact, Task, TaskState, TaskStatus};

//! Messages and parts.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::MessageTag;
use crate::model::Metadata;
use crate::model::nullable;

/// The sender; the default is the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The client.
    User,
    #[default]
    Agent,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub kind: Option<MessageTag>,
    /// The sender.
    #[serde(default, deserialize_with = "nullable")]
    pub role: Role,
    #[serde(default, deserialize_with = "nullable")]
    pub parts: Vec<Part>,
    /// The id. Empty if a peer omitted it.
    #[serde(default)]
    pub message_id: String,
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    /// The ids of other tasks that the message refers to.
    #[serde(default, deserialize_with = "nullable")]
    pub reference_task_ids: Vec<String>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "nullable")]
    pub extensions: Vec<String>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    Text,
    File,
    Data,
    /// Unknown to 0.3.
    #[serde(other)]
    Unknown,
}

/// One piece of content. Without a `kind`, its only member determines the kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Part {
    pub kind: Option<PartKind>,
    pub text: Option<String>,
    pub file: Option<File>,
    /// An object. Other values, which parts of unknown kinds may have, are ignored.
    #[serde(default, deserialize_with = "object")]
    pub data: Option<Metadata>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Metadata>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Object(data) => Some(data),
        _ => None,
    })
}

impl Part {
    /// The declared kind, else that of the only member.
    pub fn kind(&self) -> PartKind {
        let found = (self.text.is_some(), self.file.is_some(), self.data.is_some());
        self.kind.unwrap_or(match found {
            (true, false, false) => PartKind::Text,
            (false, true, false) => PartKind::File,
            (false, false, true) => PartKind::Data,
            _ => PartKind::Unknown,
        })
    }
}

/// A file: its content or its URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    pub name: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The content, in base64.
    pub bytes: Option<String>,
    /// The URL.
    pub uri: Option<String>,
}

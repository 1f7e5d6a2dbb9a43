//! Messages and parts.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::MessageTag;
use crate::model::Metadata;
use crate::model::null_is_default;

/// Who speaks; unsaid means the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    #[default]
    Agent,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// `message`.
    pub kind: Option<MessageTag>,
    /// Who says it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub role: Role,
    /// What is said.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parts: Vec<Part>,
    /// Its id; empty only where a peer left it out.
    #[serde(default)]
    pub message_id: String,
    /// The task it belongs to.
    pub task_id: Option<String>,
    /// The conversation it belongs to.
    pub context_id: Option<String>,
    /// Other tasks that it speaks of.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reference_task_ids: Vec<String>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default")]
    pub extensions: Vec<String>,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
}

/// Which of a part's members counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// `text`.
    Text,
    /// `file`.
    File,
    /// `data`.
    Data,
    /// None that 0.3 knows.
    #[serde(other)]
    Unknown,
}

/// One piece of content. Without a `kind`, the only member that is there counts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Part {
    /// Which member counts.
    pub kind: Option<PartKind>,
    /// Text.
    pub text: Option<String>,
    /// A file.
    pub file: Option<File>,
    /// An object. Parts of kinds that nobody knows yet may have anything here; that is left out.
    #[serde(default, deserialize_with = "object")]
    pub data: Option<Metadata>,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Metadata>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Object(data) => Some(data),
        _ => None,
    })
}

impl Part {
    /// Which member counts, told or found.
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

/// A file: its content or its place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Its name.
    pub name: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its content, in base64.
    pub bytes: Option<String>,
    /// Its place.
    pub uri: Option<String>,
}

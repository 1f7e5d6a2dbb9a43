//! Messages and parts.

use serde::{Deserialize, Serialize};

use crate::model::{Metadata, null_is_default};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The client.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

/// One turn of a conversation. Empty texts mean absence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id; empty only where a peer left it out.
    #[serde(default, alias = "message_id", skip_serializing_if = "String::is_empty")]
    pub message_id: String,
    /// The conversation it belongs to.
    #[serde(default, alias = "context_id", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// The task it belongs to.
    #[serde(default, alias = "task_id", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Who says it.
    pub role: Role,
    /// What is said; `parts` in the other forms.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

/// One piece of content: the member that is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePart>,
    /// An object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataPart>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A file: its content or its place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePart {
    /// Its place.
    #[serde(default, alias = "file_with_uri", skip_serializing_if = "Option::is_none")]
    pub file_with_uri: Option<String>,
    /// Its content, in base64.
    #[serde(default, alias = "file_with_bytes", skip_serializing_if = "Option::is_none")]
    pub file_with_bytes: Option<String>,
    /// Its media type.
    #[serde(default, alias = "mime_type", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An object, one level down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataPart {
    /// The object.
    #[serde(default)]
    pub data: Metadata,
}

//! One turn of a conversation.

use serde::{Deserialize, Serialize};

use super::serde_helpers::null_is_default;
use super::{Metadata, Part};

/// Who speaks. Agents leave it out now and then, clients must not: so unsaid means the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The client.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[default]
    #[serde(rename = "ROLE_AGENT", alias = "ROLE_UNSPECIFIED")]
    Agent,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id, made by whoever says it. Empty only where a peer left it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message_id: String,
    /// The conversation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Who says it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub role: Role,
    /// What is said.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parts: Vec<Part>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks that it speaks of.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<String>,
}

impl Message {
    /// A message with nothing but who, what and its id.
    pub fn new(role: Role, message_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// A text from the client.
    pub fn user(message_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::User, message_id, vec![Part::text(text)])
    }

    /// A text from the agent.
    pub fn agent(message_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::Agent, message_id, vec![Part::text(text)])
    }

    /// The same message, as part of a task and its conversation.
    #[must_use]
    pub fn within(mut self, task_id: impl Into<String>, context_id: impl Into<String>) -> Self {
        self.task_id = Some(task_id.into());
        self.context_id = Some(context_id.into());
        self
    }

    /// All its text, parts put together without anything between them.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }
}

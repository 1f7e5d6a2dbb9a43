//! Messages.

use serde::{Deserialize, Serialize};

use super::serde_helpers::nullable;
use super::{Metadata, Part};

/// The sender of a message. Clients must set it; some agents omit it, so the default is the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The client.
    #[serde(rename = "ROLE_USER")]
    User,
    #[default]
    #[serde(rename = "ROLE_AGENT", alias = "ROLE_UNSPECIFIED")]
    Agent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The id, chosen by the sender. Empty if a peer omitted it.
    #[serde(
        default,
        alias = "message_id",
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub message_id: String,
    /// The id of the context that the message belongs to.
    #[serde(default, alias = "context_id", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// The id of the task that the message belongs to.
    #[serde(default, alias = "task_id", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The sender.
    #[serde(default, deserialize_with = "nullable")]
    pub role: Role,
    #[serde(default, deserialize_with = "nullable")]
    pub parts: Vec<Part>,
    /// Free-form data about the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The URIs of the extensions that the message uses.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// The ids of other tasks that the message refers to.
    #[serde(
        default,
        alias = "reference_task_ids",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub reference_task_ids: Vec<String>,
}

impl Message {
    /// A message with a sender, an id and content only.
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

    pub fn agent(message_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::Agent, message_id, vec![Part::text(text)])
    }

    /// The same message with the ids of a task and its context.
    #[must_use]
    pub fn within(mut self, task_id: impl Into<String>, context_id: impl Into<String>) -> Self {
        self.task_id = Some(task_id.into());
        self.context_id = Some(context_id.into());
        self
    }

    /// The text of all parts, concatenated.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }
}

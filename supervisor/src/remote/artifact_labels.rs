//! What the name, the description and the metadata of an artifact say of it. Pure.

use caipe_a2a::model::{Artifact, Message, Metadata};
use caipe_engine::CallEnd;
use serde_json::Value;

use super::answer::content;
use crate::binding::ACTIVITY_EXTENSION;

/// What a message says, in all its parts.
pub(super) fn message_text(message: &Message) -> String {
    let artifact = Artifact::new(String::new(), String::new(), message.parts.clone());
    content(&artifact)
}

pub(super) fn source(metadata: Option<&Metadata>) -> Option<&str> {
    metadata?.get("sourceAgent")?.as_str().filter(|source| !source.is_empty())
}

pub(super) fn agent_type(metadata: Option<&Metadata>) -> Option<&str> {
    metadata?.get("agentType")?.as_str()
}

pub(super) fn is_narration(metadata: Option<&Metadata>) -> bool {
    flag(metadata, "is_narration")
}

/// Whether a text of the stream only repeats a form or a status.
pub(super) fn is_repeated(metadata: Option<&Metadata>) -> bool {
    flag(metadata, "is_question") || flag(metadata, "is_failure")
}

fn flag(metadata: Option<&Metadata>, name: &str) -> bool {
    metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether an artifact tells of the agent's work, not of its result.
pub(super) fn is_notification(artifact: &Artifact) -> bool {
    let name = artifact.name.as_deref().unwrap_or_default();
    matches!(name, "tool_notification_start" | "tool_notification_end" | "tool_output")
        || artifact.metadata.as_ref().is_some_and(|metadata| metadata.contains_key(ACTIVITY_EXTENSION))
}

/// The tool's own name, and how its call ended, from the description: the text has the name for display only.
pub(super) fn described(artifact: &Artifact) -> (Option<CallEnd>, Option<String>) {
    let prefixes = [
        ("Tool call started: ", None),
        ("Tool call completed: ", Some(CallEnd::Completed)),
        ("Tool call failed: ", Some(CallEnd::Failed)),
        ("Tool call canceled: ", Some(CallEnd::Canceled)),
    ];
    let description = artifact.description.as_deref().unwrap_or_default();
    // One description serves every end; the sign in the text tells them apart.
    let text = artifact.text();
    let shown = text.starts_with('❌').then_some(if text.contains("cancel") {
        CallEnd::Canceled
    } else {
        CallEnd::Failed
    });
    let found =
        prefixes.iter().find_map(|(prefix, end)| Some((*end, description.strip_prefix(prefix)?.trim())));
    let is_end = artifact.name.as_deref() == Some("tool_notification_end");
    match found.filter(|(_, tool)| !tool.is_empty()) {
        Some((Some(CallEnd::Completed), tool)) => (shown.or(Some(CallEnd::Completed)), Some(tool.to_owned())),
        Some((end, tool)) => (end.or_else(|| is_end.then_some(CallEnd::Completed)), Some(tool.to_owned())),
        None => (is_end.then_some(CallEnd::Completed), None),
    }
}

//! Reads the name, the description and the metadata of an artifact. Pure.

use caipe_a2a::model::{Artifact, Message, Metadata};
use caipe_engine::CallEnd;
use serde_json::Value;

use super::answer_builder::content;
use crate::binding::ACTIVITY_EXTENSION;

/// The text of all parts of a message.
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

/// Whether a streamed text repeats a form or a status.
pub(super) fn is_repeated(metadata: Option<&Metadata>) -> bool {
    flag(metadata, "is_question") || flag(metadata, "is_failure")
}

fn flag(metadata: Option<&Metadata>, name: &str) -> bool {
    metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether an artifact is a notification about the agent's work, not a result.
pub(super) fn is_notification(artifact: &Artifact) -> bool {
    let name = artifact.name.as_deref().unwrap_or_default();
    matches!(name, "tool_notification_start" | "tool_notification_end" | "tool_output")
        || artifact.metadata.as_ref().is_some_and(|metadata| metadata.contains_key(ACTIVITY_EXTENSION))
}

/// The end of a call and the name of its tool, from the description, because the text has only a display name.
pub(super) fn described(artifact: &Artifact) -> (Option<CallEnd>, Option<String>) {
    let prefixes = [
        ("Tool call started: ", None),
        ("Tool call completed: ", Some(CallEnd::Completed)),
        ("Tool call failed: ", Some(CallEnd::Failed)),
        ("Tool call canceled: ", Some(CallEnd::Canceled)),
    ];
    let description = artifact.description.as_deref().unwrap_or_default();
    // Some agents describe every end as completed; the sign in the text distinguishes them.
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

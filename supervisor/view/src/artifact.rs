//! The role of an artifact for the user, from its name and metadata.

use caipe_a2a::model::{Artifact, Content, Metadata, Part};

use super::{Presentation, notice};

/// The role of an artifact for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// One line about a call; `ends` if the name is that of an end.
    Notification {
        ends: bool,
    },
    /// The whole plan, or its changed steps.
    Plan {
        whole: bool,
    },
    /// A question with fields.
    Form,
    /// Text that is shown as it arrives.
    Stream(Presentation),
    /// The whole answer, which may repeat streamed text.
    Result,
    /// The answer of an agent that the supervisor called. The supervisor's own answer contains it.
    AgentAnswer,
    Error,
    Marker,
}

impl Role {
    pub(super) fn of(artifact: &Artifact) -> Self {
        let metadata = artifact.metadata.as_ref();
        match artifact.name.as_deref().unwrap_or_default() {
            "tool_notification_start" | "tool_output" => Self::Notification { ends: false },
            "tool_notification_end" => Self::Notification { ends: true },
            "execution_plan_update" => Self::Plan { whole: true },
            "execution_plan_status_update" => Self::Plan { whole: false },
            "UserInputMetaData" => Self::Form,
            // The form and the status contain the same text.
            "streaming_result" if flag(metadata, "is_question") || flag(metadata, "is_failure") => {
                Self::Marker
            }
            "streaming_result" => Self::Stream(presentation(metadata)),
            "complete_result" if notice::is_sub_agent(metadata) => Self::AgentAnswer,
            "final_result" | "partial_result" | "complete_result" => Self::Result,
            "error_result" => Self::Error,
            "current_result" if artifact.text().trim().is_empty() => Self::Marker,
            _ => Self::Stream(Presentation::Answer),
        }
    }
}

fn flag(metadata: Option<&Metadata>, name: &str) -> bool {
    metadata.and_then(|metadata| metadata.get(name)).is_some_and(|value| value == true)
}

fn presentation(metadata: Option<&Metadata>) -> Presentation {
    let is_narration = flag(metadata, "is_narration") && !flag(metadata, "is_final_answer");
    if is_narration { Presentation::Narration } else { Presentation::Answer }
}

/// The content of an artifact as Markdown. Text parts are concatenated; an empty line precedes other parts.
pub(super) fn text(artifact: &Artifact) -> String {
    let mut text = String::new();
    for part in &artifact.parts {
        match (&part.content, readable(part)) {
            (Content::Text(piece), _) => text.push_str(piece),
            (_, Some(piece)) => {
                if !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(&piece);
            }
            _ => {}
        }
    }
    text
}

/// A part as Markdown; `None` if there is nothing to read.
pub(super) fn readable(part: &Part) -> Option<String> {
    let named = || part.filename.as_deref().or(part.media_type.as_deref()).unwrap_or("file").to_owned();
    match &part.content {
        Content::Text(text) => Some(text.clone()),
        Content::Data(data) => {
            let json = serde_json::to_string_pretty(data).ok()?;
            Some(format!("```json\n{json}\n```\n"))
        }
        Content::Url(url) => Some(format!("📎 {}: {url}", named())),
        // Base64 has four characters for three bytes.
        Content::Raw(base64) => Some(format!("📎 {} ({} bytes)", named(), base64.len() / 4 * 3)),
        Content::Unknown => None,
    }
}

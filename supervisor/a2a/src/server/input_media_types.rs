//! Checks the media types of a message.

use crate::error::A2aError;
use crate::model::{AgentCard, Content, Message, Part};

/// Rejects a message with a part of a media type that is not among the card's default input modes. Without modes, every
/// type is accepted.
pub(super) fn check(card: &AgentCard, message: &Message) -> Result<(), A2aError> {
    let Some(part) = message.parts.iter().find(|part| !card.accepts(&media_type(part))) else {
        return Ok(());
    };
    let (given, modes) = (media_type(part), card.default_input_modes.join(", "));
    Err(A2aError::ContentTypeNotSupported(format!("{given}; this agent accepts {modes}")))
}

/// The declared media type of a part, else that of its content.
fn media_type(part: &Part) -> String {
    let declared =
        part.media_type.as_deref().map(|media_type| media_type.split(';').next().unwrap_or_default().trim());
    let own = match part.content {
        Content::Text(_) => "text/plain",
        Content::Data(_) => "application/json",
        Content::Raw(_) | Content::Url(_) | Content::Unknown => "application/octet-stream",
    };
    declared.filter(|declared| !declared.is_empty()).unwrap_or(own).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Message, Role};

    #[test]
    fn a_part_must_be_of_one_of_the_modes() {
        let text = json!({"text": "hello"});
        let markdown = json!({"text": "*hello*", "mediaType": "text/markdown; charset=utf-8"});
        let data = json!({"data": {"a": 1}});
        let image = json!({"raw": "AAAA", "mediaType": "image/png"});
        let cases: [(&[&str], &serde_json::Value, bool); 11] = [
            (&[], &data, true),
            (&["text"], &text, true),
            (&["text"], &markdown, true),
            (&["text/plain"], &markdown, false),
            (&["text", "text/plain"], &data, false),
            (&["application/json"], &data, true),
            (&["TEXT/PLAIN"], &text, true),
            (&["image/*"], &image, true),
            (&["image/jpeg"], &image, false),
            (&["*/*"], &image, true),
            (&["text/plain"], &image, false),
        ];
        for (modes, part, taken) in cases {
            let modes = modes.iter().map(|mode| (*mode).to_owned()).collect();
            let card = AgentCard { default_input_modes: modes, ..AgentCard::default() };
            let part: Part = serde_json::from_str(&part.to_string()).unwrap();
            let message = Message::new(Role::User, "m", vec![part.clone()]);
            assert_eq!(check(&card, &message).is_ok(), taken, "{:?} {part:?}", card.default_input_modes);
        }
    }
}

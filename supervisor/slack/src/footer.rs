//! The buttons below an answer or a failure. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::question::button;
use crate::settings::Channel;

pub(crate) const FEEDBACK: &str = "caipe_feedback";
pub(crate) const RETRY: &str = "caipe_retry";
pub(crate) const HELP: &str = "caipe_escalation_get_help";
pub(crate) const DELETE: &str = "caipe_delete_message";

/// The turn that a button belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub(crate) task: String,
    /// The time stamp of the message that asked.
    pub(crate) question: String,
    pub(crate) asker: String,
    pub(crate) trace: String,
}

impl Subject {
    /// The subject in the value of a button.
    pub(crate) fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The buttons below an answer.
pub(crate) fn feedback(subject: &Subject, channel: &Channel) -> Vec<Value> {
    let json = subject.json();
    let thumb = |text: &str, sign: &str| json!({"text": {"type": "plain_text", "text": text}, "value": format!("{sign}|{json}"), "accessibility_label": text});
    let buttons = json!({
        "type": "feedback_buttons", "action_id": FEEDBACK,
        "positive_button": thumb("Good answer", "positive"), "negative_button": thumb("Bad answer", "negative"),
    });
    let mut elements = vec![buttons];
    if !channel.other.delete_admins.is_empty() {
        elements.push(json!({
            "type": "icon_button", "icon": "trash", "action_id": DELETE, "value": json,
            "text": {"type": "plain_text", "text": "Delete"},
            "visible_to_user_ids": channel.other.delete_admins.iter().take(10).collect::<Vec<_>>(),
        }));
    }
    vec![json!({"type": "context_actions", "elements": elements})]
}

/// The buttons below a failure.
pub(crate) fn retry(subject: &Subject, channel: &Channel) -> Vec<Value> {
    let json = subject.json();
    let mut elements = vec![button("Retry", RETRY, &json, Some("primary"))];
    if channel.other.escalation.is_set() {
        elements.push(button("Get help", HELP, &json, None));
    }
    vec![json!({"type": "actions", "elements": elements})]
}

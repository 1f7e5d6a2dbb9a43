//! Builds event objects within the limits of the API server (`pkg/apis/core/validation/events.go` of Kubernetes).

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::reason::Reason;
use crate::labels::MANAGER;

/// Maximum bytes of a note.
const NOTE: usize = 1024;
/// Maximum characters of a reporting instance.
const INSTANCE: usize = 128;

/// `unique` makes the name unique.
pub(super) fn event(
    regarding: &ObjectReference,
    reason: Reason,
    note: &str,
    instance: &str,
    now: Timestamp,
    unique: u64,
) -> Event {
    let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let about = regarding.name.as_deref().unwrap_or(MANAGER);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{about}.{unique:016x}")),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        regarding: Some(regarding.clone()),
        reason: Some(reason.as_str().to_owned()),
        action: Some(reason.action().to_owned()),
        note: Some(cut(note)),
        type_: Some(if reason.is_warning() { "Warning" } else { "Normal" }.to_owned()),
        event_time: Some(MicroTime(now)),
        reporting_controller: Some(MANAGER.to_owned()),
        reporting_instance: Some(instance.chars().take(INSTANCE).collect()),
        ..Event::default()
    }
}

/// The patch that counts a repetition.
pub(super) fn series(count: i32, now: Timestamp) -> Value {
    json!({"series": {"count": count, "lastObservedTime": MicroTime(now)}})
}

/// The note as one line of at most [`NOTE`] bytes.
pub(super) fn cut(note: &str) -> String {
    const MARK: &str = "…";
    let note = note.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if note.len() <= NOTE {
        return note;
    }
    let end = note.floor_char_boundary(NOTE - MARK.len());
    format!("{}{MARK}", note.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_fits_in_a_kilobyte_and_stays_text() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("one fault\n  another\n\n"), "one fault; another");
        for letter in ["x", "ü", "€", "🔧"] {
            let full = letter.repeat(NOTE / letter.len());
            assert_eq!(cut(&full), full);
            let text = cut(&letter.repeat(2000));
            assert!(text.len() <= NOTE && text.len() > NOTE - 8, "{} bytes", text.len());
            assert!(text.trim_end_matches('…').chars().all(|c| letter.contains(c)));
        }
    }

    #[test]
    fn the_api_server_accepts_what_is_reported() {
        let regarding = ObjectReference {
            kind: Some("CaipeSupervisor".into()),
            name: Some("platform".into()),
            namespace: Some("team".into()),
            ..ObjectReference::default()
        };
        for reason in Reason::ALL {
            let instance = "o".repeat(300);
            let event = event(&regarding, *reason, "It is so.", &instance, Timestamp::UNIX_EPOCH, 0xabc);
            assert_eq!(event.metadata.name.as_deref(), Some("platform.0000000000000abc"));
            assert_eq!(event.metadata.namespace, regarding.namespace, "both must be the same");
            assert_eq!(event.reporting_instance.map(|instance| instance.len()), Some(128));
            assert!(event.action.is_some_and(|action| !action.is_empty() && action.len() <= 128));
            assert!(event.reason.is_some_and(|text| text == reason.as_str() && text.len() <= 128));
            assert!(matches!(event.type_.as_deref(), Some("Normal" | "Warning")));
            assert!(event.event_time.is_some() && event.series.is_none());
        }
    }
}

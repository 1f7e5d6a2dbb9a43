use caipe_a2a::model::{TaskState, TaskStatus, TaskStatusUpdateEvent};
use serde_json::{Value, json};

use super::*;

fn written(event: &StreamEvent) -> String {
    let mut out = Vec::new();
    Json::new(&mut out).event(event).unwrap();
    String::from_utf8(out).unwrap()
}

fn status(text: &str) -> Event {
    let mut status = TaskStatus::new(TaskState::Completed);
    status.message = Some(caipe_a2a::model::Message::agent("m", text));
    Event::StatusUpdate(TaskStatusUpdateEvent {
        task_id: "t".into(),
        context_id: "c".into(),
        status,
        metadata: None,
    })
}

#[test]
fn an_event_is_a_line_in_the_shape_of_1_0() {
    let line = written(&StreamEvent { seq: Some(7), ..status("done\nand dusted").into() });
    assert_eq!(line.matches('\n').count(), 1);
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["id"], &value["state"]), (&json!("7"), &json!("completed")));
    assert_eq!(value["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    let bare = written(&status("").into());
    assert!(!bare.contains("\"id\"") && !bare.contains("resumed"), "{bare}");
    let resumed = written(&StreamEvent { resumed: true, ..status("").into() });
    assert!(resumed.contains("\"resumed\":true"), "{resumed}");
}

#[test]
fn no_control_character_is_written_raw_and_none_is_lost() {
    let hostile = "a\u{9b}31m\u{7f}\u{1b}[2J\u{202e}b";
    let line = written(&status(hostile).into());
    assert!(line.trim_end().chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["statusUpdate"]["status"]["message"]["parts"][0]["text"], hostile);
}

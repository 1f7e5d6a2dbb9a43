//! Wire forms of both versions as the specifications and existing peers write them.

use caipe_a2a::model::{Content, Event, Message, Part, Role, SendMessageRequest, Task, TaskState};
use caipe_a2a::v03;
use serde_json::{Value, json};

fn v03_event(json: &Value) -> Event {
    serde_json::from_str::<v03::Event>(&json.to_string()).unwrap().into()
}

fn to_v03(event: &Event) -> Value {
    serde_json::to_value(v03::serialize::event(event)).unwrap()
}

/// The three events of a CAIPE stream in 0.3, and the same in 1.0.
fn events() -> Vec<(Value, Value)> {
    vec![
        (
            json!({"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "submitted"},
                "history": [{"kind": "message", "role": "user", "messageId": "M1", "taskId": "T1",
                    "contextId": "C1", "parts": [{"kind": "text", "text": "show version"}]}]}),
            json!({"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_SUBMITTED"},
                "history": [{"role": "ROLE_USER", "messageId": "M1", "taskId": "T1", "contextId": "C1",
                    "parts": [{"text": "show version"}]}]}}),
        ),
        (
            json!({"kind": "status-update", "taskId": "T1", "contextId": "C1", "final": false,
                "status": {"state": "working", "message": {"kind": "message", "role": "agent",
                    "messageId": "M2", "taskId": "T1", "contextId": "C1",
                    "parts": [{"kind": "text", "text": "🔧 Argocd: Calling tool: Version\n"}]}}}),
            json!({"statusUpdate": {"taskId": "T1", "contextId": "C1",
                "status": {"state": "TASK_STATE_WORKING", "message": {"role": "ROLE_AGENT",
                    "messageId": "M2", "taskId": "T1", "contextId": "C1",
                    "parts": [{"text": "🔧 Argocd: Calling tool: Version\n"}]}}}}),
        ),
        (
            json!({"kind": "status-update", "taskId": "T1", "contextId": "C1", "final": true,
                "status": {"state": "completed", "timestamp": "2025-10-25T12:00:00.250Z"},
                "metadata": {"trace_id": "abc"}}),
            json!({"statusUpdate": {"taskId": "T1", "contextId": "C1",
                "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2025-10-25T12:00:00.250Z"},
                "metadata": {"trace_id": "abc"}}}),
        ),
        (
            json!({"kind": "artifact-update", "taskId": "T1", "contextId": "C1", "append": false,
                "lastChunk": false, "artifact": {"artifactId": "A1", "name": "tool_notification_start",
                    "description": "Tool call started: argocd",
                    "parts": [{"kind": "text", "text": "🔧 Supervisor: Calling Argocd...\n"}],
                    "metadata": {"sourceAgent": "argocd", "agentType": "notification"}}}),
            json!({"artifactUpdate": {"taskId": "T1", "contextId": "C1",
                "artifact": {"artifactId": "A1", "name": "tool_notification_start",
                    "description": "Tool call started: argocd",
                    "parts": [{"text": "🔧 Supervisor: Calling Argocd...\n"}],
                    "metadata": {"sourceAgent": "argocd", "agentType": "notification"}}}}),
        ),
        (
            json!({"kind": "artifact-update", "taskId": "T1", "contextId": "C1", "append": true,
                "lastChunk": true, "artifact": {"artifactId": "A2", "parts": [
                    {"kind": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
                    {"kind": "file", "file": {"uri": "https://example.com/b"}},
                    {"kind": "data", "data": {"role": "user", "state": "working", "kind": "task"}}]}}),
            json!({"artifactUpdate": {"taskId": "T1", "contextId": "C1", "append": true,
                "lastChunk": true, "artifact": {"artifactId": "A2", "parts": [
                    {"raw": "aGk=", "filename": "a.txt", "mediaType": "text/plain"},
                    {"url": "https://example.com/b"},
                    {"data": {"role": "user", "state": "working", "kind": "task"}}]}}}),
        ),
        (
            json!({"kind": "message", "role": "agent", "messageId": "M3",
                "parts": [{"kind": "text", "text": "hello"}], "referenceTaskIds": ["T0"],
                "extensions": ["https://example.com/x"]}),
            json!({"message": {"role": "ROLE_AGENT", "messageId": "M3", "parts": [{"text": "hello"}],
                "referenceTaskIds": ["T0"], "extensions": ["https://example.com/x"]}}),
        ),
    ]
}

#[test]
fn events_have_the_wire_form_of_each_version() {
    for (old, new) in events() {
        let event: Event = serde_json::from_value(new.clone()).unwrap();
        assert_eq!(v03_event(&old), event, "{old}");
        assert_eq!(serde_json::to_value(&event).unwrap(), new);
        assert_eq!(to_v03(&event), old);
    }
}

#[test]
fn every_state_has_its_name_and_its_final_in_each_version() {
    for (old, new, is_final) in [
        ("submitted", "TASK_STATE_SUBMITTED", false),
        ("working", "TASK_STATE_WORKING", false),
        ("input-required", "TASK_STATE_INPUT_REQUIRED", true),
        ("completed", "TASK_STATE_COMPLETED", true),
        ("canceled", "TASK_STATE_CANCELED", true),
        ("failed", "TASK_STATE_FAILED", true),
        ("rejected", "TASK_STATE_REJECTED", true),
        ("auth-required", "TASK_STATE_AUTH_REQUIRED", true),
        ("unknown", "TASK_STATE_UNSPECIFIED", false),
    ] {
        let update = json!({"statusUpdate": {"taskId": "T", "contextId": "C", "status": {"state": new}}});
        let event: Event = serde_json::from_value(update).unwrap();
        let written = to_v03(&event);
        assert_eq!(written["status"]["state"], old);
        assert_eq!(written["final"], is_final, "{old}");
        assert_eq!(v03_event(&written), event);
        assert_eq!(event.state().map(|state| state.to_string()), Some(old.to_owned()));
    }
}

#[test]
fn what_the_python_agents_of_caipe_send_is_read() {
    // No kinds anywhere, an empty closing chunk without `append`, a time without an offset.
    let event = v03_event(&json!({"taskId": "T1", "contextId": "C1", "lastChunk": true,
        "artifact": {"artifactId": "A1", "name": "current_result", "parts": [{"text": ""}]}}));
    let Event::ArtifactUpdate(update) = event else { panic!("{event:?}") };
    assert!(update.append && update.last_chunk);
    assert_eq!(update.artifact.parts, [Part::text("")]);

    let event = v03_event(&json!({"taskId": "T1", "contextId": "C1",
        "status": {"state": "completed", "timestamp": "2025-10-25T12:00:00.123456", "message": null}}));
    let Event::StatusUpdate(update) = event else { panic!("{event:?}") };
    assert_eq!(update.status.timestamp.unwrap().to_string(), "2025-10-25T12:00:00.123456Z");

    let event = v03_event(&json!({"id": "T1", "contextId": "C1", "status": {"state": "no-such-state"},
        "history": null, "artifacts": null}));
    assert_eq!(event.state(), Some(TaskState::Unspecified));

    let event = v03_event(&json!({"role": "agent", "messageId": "m", "parts": [{"text": "hi"}]}));
    assert!(matches!(event, Event::Message(message) if message.text() == "hi"));
}

#[test]
fn a_wrong_kind_is_never_taken() {
    for (wrong, place) in [
        (json!({"kind": "task", "role": "user", "parts": []}), "expected `message`"),
        (json!({"role": "ROLE_USER", "parts": []}), "ROLE_USER"),
    ] {
        let error = serde_json::from_str::<v03::Message>(&wrong.to_string()).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
    let unknown = r#"{"kind": "surprise", "id": "x"}"#;
    assert!(serde_json::from_str::<v03::Event>(unknown).unwrap_err().to_string().contains("surprise"));
    // A part whose kind and content differ says nothing; the server refuses it.
    for part in
        [json!({"kind": "text", "data": {}}), json!({"kind": "video"}), json!({"text": "", "data": {}})]
    {
        let part: v03::Part = serde_json::from_value(part).unwrap();
        assert_eq!(Part::from(part).content, Content::Unknown);
    }
}

#[test]
fn unknown_members_are_ignored_everywhere() {
    let event: Event = serde_json::from_value(json!({"generation": 4, "task": {"id": "T", "contextId": "C",
        "generation": 7, "status": {"state": "TASK_STATE_WORKING", "x": [1]},
        "history": [{"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi", "mood": "good"}]}]}}))
    .unwrap();
    assert_eq!(event.state(), Some(TaskState::Working));
}

#[test]
fn a_part_has_one_content_and_null_is_data() {
    let several = serde_json::from_value::<Part>(json!({"text": "a", "url": "b"})).unwrap_err();
    assert!(several.to_string().contains("exactly one of text, raw, url, data"), "{several}");
    let null: Part = serde_json::from_value(json!({"data": null})).unwrap();
    assert_eq!(null.as_data(), Some(&Value::Null));
    assert_eq!(serde_json::to_value(null).unwrap(), json!({"data": null}));
    let text: Part = serde_json::from_value(json!({"text": "a", "data": null, "raw": null})).unwrap();
    assert_eq!(text.as_text(), Some("a"));
}

#[test]
fn data_that_is_no_object_survives_0_3() {
    for value in [json!(null), json!([1, 2]), json!("x"), json!(1.5)] {
        let part = Part { metadata: None, ..Part::data(value.clone()) };
        let message = Message::new(Role::User, "m", vec![part]);
        let written = serde_json::to_value(v03::serialize::message(&message)).unwrap();
        assert_eq!(written["parts"][0]["data"], json!({"value": value}), "{written}");
        assert_eq!(Message::from(serde_json::from_value::<v03::Message>(written).unwrap()), message);
    }
}

#[test]
fn blocking_and_return_immediately_are_opposites() {
    for (blocking, at_once) in [(json!(null), false), (json!(true), false), (json!(false), true)] {
        let params =
            json!({"message": {"role": "user", "parts": []}, "configuration": {"blocking": blocking}});
        let request = SendMessageRequest::from(serde_json::from_value::<v03::SendParams>(params).unwrap());
        assert_eq!(request.returns_immediately(), at_once, "{blocking}");
        let written = serde_json::to_value(v03::serialize::send_params(&request)).unwrap();
        assert_eq!(written["configuration"]["blocking"], !at_once);
    }
}

#[test]
fn default_values_are_left_out_in_1_0() {
    let task = Task::submitted("T", "C", Message::user("m", "hi"));
    let written = serde_json::to_string(&task).unwrap();
    for absent in ["artifacts", "metadata", "timestamp", "extensions", "referenceTaskIds", "null"] {
        assert!(!written.contains(absent), "{written}");
    }
}

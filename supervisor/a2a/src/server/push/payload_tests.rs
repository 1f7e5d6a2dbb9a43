use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{Message, Task, TaskState, TaskStatus, TaskStatusUpdateEvent};

fn chunk(id: &str, text: &str, append: bool) -> Event {
    Event::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        artifact: Artifact::new(id, "answer", vec![Part::text(text)]),
        append,
        last_chunk: false,
        metadata: None,
    })
}

fn status(state: TaskState) -> Event {
    Event::StatusUpdate(TaskStatusUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: TaskStatus::new(state),
        metadata: None,
    })
}

fn log(events: impl IntoIterator<Item = Event>) -> Arc<TaskLog> {
    let message = Message::agent("m", "hi");
    let log = TaskLog::new(Task::submitted("t", "c", message));
    log.push_many(events);
    Arc::new(log)
}

fn payload_texts(version: ProtocolVersion, log: &Arc<TaskLog>, after: u64) -> Vec<(u64, Value)> {
    let (events, _) = log.read(after, usize::MAX);
    let payloads = payloads(version, log, &events).unwrap();
    payloads
        .into_iter()
        .map(|payload| (payload.last, serde_json::from_slice(&payload.body).unwrap()))
        .collect()
}

#[test]
fn chunks_of_one_artifact_become_one_and_nothing_else_is_touched() {
    let log = log([
        status(TaskState::Working),
        chunk("a", "one ", false),
        chunk("a", "two ", true),
        chunk("b", "other", false),
        chunk("a", "three ", true),
        chunk("a", "four", true),
        chunk("a", "anew", false),
        status(TaskState::Completed),
    ]);
    let payload_texts = payload_texts(ProtocolVersion::V1_0, &log, 1);
    let last: Vec<_> = payload_texts.iter().map(|(last, _)| *last).collect();
    assert_eq!(last, [2, 4, 5, 7, 8, 9]);
    let artifact = |text: &str| json!([{"text": text}]);
    let update = |at: usize| &payload_texts[at].1["artifactUpdate"];
    assert_eq!(payload_texts[0].1["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(update(1)["artifact"]["parts"], artifact("one two "));
    assert_eq!(update(1).get("append"), None);
    assert_eq!(update(2)["artifact"]["parts"], artifact("other"));
    assert_eq!(update(3)["artifact"]["parts"], artifact("three four"));
    assert_eq!(update(3)["append"], true);
    assert_eq!(update(4)["artifact"]["parts"], artifact("anew"));
    assert_eq!(payload_texts[5].1["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn a_client_of_0_3_gets_the_whole_task_once() {
    let log = log([chunk("a", "one ", false), chunk("a", "two", true), status(TaskState::Completed)]);
    let payload_texts = payload_texts(ProtocolVersion::V0_3, &log, 1);
    assert_eq!(payload_texts.len(), 1);
    let (last, task) = &payload_texts[0];
    assert_eq!(*last, 4);
    assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &json!("t")));
    assert_eq!(task["status"]["state"], "completed");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"kind": "text", "text": "one two"}]));
}

#[test]
fn what_is_put_together_stays_small_enough_to_be_taken() {
    let text = "x".repeat(100 * 1024);
    let log = log((0..6).map(|index| chunk("a", &text, index > 0)));
    let sizes: Vec<_> = payload_texts(ProtocolVersion::V1_0, &log, 1)
        .iter()
        .map(|(_, event)| event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str().unwrap().len())
        .collect();
    assert_eq!(sizes, [200 * 1024; 3]);
}

fn some_event() -> impl Strategy<Value = Event> {
    let id = prop_oneof![3 => Just("a"), 1 => Just("b")];
    prop_oneof![
        8 => (id, "[a-z ]{0,6}", prop::bool::weighted(0.8)).prop_map(|(id, text, append)| chunk(id, &text, append)),
        1 => Just(status(TaskState::Working)),
    ]
}

proptest! {
    /// Who applies what is payload_texts ends with the same task, wherever a delivery was cut.
    #[test]
    fn payloads_add_up_to_the_task(
        events in prop::collection::vec(some_event(), 0..40),
        cuts in prop::collection::vec(1_usize..10, 0..40),
    ) {
        let log = log(events);
        let (all, _) = log.read(0, usize::MAX);
        let (mut rest, mut rebuilt, mut last) = (&all[..], None::<TaskLog>, 0);
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            for payload in payloads(ProtocolVersion::V1_0, &log, now).unwrap() {
                prop_assert!(payload.last > last);
                last = payload.last;
                match (&rebuilt, serde_json::from_slice(&payload.body).unwrap()) {
                    (None, Event::Task(task)) => rebuilt = Some(TaskLog::new(*task)),
                    (Some(log), event) => drop(log.push(event)),
                    (None, event) => prop_assert!(false, "{event:?} before the task"),
                }
            }
            rest = later;
        }
        prop_assert_eq!(last, log.last_seq());
        let (rebuilt, task) = (rebuilt.unwrap().snapshot(), log.snapshot());
        prop_assert_eq!(rebuilt.status.state, task.status.state);
        prop_assert_eq!(rebuilt.artifacts, task.artifacts);
    }
}

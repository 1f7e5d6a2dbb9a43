use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::model::{
    Artifact, Message, Part, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};

fn task() -> Task {
    Task::submitted("t", "c", Message::user("m", "hi"))
}

fn status(state: TaskState) -> Event {
    let status = TaskStatus::new(state);
    TaskStatusUpdateEvent { task_id: "t".into(), context_id: "c".into(), status, metadata: None }.into()
}

fn chunk(id: &str, text: &str, append: bool) -> Event {
    let artifact = Artifact::new(id, "n", vec![Part::text(text)]);
    let (task_id, context_id) = ("t".to_owned(), "c".to_owned());
    TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk: false, metadata: None }
        .into()
}

fn texts(task: &Task) -> Vec<(String, String)> {
    task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), artifact.text())).collect()
}

#[test]
fn a_new_log_begins_with_its_task_and_numbers_rise() {
    let log = TaskLog::new(task());
    assert_eq!((log.last_seq(), log.state()), (1, TaskState::Submitted));
    assert_eq!(log.push(status(TaskState::Working)), 2);
    assert_eq!(log.push_many([chunk("a", "x", false), chunk("a", "y", true)]), 4);
    assert_eq!(log.push_at(4, status(TaskState::Failed)), Err(LogError::OutOfOrder { seq: 4, last: 4 }));
    assert_eq!(log.push_at(10, status(TaskState::Completed)), Ok(()));
    log.close();
    assert_eq!(log.push(status(TaskState::Failed)), 10, "a closed log stays as it is");
    assert_eq!(log.push_at(11, status(TaskState::Failed)), Err(LogError::Closed));
    assert_eq!(log.state(), TaskState::Completed);
}

#[test]
fn artifacts_are_put_together_as_the_events_say() {
    let log = TaskLog::new(task());
    log.push_many([
        chunk("a", "1", false),
        chunk("b", "x", true),
        chunk("a", "2", true),
        chunk("b", "y", true),
        chunk("b", "z", false),
    ]);
    let snapshot = log.snapshot();
    assert_eq!(texts(&snapshot), [("a".into(), "12".into()), ("b".into(), "z".into())]);
    assert_eq!(snapshot.artifacts[0].parts.len(), 1, "bare text stays one part");

    let mut special = Part::text("3");
    special.media_type = Some("text/markdown".to_owned());
    let mut event = chunk("a", "", true);
    if let Event::ArtifactUpdate(update) = &mut event {
        update.artifact.parts = vec![special, Part::data(1), Part::text("4"), Part::text("5")];
    }
    log.push(event);
    let snapshot = log.snapshot();
    assert_eq!(snapshot.artifacts[0].text(), "12345");
    assert_eq!(
        snapshot.artifacts[0].parts.len(),
        4,
        "text with a type of its own is not mixed with other text"
    );
}

#[test]
fn a_log_is_restored_from_its_events() {
    let log = TaskLog::restore([
        (3, task().into()),
        (5, chunk("a", "x", false)),
        (9, status(TaskState::InputRequired)),
    ])
    .unwrap();
    assert_eq!((log.last_seq(), log.state()), (9, TaskState::InputRequired));
    assert_eq!(log.push(status(TaskState::Working)), 10);
    assert_eq!(log.snapshot_at(0).0, 3, "before the first event there is the first");
    assert_eq!(log.snapshot_at(7).0, 5);
    assert_eq!(log.snapshot_at(99).0, 10);
    assert_eq!(TaskLog::restore([(1, status(TaskState::Working))]).unwrap_err(), LogError::NoTask);
    assert_eq!(TaskLog::restore([]).unwrap_err(), LogError::NoTask);
    let disorder = TaskLog::restore([(2, task().into()), (2, status(TaskState::Working))]);
    assert_eq!(disorder.unwrap_err(), LogError::OutOfOrder { seq: 2, last: 2 });
}

#[test]
fn an_event_is_written_once_per_version() {
    let log = Arc::new(TaskLog::new(task()));
    let first = log.cursor(0).ready().unwrap();
    let again = log.cursor(0).ready().unwrap();
    for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
        let (one, other) = (first.json(version).unwrap(), again.json(version).unwrap());
        assert_eq!(one.as_ptr(), other.as_ptr());
    }
    assert_ne!(first.json(ProtocolVersion::V0_3).unwrap(), first.json(ProtocolVersion::V1_0).unwrap());
}

#[test]
fn a_reader_waits_and_may_be_interrupted() {
    let log = Arc::new(TaskLog::new(task()));
    let mut cursor = log.cursor(1);
    assert!(cursor.next().now_or_never().is_none(), "nothing is there yet");
    log.push_many([status(TaskState::Working), status(TaskState::Completed)]);
    assert_eq!(cursor.next().now_or_never().unwrap().unwrap().seq(), 2);
    log.close();
    assert_eq!(cursor.next().now_or_never().unwrap().unwrap().seq(), 3, "a closed log is read to its end");
    assert!(cursor.next().now_or_never().unwrap().is_none());
    assert!(cursor.next().now_or_never().unwrap().is_none());
    assert!(log.cursor(1000).next().now_or_never().unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_reader_sees_every_event_in_order() {
    const EVENTS: u64 = 5000;
    let log = Arc::new(TaskLog::new(task()));
    let readers: Vec<_> = (0..16_u64)
        .map(|reader| {
            let mut cursor = log.cursor(reader % 3);
            tokio::spawn(async move {
                let mut expected = reader % 3 + 1;
                while let Some(event) = cursor.next().await {
                    assert_eq!(event.seq(), expected);
                    expected += 1;
                    if expected.is_multiple_of(97) {
                        tokio::task::yield_now().await;
                    }
                }
                expected - 1
            })
        })
        .collect();
    let writer = Arc::clone(&log);
    tokio::spawn(async move {
        for number in 2..=EVENTS {
            writer.push(chunk("a", "x", true));
            if number % 10 == 0 {
                tokio::task::yield_now().await;
            }
        }
        writer.close();
    });
    for reader in readers {
        let last = tokio::time::timeout(Duration::from_secs(30), reader).await.unwrap().unwrap();
        assert_eq!(last, EVENTS);
    }
}

fn event() -> impl Strategy<Value = Event> {
    let states = [TaskState::Working, TaskState::InputRequired, TaskState::Completed];
    let chunks = ("[ab]", "[a-z]{0,3}", any::<bool>());
    prop_oneof![
        1 => prop::sample::select(states.to_vec()).prop_map(status),
        4 => chunks.prop_map(|(id, text, append)| chunk(&id, &text, append)),
    ]
}

proptest! {
    #[test]
    fn any_snapshot_and_the_rest_make_the_whole(events in proptest::collection::vec(event(), 0..40), at in 0_u64..45) {
        let log = Arc::new(TaskLog::new(task()));
        log.push_many(events);
        log.close();
        let (seq, part) = log.snapshot_at(at);
        let mut projection = Projection::new(part);
        let mut cursor = log.cursor(seq);
        while let Some(logged) = cursor.ready() {
            projection.apply(logged.event());
        }
        prop_assert_eq!(projection.task(), &log.snapshot());
    }
}

use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use crate::model::{
    Artifact, Message, Part, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use crate::server::projection::Projection;
use crate::version::ProtocolVersion;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

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
    assert_eq!(
        log.push_at(4, at(0), status(TaskState::Failed)),
        Err(LogError::OutOfOrder { seq: 4, last: 4 })
    );
    assert_eq!(log.push_at(10, at(0), status(TaskState::Completed)), Ok(()));
    log.close();
    assert_eq!(log.push(status(TaskState::Failed)), 10, "a closed log stays as it is");
    assert_eq!(log.push_at(11, at(0), status(TaskState::Failed)), Err(LogError::Closed));
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
    let restore = |events: Vec<(u64, Event)>| {
        let dated = events.into_iter().map(|(seq, event)| (seq, at(0), event));
        TaskLog::restore(LogBounds::default(), dated)
    };
    let log =
        restore(vec![(3, task().into()), (5, chunk("a", "x", false)), (9, status(TaskState::InputRequired))])
            .unwrap();
    assert_eq!((log.last_seq(), log.state()), (9, TaskState::InputRequired));
    assert_eq!(log.push(status(TaskState::Working)), 10);
    assert_eq!(log.snapshot_at(0).0, 3, "before the first event there is the first");
    assert_eq!(log.snapshot_at(7).0, 5);
    assert_eq!(log.snapshot_at(99).0, 10);
    assert_eq!(restore(vec![(1, status(TaskState::Working))]).unwrap_err(), LogError::NoTask);
    assert_eq!(restore(Vec::new()).unwrap_err(), LogError::NoTask);
    let disorder = restore(vec![(2, task().into()), (2, status(TaskState::Working))]);
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

/// What happens to a log and to its readers, in any order.
#[derive(Debug, Clone)]
enum Step {
    Push(Box<Event>),
    Note(String),
    Read { reader: usize, events: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => event().prop_map(|event| Step::Push(Box::new(event))),
        1 => "[a-z]{1,3}".prop_map(Step::Note),
        4 => (0..READERS, 1_usize..9).prop_map(|(reader, events)| Step::Read { reader, events }),
    ]
}

const READERS: usize = 3;

fn bounds() -> impl Strategy<Value = LogBounds> {
    let default = LogBounds::default();
    let tight = (1_usize..12, 1_usize..20_000).prop_map(|(events, bytes)| LogBounds { events, bytes });
    prop_oneof![1 => Just(default), 4 => tight]
}

/// What a client knows of a task.
#[derive(Default)]
struct Client {
    task: Option<Projection>,
    last: u64,
}

impl Client {
    fn read(&mut self, logged: &LoggedEvent) {
        assert!(logged.seq() > self.last, "{} after {}", logged.seq(), self.last);
        self.last = logged.seq();
        match (&mut self.task, &*logged.event()) {
            (_, Event::Task(task)) => self.task = Some(Projection::new((**task).clone())),
            (Some(task), _) => task.apply(logged),
            (None, event) => panic!("it began with {event:?}"),
        }
    }

    /// The task, without what only a snapshot contains.
    fn without_history(&self) -> Task {
        let task = self.task.as_ref().map(|task| task.task().clone());
        Task { history: Vec::new(), ..task.expect("the task came first") }
    }
}

fn without_notes(task: Task) -> Task {
    Task { history: Vec::new(), ..task }
}

proptest! {
    #[test]
    fn any_snapshot_and_the_rest_make_the_whole(
        events in proptest::collection::vec(event(), 0..40),
        from in 0_u64..45,
        bounds in bounds(),
    ) {
        let log = Arc::new(TaskLog::bounded(task(), bounds));
        log.push_many(events);
        log.close();
        let (seq, part) = log.snapshot_at(from);
        let mut projection = Projection::new(part);
        let mut cursor = log.cursor(seq);
        while let Some(logged) = cursor.ready() {
            projection.apply(&logged);
        }
        prop_assert_eq!(projection.task(), &log.snapshot());
    }

    #[test]
    fn whoever_reads_whenever_knows_the_task_in_the_end(
        steps in proptest::collection::vec(step(), 0..80),
        bounds in bounds(),
    ) {
        let log = Arc::new(TaskLog::bounded(task(), bounds));
        let mut readers: Vec<_> = (0..READERS).map(|_| (log.cursor(0), Client::default())).collect();
        for step in steps {
            match step {
                Step::Push(event) => drop(log.push(*event)),
                Step::Note(text) => drop(log.note(Timestamp::now(), Message::user("m", text))),
                Step::Read { reader, events } => {
                    let (cursor, client) = &mut readers[reader];
                    for logged in (0..events).map_while(|_| cursor.ready()) {
                        client.read(&logged);
                    }
                }
            }
        }
        log.close();
        for (mut cursor, mut client) in readers {
            while let Some(logged) = cursor.ready() {
                client.read(&logged);
            }
            let (known, wanted) = (client.without_history(), without_notes(log.snapshot()));
            // That a task works again after a note is seen in what comes next.
            let status = wanted.status.clone();
            prop_assert_eq!(Task { status, ..known }, wanted);
        }
    }

    #[test]
    fn a_log_that_is_made_again_is_the_same_to_the_byte(
        events in proptest::collection::vec(event(), 0..30),
        bounds in bounds(),
    ) {
        let dated = || (2_u64..).zip(events.clone()).map(|(seq, event)| (seq, at(seq.cast_signed()), event));
        let all = || [(1, at(0), Event::from(task()))].into_iter().chain(dated());
        let (one, two) = (TaskLog::restore(bounds, all()).unwrap(), TaskLog::restore(bounds, all()).unwrap());
        for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
            let wire = |log: &TaskLog| log.read(0, 100).0.iter().map(|event| event.json(version).unwrap()).collect::<Vec<_>>();
            prop_assert_eq!(wire(&one), wire(&two));
        }
    }
}

#[test]
fn a_long_log_keeps_its_newest_events_and_the_whole_task() {
    let log = Arc::new(TaskLog::bounded(task(), LogBounds { events: 10, bytes: usize::MAX }));
    let mut slow = log.cursor(0);
    assert_eq!(slow.ready().unwrap().seq(), 1);
    let texts: Vec<_> = (0..100).map(|index| format!("{index} ")).collect();
    for (index, text) in texts.iter().enumerate() {
        log.push(chunk("a", text, index > 0));
    }
    let event = slow.ready().unwrap();
    let Event::Task(fresh) = &*event.event() else { panic!("{event:?}") };
    assert_eq!((event.seq(), fresh.artifacts[0].text()), (101, texts.concat()));
    log.push(chunk("a", "more", true));
    assert_eq!(slow.ready().unwrap().seq(), 102, "and it goes on from there");
    let other = log.cursor(3).ready().unwrap();
    assert!(Arc::ptr_eq(&event, &other), "those who fell out share what they get");
    assert_eq!(log.cursor(92).ready().unwrap().seq(), 93, "what is kept is read event by event");
    assert_eq!(log.snapshot_at(95).0, 95);
    assert_eq!(log.snapshot_at(50).0, 102, "what is dropped is told as the task is now");
}

#[test]
fn a_log_is_bounded_by_what_it_says_too() {
    let bounds = LogBounds { events: usize::MAX, bytes: 100_000 };
    let log = Arc::new(TaskLog::bounded(task(), bounds));
    for _ in 0..50 {
        log.push(chunk("a", &"x".repeat(10_000), false));
    }
    assert!(log.bytes() < 200_000, "{}", log.bytes());
    let first = log.cursor(0).ready().unwrap();
    assert!(matches!(&*first.event(), Event::Task(_)));
    log.push(chunk("a", &"y".repeat(200_000), false));
    assert_eq!(log.cursor(51).ready().unwrap().seq(), 52, "the newest event stays, however large");
}

#[test]
fn a_status_says_since_when_it_holds() {
    let log = TaskLog::restore(LogBounds::default(), [(1, at(0), task().into())]).unwrap();
    assert_eq!(log.snapshot().status.timestamp, Some(at(0)));
    log.push_many_at(at(1), [chunk("a", "x", false)]);
    assert_eq!(
        log.snapshot().status,
        TaskStatus { timestamp: Some(at(1)), ..TaskStatus::new(TaskState::Working) }
    );
    log.push_many_at(at(2), [status(TaskState::InputRequired)]);
    assert_eq!(log.snapshot().status.timestamp, Some(at(2)));
    log.note(at(3), Message::user("m2", "this one"));
    let now = log.snapshot();
    assert_eq!((now.status.state, now.status.timestamp), (TaskState::Working, Some(at(3))));
    assert_eq!(now.history.len(), 2);
    assert_eq!(log.snapshot_at(3).1.history.len(), 1, "not before it was said");
    assert_eq!(log.summary(), Task { artifacts: Vec::new(), ..now });
}

#[test]
fn streams_do_not_show_messages() {
    let log = Arc::new(TaskLog::new(task()));
    for _ in 0..100 {
        log.note(at(0), Message::user("m", "hello"));
    }
    let mut cursor = log.cursor(1);
    assert!(cursor.ready().is_none() && cursor.next().now_or_never().is_none());
    log.push(status(TaskState::Completed));
    log.close();
    assert_eq!(cursor.ready().unwrap().seq(), 102);
    assert!(cursor.next().now_or_never().unwrap().is_none());
}

#[test]
fn logs_that_use_up_their_budget_keep_their_newest_events_and_give_the_rest_back() {
    let budget = LogBudget::new(200_000);
    let logs: Vec<_> = (0..4).map(|_| Arc::new(TaskLog::starting_at(1, task(), &budget))).collect();
    for _ in 0..400 {
        for log in &logs {
            log.push(chunk("a", "word ", true));
        }
    }
    let most = budget.limit() + 4 * 20_000;
    assert!(budget.used() < most, "{} of {}", budget.used(), budget.limit());
    for log in &logs {
        let mut late = log.cursor(1);
        assert_eq!(late.ready().unwrap().seq(), log.last_seq(), "a late reader gets the task");
        let mut near = log.cursor(log.last_seq() - 10);
        assert_eq!(std::iter::from_fn(|| near.ready()).count(), 10);
    }
    drop(logs);
    assert_eq!(budget.used(), 0);
}

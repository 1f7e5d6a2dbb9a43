use super::*;
use crate::model::{
    Artifact, Message, Part, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent,
};

fn task(state: TaskState) -> Event {
    let mut task = Task::submitted("t", "c", Message::user("m", "hello"));
    task.status = TaskStatus::new(state);
    task.into()
}

fn status(state: TaskState) -> Event {
    Event::StatusUpdate(TaskStatusUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: TaskStatus::new(state),
        metadata: None,
    })
}

fn chunk() -> Event {
    Event::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        artifact: Artifact::new("a", "answer", vec![Part::text("x")]),
        append: true,
        last_chunk: false,
        metadata: None,
    })
}

fn numbered(seq: u64, event: Event) -> Numbered {
    Numbered { seq: Some(seq), event }
}

fn plain(event: Event) -> Numbered {
    Numbered { seq: None, event }
}

/// A task of which events 1 to `last` were seen.
fn seen(last: u64) -> Position {
    let mut position = Position::before_message(None);
    position.accept(numbered(1, task(TaskState::Submitted)), false).unwrap();
    for seq in 2..=last {
        position.accept(numbered(seq, chunk()), false).unwrap();
    }
    position
}

fn next(position: &mut Position, error: ClientError) -> Next {
    position.lost(error, &Reconnect::default(), Duration::ZERO, 0.5)
}

#[test]
fn an_event_is_shown_once_and_a_snapshot_says_what_it_is() {
    use TaskState::{Canceled, Submitted, Working};
    // What comes first on a connection that was taken up again after event 5: is it shown, and as a replacement?
    for (incoming, expected, last) in [
        (numbered(5, task(Working)), None, 5),
        (numbered(6, chunk()), Some(false), 6),
        (numbered(7, chunk()), Some(false), 7),
        (numbered(5, chunk()), None, 5),
        (numbered(1, task(Submitted)), None, 5),
        (numbered(9, task(Working)), Some(true), 9),
        (plain(task(Working)), Some(true), 5),
        (plain(chunk()), Some(false), 5),
        // Nobody followed it any more if this were known.
        (numbered(3, task(Canceled)), Some(true), 3),
        (numbered(2, status(Canceled)), Some(false), 2),
    ] {
        let mut position = seen(5);
        let shown = position.accept(incoming.clone(), true).map(|event| event.resumed);
        assert_eq!((shown, position.last()), (expected, Some(last)), "{incoming:?}");
    }
}

#[test]
fn the_opening_that_was_asked_for_is_always_shown() {
    for (after, resumed) in [(Some(4), true), (Some(0), false), (None, false)] {
        // Also where the subscription first had to find out how the agent is followed.
        for reopens in [false, true] {
            let mut position = Position::before_subscription("t".to_owned(), after);
            let opening = numbered(after.unwrap_or(7), task(TaskState::Working));
            let event = position.accept(opening, reopens).unwrap();
            assert_eq!(event.resumed, resumed, "after {after:?}");
        }
    }
    let mut position = Position::before_message(None);
    assert!(!position.accept(plain(task(TaskState::Submitted)), false).unwrap().resumed);
    // A reader that was too slow for the server's log.
    assert!(position.accept(plain(task(TaskState::Working)), false).unwrap().resumed);
}

#[test]
fn what_is_over_needs_no_connection() {
    let after = |mut position: Position, event: Event| {
        position.accept(plain(event), false);
        matches!(next(&mut position, ClientError::Cut), Next::End)
    };
    let new = || Position::before_message(None);
    let waiting = || Position::before_message(Some("t".to_owned()));
    let subscription = || Position::before_subscription("t".to_owned(), None);
    for (position, event, expected) in [
        (new(), task(TaskState::Working), false),
        (new(), task(TaskState::Completed), true),
        (new(), status(TaskState::InputRequired), true),
        (new(), task(TaskState::InputRequired), true),
        (new(), Event::from(Message::agent("m", "hello")), true),
        (new(), chunk(), false),
        (waiting(), task(TaskState::InputRequired), false),
        (waiting(), status(TaskState::InputRequired), true),
        (waiting(), task(TaskState::Completed), true),
        (subscription(), task(TaskState::InputRequired), false),
        (subscription(), status(TaskState::AuthRequired), false),
        (subscription(), status(TaskState::Failed), true),
    ] {
        let what = format!("{position:?} {event:?}");
        assert_eq!(after(position, event), expected, "{what}");
    }
}

#[test]
fn a_lost_connection_is_taken_up_only_where_that_can_help() {
    let broken = || ClientError::Broken { host: "a".to_owned(), reason: "gone".to_owned() };
    let remote = || ClientError::Remote(serde_json::from_str(r#"{"code":-32603,"message":"no"}"#).unwrap());
    let subscription = || Position::before_subscription("t".to_owned(), None);
    for (position, error, again) in [
        (seen(2), broken(), true),
        (seen(2), ClientError::Cut, true),
        (seen(2), ClientError::Idle(Duration::from_secs(1)), true),
        (seen(2), remote(), false),
        (seen(2), ClientError::Protocol("nonsense".to_owned()), false),
        (seen(2), ClientError::TooLarge { what: "a line", limit: 1 }, false),
        (seen(2), ClientError::Deadline, false),
        (subscription(), broken(), true),
        (Position::before_message(None), broken(), false),
        // The message may or may not have arrived; to follow the task would hide that.
        (Position::before_message(Some("t".to_owned())), broken(), false),
    ] {
        let (mut position, what) = (position.clone(), format!("{position:?} {error}"));
        assert_eq!(matches!(next(&mut position, error), Next::Retry(_)), again, "{what}");
    }
}

#[test]
fn tries_count_until_something_new_comes() {
    let mut position = seen(2);
    let tries = |position: &mut Position| match next(position, ClientError::Cut) {
        Next::Retry(again) => Some(again.attempt),
        Next::End | Next::Fail(_) => None,
    };
    assert_eq!([tries(&mut position), tries(&mut position)], [Some(1), Some(2)]);
    position.accept(plain(task(TaskState::Working)), true);
    assert_eq!(tries(&mut position), Some(3), "the task told anew is no progress");
    position.accept(numbered(3, chunk()), false);
    assert_eq!(tries(&mut position), Some(1));
    position.accept(numbered(9, task(TaskState::Working)), true);
    let rest: Vec<_> = (0..5).map(|_| tries(&mut position)).collect();
    assert_eq!(rest, [Some(2), Some(3), Some(4), Some(5), None]);
}

#[test]
fn a_message_is_tried_again_only_if_nobody_can_have_it() {
    let connect = || ClientError::Connect { host: "a".to_owned(), reason: "refused".to_owned() };
    let timeout = || ClientError::Timeout { host: "a".to_owned(), after: Duration::from_secs(1) };
    for (error, again) in [(connect(), true), (timeout(), false), (ClientError::Cut, false)] {
        let mut position = Position::before_message(None);
        let next = position.unreached(error, &Reconnect::default(), Duration::ZERO, 0.5);
        assert_eq!(next.as_ref().is_ok_and(|next| next.attempt == 1), again, "{next:?}");
    }
}

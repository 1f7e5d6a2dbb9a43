use super::super::failure::Failure;
use super::super::view::CardSeen;
use super::*;

fn ip(last: u8) -> std::net::IpAddr {
    [127, 0, 0, last].into()
}

fn key() -> Key {
    Key::new("team", "platform")
}

fn targets(pods: &[(&str, u8, Ask)], token: Option<&str>) -> Targets {
    let pods =
        pods.iter().map(|(name, last, ask)| ((*name).to_owned(), PodTarget { ip: ip(*last), ask: *ask }));
    Targets { pods: pods.collect(), token: token.map(Into::into) }
}

fn card() -> CardSeen {
    CardSeen { name: "argocd".into(), protocol_version: "1.0".into(), latency_ms: 1 }
}

fn down() -> Failure {
    Failure { outcome: crate::metrics::labels::ProbeOutcome::Connect, message: "down".into() }
}

fn seen(card: Result<CardSeen, Failure>) -> Looked {
    Looked { status: None, card: Some(card) }
}

fn after(now: Instant, milliseconds: u64) -> Instant {
    now + Duration::from_millis(milliseconds)
}

/// A board that looks at the card of one pod, and when it began.
fn one() -> (Board, Instant) {
    let (mut board, now) = (Board::default(), Instant::now());
    board.watch(&key(), targets(&[("a", 1, Ask::Card)], None), now);
    (board, now)
}

#[test]
fn a_new_pod_is_looked_at_at_once_and_then_at_its_pace() {
    let (mut board, now) = one();
    let job = board.take(now, true).unwrap();
    assert_eq!((job.request.ip, job.ask), (ip(1), Ask::Card));
    assert!(board.take(now, true).is_none(), "one look at a time");
    board.learn(job.number, seen(Ok(card())), now, 0.0);
    assert_eq!(board.next_due(true), Some(after(now, 1500)));
    assert!(board.take(after(now, 1499), true).is_none());
    assert!(board.take(after(now, 1500), true).is_some());
}

#[test]
fn the_first_failure_changes_nothing_and_the_second_is_told_once() {
    let (mut board, now) = one();
    for (look, told) in [
        (Ok(card()), true),
        (Ok(card()), false),
        (Err(down()), false),
        (Err(down()), true),
        (Err(down()), false),
    ] {
        let is_up = look.is_ok();
        let job = board.take(now + Duration::from_mins(1), true).unwrap();
        board.learn(job.number, seen(look), now, 0.0);
        assert_eq!(board.take_changed(), told.then(key));
        assert_eq!(board.take_changed(), None);
        if told {
            let view = &board.views(&key())["a"];
            assert_eq!((view.card.is_some(), view.failure.is_some()), (is_up, !is_up));
        }
    }
}

#[test]
fn a_pod_that_never_answered_is_in_no_view_before_that_is_certain() {
    let (mut board, now) = one();
    assert!(board.views(&key()).is_empty());
    let job = board.take(now, true).unwrap();
    board.learn(job.number, seen(Err(down())), now, 0.0);
    assert!(board.views(&key()).is_empty());
    let job = board.take(after(now, 500), true).unwrap();
    board.learn(job.number, seen(Err(down())), now, 0.0);
    assert_eq!(board.views(&key())["a"].failure.as_deref(), Some("down"));
}

#[test]
fn nothing_changes_when_the_same_is_watched_again() {
    let (mut board, now) = one();
    let job = board.take(now, true).unwrap();
    board.learn(job.number, seen(Ok(card())), now, 0.0);
    for _ in 0..3 {
        board.watch(&key(), targets(&[("a", 1, Ask::Card)], None), after(now, 10));
    }
    assert_eq!(board.next_due(true), Some(after(now, 1500)));
    assert_eq!((board.len(), board.views(&key()).len(), board.due.len()), (1, 1, 1));
}

#[test]
fn a_pod_with_another_address_is_another_pod() {
    let (mut board, now) = one();
    let late = board.take(now, true).unwrap();
    board.watch(&key(), targets(&[("a", 2, Ask::Card)], None), now);
    board.learn(late.number, seen(Ok(card())), now, 0.0);
    assert!(board.views(&key()).is_empty(), "what the old one answered is not the new one's");
    assert_eq!(board.take(now, true).unwrap().request.ip, ip(2));
}

#[test]
fn pods_that_go_are_forgotten_whole() {
    let (mut board, now) = one();
    let pods = [("a", 1, Ask::Card), ("b", 2, Ask::Card)];
    board.watch(&key(), targets(&pods, None), now);
    board.watch(&Key::new("team", "other"), targets(&pods, None), now);
    board.watch(&key(), targets(&pods[1..], None), now);
    assert_eq!(board.len(), 3);
    board.forget(&key());
    board.forget(&key());
    assert_eq!((board.len(), board.due.len(), board.watched.len()), (2, 2, 1));
    board.watch(&Key::new("team", "other"), Targets::default(), now);
    assert_eq!((board.len(), board.due.len(), board.next_due(true)), (0, 0, None));
}

#[test]
fn nobody_is_asked_for_a_status_without_a_token() {
    let (mut board, now) = (Board::default(), Instant::now());
    let pods = [("a", 1, Ask::Status), ("b", 2, Ask::Both)];
    board.watch(&key(), targets(&pods, None), now);
    let job = board.take(now, true).unwrap();
    assert_eq!((job.request.ip, job.ask), (ip(2), Ask::Card));
    assert!(board.take(now, true).is_none());
    board.learn(job.number, seen(Ok(card())), now, 0.0);
    board.watch(&key(), targets(&pods, Some("secret")), now);
    let asked: Vec<_> =
        std::iter::from_fn(|| board.take(now, true)).map(|job| (job.request.ip, job.ask)).collect();
    assert_eq!(asked, [(ip(1), Ask::Status), (ip(2), Ask::Both)]);
}

#[test]
fn what_is_not_asked_any_more_is_not_known_any_more() {
    let (mut board, now) = (Board::default(), Instant::now());
    board.watch(&key(), targets(&[("a", 1, Ask::Both)], Some("secret")), now);
    for _ in 0..2 {
        let job = board.take(now + Duration::from_mins(1), true).unwrap();
        let looked = Looked { status: Some(Err(down())), card: Some(Ok(card())) };
        board.learn(job.number, looked, now, 0.0);
    }
    let view = &board.views(&key())["a"];
    assert!(view.card.is_some() && view.failure.is_some(), "a card, and no status");
    board.watch(&key(), targets(&[("a", 1, Ask::Card)], Some("secret")), now);
    let view = &board.views(&key())["a"];
    assert!(view.card.is_some() && view.failure.is_none());
    board.watch(&key(), targets(&[("a", 1, Ask::Status)], Some("secret")), now);
    assert!(board.views(&key()).is_empty());
}

#[test]
fn a_hurry_looks_again_after_a_look_that_is_under_way() {
    let (mut board, now) = one();
    let job = board.take(now, true).unwrap();
    board.hurry(&key(), now);
    assert!(board.take(now, true).is_none(), "one look at a time");
    board.learn(job.number, seen(Ok(card())), after(now, 5), 0.0);
    let job = board.take(after(now, 5), true).unwrap();
    board.learn(job.number, seen(Ok(card())), after(now, 10), 0.0);
    assert!(board.take(after(now, 10), true).is_none(), "once");
    board.hurry(&key(), after(now, 20));
    assert!(board.take(after(now, 20), true).is_some());
}

#[test]
fn a_look_that_was_lost_is_made_again() {
    let (mut board, now) = one();
    board.take(now, true).unwrap();
    assert!(board.take(now + LOST, true).is_some());
}

#[test]
fn a_pod_that_says_something_else_each_time_is_not_told_each_time() {
    let (mut board, begin) = one();
    let (mut looks, mut told) = (0, 0);
    for tenth in 0..6_000 {
        let now = after(begin, tenth * 100);
        board.hurry(&key(), now);
        if let Some(job) = board.take(now, true) {
            let name = format!("{tenth}");
            board.learn(job.number, seen(Ok(CardSeen { name, ..card() })), now, 0.0);
            looks += 1;
        }
        board.release(now);
        told += usize::from(board.take_changed().is_some());
    }
    assert!(looks > 3_000 && (600..=660).contains(&told), "{told} of {looks} looks");
    board.forget(&key());
    assert_eq!((board.held.len(), board.next_due(true)), (0, None));
}

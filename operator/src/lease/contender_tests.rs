use super::*;

const SPAN: Duration = Duration::from_secs(15);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seen(version: &str, holder: &str) -> Seen {
    let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
    Seen { version: version.to_owned(), holder, duration: SPAN }
}

fn contender() -> Contender {
    Contender::new("me", Spans::of(SPAN))
}

/// Everything that it learns comes without delay and without jitter.
fn learn(contender: &mut Contender, at: u64, answer: Answer) {
    contender.learn(seconds(at), seconds(at), answer, 0.0);
}

#[test]
fn a_lease_that_is_not_there_is_made() {
    let mut me = contender();
    assert_eq!(me.act(seconds(0)), Act::Read);
    assert!(!me.answered());
    learn(&mut me, 0, Answer::Absent);
    assert!(me.answered());
    assert_eq!(me.act(seconds(0)), Act::Create);
    learn(&mut me, 0, Answer::Written(seen("1", "me")));
    assert_eq!(me.until(), Some(seconds(10)));
    assert_eq!(me.act(seconds(0)), Act::Wait(seconds(5)));
    assert_eq!(me.act(seconds(5)), Act::Take("1".into()));
}

#[test]
fn another_ones_lease_is_waited_for_as_long_as_it_changes() {
    let mut me = contender();
    for (at, version) in [(0, "1"), (2, "1"), (14, "2"), (28, "2")] {
        learn(&mut me, at, Answer::Found(seen(version, "other")));
        assert_eq!(me.act(seconds(at)), Act::Wait(seconds(2)), "{at}");
        assert_eq!(me.act(seconds(at + 2)), Act::Read, "{at}");
    }
    learn(&mut me, 29, Answer::Found(seen("2", "other")));
    assert_eq!(me.act(seconds(29)), Act::Take("2".into()), "15 s after it was first seen");
    assert_eq!(me.until(), None);
    learn(&mut me, 29, Answer::Conflict);
    assert_eq!(me.until(), None);
    assert_eq!(me.act(seconds(30)), Act::Read);
}

#[test]
fn a_longer_lease_is_waited_for_longer_but_not_for_ever() {
    for (duration, patience) in [(1, 15), (60, 60), (u64::MAX / 4, 300)] {
        let mut me = contender();
        let long = Seen { duration: seconds(duration), ..seen("1", "other") };
        learn(&mut me, 0, Answer::Found(long.clone()));
        learn(&mut me, patience - 1, Answer::Found(long.clone()));
        assert!(matches!(me.act(seconds(patience - 1)), Act::Wait(_)), "{duration}");
        learn(&mut me, patience, Answer::Found(long));
        assert_eq!(me.act(seconds(patience)), Act::Take("1".into()), "{duration}");
    }
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut me = contender();
    learn(&mut me, 0, Answer::Found(seen("1", "other")));
    learn(&mut me, 2, Answer::Found(seen("2", "")));
    assert_eq!(me.act(seconds(2)), Act::Take("2".into()));
}

#[test]
fn leadership_counts_from_when_the_write_was_sent() {
    let mut me = contender();
    me.learn(seconds(3), seconds(7), Answer::Written(seen("1", "me")), 0.0);
    assert_eq!(me.until(), Some(seconds(13)));
    assert_eq!(me.act(seconds(7)), Act::Wait(seconds(1)), "the next one too");
}

#[test]
fn a_leader_bears_failures_until_its_deadline() {
    let mut me = contender();
    learn(&mut me, 0, Answer::Written(seen("1", "me")));
    for at in [5, 7, 9] {
        assert_eq!(me.act(seconds(at)), Act::Take("1".into()));
        learn(&mut me, at, Answer::Failed);
        assert_eq!(me.until(), Some(seconds(10)), "{at}");
    }
    learn(&mut me, 11, Answer::Failed);
    assert_eq!(me.act(seconds(13)), Act::Read, "it leads no more, and looks who does");
}

#[test]
fn a_write_that_went_through_unheard_is_found_again() {
    let mut me = contender();
    learn(&mut me, 0, Answer::Written(seen("1", "me")));
    learn(&mut me, 5, Answer::Failed);
    learn(&mut me, 7, Answer::Conflict);
    assert_eq!(me.act(seconds(8)), Act::Read);
    learn(&mut me, 8, Answer::Found(seen("2", "me")));
    assert_eq!(me.until(), Some(seconds(10)), "what is read renews nothing");
    assert_eq!(me.act(seconds(8)), Act::Take("2".into()));
    learn(&mut me, 8, Answer::Written(seen("3", "me")));
    assert_eq!(me.until(), Some(seconds(18)));
}

#[test]
fn a_leader_that_loses_the_lease_stops_leading() {
    for holder in ["other", ""] {
        let mut me = contender();
        learn(&mut me, 0, Answer::Written(seen("1", "me")));
        learn(&mut me, 5, Answer::Conflict);
        learn(&mut me, 6, Answer::Found(seen("2", holder)));
        assert_eq!(me.until(), None, "{holder:?}");
    }
}

#[test]
fn the_holder_of_a_deleted_lease_is_waited_for() {
    let mut me = contender();
    learn(&mut me, 0, Answer::Found(seen("1", "other")));
    learn(&mut me, 14, Answer::Absent);
    assert_eq!(me.act(seconds(16)), Act::Read, "it may have been renewed right before");
    learn(&mut me, 28, Answer::Absent);
    assert_eq!(me.act(seconds(30)), Act::Read);
    learn(&mut me, 30, Answer::Absent);
    assert_eq!(me.act(seconds(30)), Act::Create);
}

#[test]
fn a_late_attempt_to_make_the_lease_says_nothing_about_its_leader() {
    let mut me = contender();
    learn(&mut me, 20, Answer::Found(seen("7", "other")));
    for at in [22, 36] {
        learn(&mut me, at, Answer::Found(seen("8", "me")));
        assert!(matches!(me.act(seconds(at)), Act::Wait(_)), "{at}");
    }
    learn(&mut me, 37, Answer::Found(seen("8", "me")));
    assert_eq!(me.act(seconds(37)), Act::Take("8".into()));
}

#[test]
fn a_leader_makes_its_deleted_lease_anew() {
    let mut me = contender();
    learn(&mut me, 0, Answer::Written(seen("1", "me")));
    learn(&mut me, 5, Answer::Conflict);
    learn(&mut me, 6, Answer::Absent);
    assert_eq!((me.act(seconds(6)), me.until()), (Act::Create, Some(seconds(10))));
}

#[test]
fn one_that_resigns_leads_no_more() {
    let mut me = contender();
    assert_eq!(me.resign(seconds(0)), None, "it did not lead");
    learn(&mut me, 0, Answer::Written(seen("1", "me")));
    assert_eq!(me.clone().resign(seconds(9)), Some("1".into()));
    assert_eq!(me.resign(seconds(10)), None, "somebody else may lead already");
    assert_eq!(me.until(), None);
}

//! Every state, every thing that can be seen in it, and what no sequence of looks may lead to.

use std::time::Duration;

use caipe_crds::rendered::Connectivity;
use caipe_crds::resource::status::AgentPhase::{self, Degraded, Pending, Ready, Unreachable};
use proptest::prelude::*;

use super::{Next, Reach, Rules};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn connectivity() -> Connectivity {
    let spec = caipe_crds::resolve(&caipe_crds::default_resource(), &std::collections::BTreeMap::new());
    spec.unwrap().spec.connectivity
}

fn rules(background: bool) -> Rules {
    Rules { background, ..Rules::from(&connectivity()) }
}

/// The phase and the next look after these: `+` answered, `-` did not.
fn after(background: bool, looks: &str) -> (AgentPhase, Option<Next>) {
    let mut reach = Reach::new(rules(background));
    let mut next = reach.first();
    for look in looks.chars() {
        next = if look == '+' { reach.answered() } else { reach.failed() };
    }
    (reach.phase(), next)
}

const fn next(after: u64, deadline: u64) -> Next {
    Next { after: millis(after), deadline: millis(deadline) }
}

#[test]
fn in_the_background_an_agent_is_looked_at_for_ever() {
    let cases = [
        ("", Pending, Some(next(0, 5000))),
        ("+", Ready, Some(next(1500, 2000))),
        ("-", Pending, Some(next(200, 1000))),
        ("--", Unreachable, Some(next(1000, 2000))),
        ("---", Unreachable, Some(next(1000, 2000))),
        ("-+", Ready, Some(next(1500, 2000))),
        ("--+", Ready, Some(next(1500, 2000))),
        ("+-", Degraded, Some(next(200, 1000))),
        ("+-+", Ready, Some(next(1500, 2000))),
        ("+--", Unreachable, Some(next(1000, 2000))),
        ("+--+", Ready, Some(next(1500, 2000))),
        ("+-+-+-", Degraded, Some(next(200, 1000))),
    ];
    for (looks, phase, next) in cases {
        assert_eq!(after(true, looks), (phase, next), "{looks:?}");
    }
}

#[test]
fn without_it_an_agent_is_looked_at_until_it_is_known() {
    let cases = [
        ("", Pending, Some(next(0, 5000))),
        ("+", Ready, None),
        ("-", Pending, Some(next(2000, 5000))),
        ("--", Pending, Some(next(4000, 5000))),
        ("---", Pending, Some(next(8000, 5000))),
        ("----", Unreachable, None),
        ("--+", Ready, None),
        // Somebody asked for a look, and it failed.
        ("+-", Degraded, Some(next(200, 1000))),
        ("+--", Unreachable, None),
    ];
    for (looks, phase, next) in cases {
        assert_eq!(after(false, looks), (phase, next), "{looks:?}");
    }
}

#[test]
fn whoever_wants_no_checks_gets_none_and_whoever_sets_an_interval_gets_it() {
    assert_eq!(Reach::new(Rules { check: false, ..rules(true) }).first(), None);
    let mut slow = Reach::new(Rules { refresh: millis(60_000), ..rules(true) });
    assert_eq!(slow.answered().map(|next| next.after), Some(millis(60_000)));
    assert_eq!(slow.failed().and_then(|_| slow.failed()).map(|next| next.after), Some(millis(1000)));
    let mut quick = Reach::new(Rules { refresh: millis(300), ..rules(true) });
    assert_eq!(quick.failed().and_then(|_| quick.failed()).map(|next| next.after), Some(millis(300)));
    let never = Connectivity {
        timeout_ms: 0,
        fast_check_timeout_ms: 0,
        refresh_interval_ms: Some(0),
        ..connectivity()
    };
    let least = Rules::from(&never);
    assert_eq!(
        [least.timeout, least.fast, least.refresh],
        [millis(100); 3],
        "no time at all is no time to live"
    );
    let declared = rules(true);
    assert_eq!((declared.check, declared.startup_delay, declared.retries), (true, Duration::ZERO, 3));
}

proptest! {
    #[test]
    fn no_agent_is_given_up_for_one_failure_or_kept_after_two(looks in "[+-]{0,40}") {
        let (phase, next) = after(true, &looks);
        let last_failures = looks.chars().rev().take_while(|look| *look == '-').count();
        let was_up = looks.contains('+');
        let expected = match (last_failures, was_up) {
            (0, true) => Ready,
            (0 | 1, false) => Pending,
            (1, true) => Degraded,
            (2.., _) => Unreachable,
        };
        prop_assert_eq!(phase, expected, "{}", looks);
        let next = next.expect("there is always another look");
        prop_assert!(next.after <= millis(1500) && next.deadline <= millis(5000));
    }

    #[test]
    fn a_dead_agent_is_shown_within_five_seconds_even_where_connections_hang(looks in "[+-]{0,20}") {
        let mut reach = Reach::new(rules(true));
        for look in looks.chars() {
            let _ = if look == '+' { reach.answered() } else { reach.failed() };
        }
        let mut spent = Duration::ZERO;
        let mut look = reach.answered();
        while reach.phase() != Unreachable {
            let Next { after, deadline } = look.expect("another look");
            // The edge may wait a tenth longer, so that agents are not all looked at at once.
            spent += after + after / 10 + deadline;
            look = reach.failed();
        }
        prop_assert!(spent < Duration::from_secs(5), "{spent:?}");
    }
}

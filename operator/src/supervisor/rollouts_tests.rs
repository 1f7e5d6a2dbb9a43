use super::*;

fn key(number: usize) -> Key {
    Key::new("team", &format!("supervisor-{number}"))
}

fn rollouts(max_concurrent: u16, interval_seconds: u32, max_failures: u16) -> Rollouts {
    Rollouts::new(RolloutLimits { max_concurrent, interval_seconds, max_failures })
}

fn is_granted(rollouts: &Rollouts, number: usize, now: Instant) -> bool {
    rollouts.request(&key(number), now) == Permit::Granted
}

#[test]
fn no_more_than_the_limit_roll_out_at_once_and_in_the_order_of_their_requests() {
    let (rollouts, now) = (rollouts(2, 0, 1), Instant::now());
    let granted: Vec<bool> = (0..5).map(|number| is_granted(&rollouts, number, now)).collect();
    assert_eq!(granted, [true, true, false, false, false]);
    assert_eq!(rollouts.counts(), Counts { running: 2, waiting: 3, failed: 0 });
    assert!(is_granted(&rollouts, 0, now), "its second Deployment needs no further permit");
    rollouts.record(&key(0), Progress::Running);
    assert!(!is_granted(&rollouts, 3, now));
    rollouts.record(&key(0), Progress::Done);
    assert!(!is_granted(&rollouts, 3, now), "another one has waited longer");
    assert!(is_granted(&rollouts, 2, now));
    rollouts.forget(&key(1));
    rollouts.forget(&key(3));
    assert!(is_granted(&rollouts, 4, now), "those before it are gone");
}

#[test]
fn a_failure_stops_further_ones_until_it_is_mended() {
    let (rollouts, now) = (rollouts(3, 0, 1), Instant::now());
    assert!(is_granted(&rollouts, 0, now));
    rollouts.record(&key(9), Progress::Failed);
    assert!(is_granted(&rollouts, 1, now), "a failure that the operator did not cause");
    rollouts.record(&key(0), Progress::Failed);
    let Permit::Wait(reason, again) = rollouts.request(&key(2), now) else { panic!("granted") };
    assert!(reason.contains("1 of the supervisors"), "{reason}");
    assert_eq!(again, LONGEST);
    assert_eq!(rollouts.counts(), Counts { running: 1, waiting: 1, failed: 1 });
    rollouts.record(&key(0), Progress::Running);
    assert!(is_granted(&rollouts, 2, now));
    assert!(is_granted(&self::rollouts(1, 0, 0), 2, now));
}

#[test]
fn there_is_a_pause_between_two() {
    let (rollouts, now) = (rollouts(5, 60, 1), Instant::now());
    assert!(is_granted(&rollouts, 0, now));
    let Permit::Wait(_, again) = rollouts.request(&key(1), now) else { panic!("granted") };
    assert_eq!(again, LONGEST);
    assert!(!is_granted(&rollouts, 1, now + Duration::from_secs(59)));
    assert!(is_granted(&rollouts, 1, now + Duration::from_mins(1)));
}

#[test]
fn supervisors_far_behind_ask_seldom() {
    let (rollouts, now) = (rollouts(2, 0, 1), Instant::now());
    let wait = |number| match rollouts.request(&key(number), now) {
        Permit::Granted => Duration::ZERO,
        Permit::Wait(_, again) => again,
    };
    let waits: Vec<Duration> = (0..100).map(wait).collect();
    assert_eq!(waits[2], SHORTEST);
    assert!(waits.is_sorted(), "{waits:?}");
    assert_eq!(waits[99], LONGEST);
}

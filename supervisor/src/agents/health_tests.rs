//! Each state after each probe result, and properties of every sequence of probes.

use std::time::Duration;

use caipe_crds::rendered::Connectivity;
use caipe_crds::resource::agent_state::AgentPhase::{self, Degraded, Pending, Ready, Unreachable};
use proptest::prelude::*;

use super::{HealthState, NextProbe, ProbeSettings};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn connectivity() -> Connectivity {
    let spec = caipe_crds::resolve(&caipe_crds::default_resource(), &std::collections::BTreeMap::new());
    spec.unwrap().spec.connectivity
}

fn settings(background: bool) -> ProbeSettings {
    ProbeSettings { background, ..ProbeSettings::from(&connectivity()) }
}

/// The phase and the next probe after these results: `+` responded, `-` did not.
fn after(background: bool, probes: &str) -> (AgentPhase, Option<NextProbe>) {
    let mut health = HealthState::new(settings(background));
    let mut next = health.first_probe();
    for probe in probes.chars() {
        next = if probe == '+' { health.succeeded() } else { health.failed() };
    }
    (health.phase(), next)
}

const fn next(after: u64, deadline: u64) -> NextProbe {
    NextProbe { after: millis(after), deadline: millis(deadline) }
}

#[test]
fn background_probes_never_stop() {
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
    for (probes, phase, next) in cases {
        assert_eq!(after(true, probes), (phase, next), "{probes:?}");
    }
}

#[test]
fn without_background_probes_an_agent_is_probed_until_it_responds() {
    let cases = [
        ("", Pending, Some(next(0, 5000))),
        ("+", Ready, None),
        ("-", Pending, Some(next(2000, 5000))),
        ("--", Pending, Some(next(4000, 5000))),
        ("---", Pending, Some(next(8000, 5000))),
        ("----", Unreachable, None),
        ("--+", Ready, None),
        // A probe on request failed.
        ("+-", Degraded, Some(next(200, 1000))),
        ("+--", Unreachable, None),
    ];
    for (probes, phase, next) in cases {
        assert_eq!(after(false, probes), (phase, next), "{probes:?}");
    }
}

#[test]
fn checks_can_be_turned_off_and_the_interval_is_configurable() {
    assert_eq!(HealthState::new(ProbeSettings { check: false, ..settings(true) }).first_probe(), None);
    let mut slow = HealthState::new(ProbeSettings { refresh: millis(60_000), ..settings(true) });
    assert_eq!(slow.succeeded().map(|next| next.after), Some(millis(60_000)));
    assert_eq!(slow.failed().and_then(|_| slow.failed()).map(|next| next.after), Some(millis(1000)));
    let mut quick = HealthState::new(ProbeSettings { refresh: millis(300), ..settings(true) });
    assert_eq!(quick.failed().and_then(|_| quick.failed()).map(|next| next.after), Some(millis(300)));
    let never = Connectivity {
        timeout_ms: 0,
        fast_check_timeout_ms: 0,
        refresh_interval_ms: Some(0),
        ..connectivity()
    };
    let least = ProbeSettings::from(&never);
    assert_eq!(
        [least.timeout, least.fast, least.refresh],
        [millis(100); 3],
        "no time at all is no time to live"
    );
    let declared = settings(true);
    assert_eq!((declared.check, declared.startup_delay, declared.retries), (true, Duration::ZERO, 3));
}

proptest! {
    #[test]
    fn two_consecutive_failures_make_an_agent_unreachable_and_one_does_not(probes in "[+-]{0,40}") {
        let (phase, next) = after(true, &probes);
        let last_failures = probes.chars().rev().take_while(|probe| *probe == '-').count();
        let was_up = probes.contains('+');
        let expected = match (last_failures, was_up) {
            (0, true) => Ready,
            (0 | 1, false) => Pending,
            (1, true) => Degraded,
            (2.., _) => Unreachable,
        };
        prop_assert_eq!(phase, expected, "{}", probes);
        let next = next.expect("there is always another probe");
        prop_assert!(next.after <= millis(1500) && next.deadline <= millis(5000));
    }

    #[test]
    fn a_dead_agent_is_reported_within_five_seconds_even_where_connections_hang(probes in "[+-]{0,20}") {
        let mut health = HealthState::new(settings(true));
        for probe in probes.chars() {
            let _ = if probe == '+' { health.succeeded() } else { health.failed() };
        }
        let mut spent = Duration::ZERO;
        let mut probe = health.succeeded();
        while health.phase() != Unreachable {
            let NextProbe { after, deadline } = probe.expect("another probe");
            // The edge may wait a tenth longer, so that agents are not all probed at once.
            spent += after + after / 10 + deadline;
            probe = health.failed();
        }
        prop_assert!(spent < Duration::from_secs(5), "{spent:?}");
    }
}

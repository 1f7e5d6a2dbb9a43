//! Decides the interval between probes. Pure.
//!
//! A change must be visible within five seconds. The slowest case is a pod that stops responding without refusing
//! connections right after a probe: 1.5 s until the next probe, its timeout of 1 s, 0.5 s until the second, and its
//! timeout make 4 s. A pod that comes back is seen at its next probe, at most 4 s later.
//!
//! With very many pods, responding ones are probed less often, so that probes use less than one processor: with
//! 10,000 pods the slowest case takes 5 s, with 20,000 it takes 7.5 s, as long as pods respond within some
//! milliseconds.

use std::time::Duration;

use super::debounce::FAILURES;

/// Interval for a responding pod.
const CALM: Duration = Duration::from_millis(1500);
/// Maximum probes of responding pods per second. One takes about a sixth of a millisecond.
const RATE: f64 = 4000.0;
/// Delay before the probe that confirms a failure.
const CONFIRM: Duration = Duration::from_millis(500);
/// First interval for a pod that does not respond.
const FIRST: Duration = Duration::from_secs(1);
/// Last interval for a pod that does not respond.
const LAST: Duration = Duration::from_secs(4);

/// The interval after `failures` in a row, with `pods` in the registry. `jitter`, between 0 and 1, shortens it by up
/// to a fifth, so that pods that started together are not probed together.
pub(super) fn interval(failures: u32, pods: usize, jitter: f64) -> Duration {
    let interval = match failures {
        0 => CALM.max(round(pods)),
        _ if failures < FAILURES => CONFIRM,
        _ => FIRST.saturating_mul(1 << (failures - FAILURES).min(8)).min(LAST),
    };
    interval.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
}

/// The duration of one round over all pods.
#[expect(clippy::cast_precision_loss, reason = "a count of pods")]
fn round(pods: usize) -> Duration {
    Duration::from_secs_f64(pods as f64 / RATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_confirmed_soon_and_repeated_failures_slow_down() {
        for (failures, milliseconds) in
            [(0, 1500), (1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 4000), (u32::MAX, 4000)]
        {
            assert_eq!(interval(failures, 6000, 0.0), Duration::from_millis(milliseconds), "{failures}");
            assert_eq!(
                interval(failures, 6000, 1.0),
                Duration::from_millis(milliseconds) * 4 / 5,
                "{failures}"
            );
        }
    }

    #[test]
    fn many_pods_slow_down_routine_probes_only() {
        for (pods, milliseconds) in [(0, 1500), (6_000, 1500), (10_000, 2500), (20_000, 5000)] {
            assert_eq!(interval(0, pods, 0.0), Duration::from_millis(milliseconds), "{pods}");
            assert_eq!(interval(1, pods, 0.0), CONFIRM);
        }
    }
}

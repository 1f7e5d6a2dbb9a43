//! Decides the interval between probes. Pure.
//!
//! A change must be visible within five seconds. The slowest case is a pod that stops responding without refusing
//! connections right after a probe: 2.5 s until the next probe, up to 0.1 s more because routine probes start together,
//! its timeout of 1 s, 0.3 s until the second, and its timeout make 4.9 s. A pod that comes back is seen at its next
//! probe, at most 4 s later.
//!
//! With very many pods, responding ones are probed less often, so that probes use less than one processor: with
//! 20,000 pods the slowest case takes 7.4 s, as long as pods respond within some milliseconds.

use std::time::Duration;

use super::debounce::FAILURES;

/// Maximum probes of responding pods per second. One takes at most about a sixth of a millisecond.
const RATE: f64 = 4000.0;
/// Delay before the probe that confirms a failure.
const CONFIRM: Duration = Duration::from_millis(300);
/// First interval for a pod that does not respond.
const FIRST: Duration = Duration::from_secs(1);
/// Last interval for a pod that does not respond.
const LAST: Duration = Duration::from_secs(4);

/// The interval of probes of a responding pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Duration);

impl Default for Interval {
    fn default() -> Self {
        Self(Duration::from_millis(2500))
    }
}

impl Interval {
    /// The interval; none if it is not between 0.5 s and 60 s.
    pub fn new(interval: Duration) -> Option<Self> {
        let allowed = Duration::from_millis(500)..=Duration::from_mins(1);
        allowed.contains(&interval).then_some(Self(interval))
    }

    /// The interval after `failures` in a row, with `pods` in the registry. `jitter`, between 0 and 1, shortens it by
    /// up to a fifth, so that pods that started together are not probed together.
    pub(super) fn after(self, failures: u32, pods: usize, jitter: f64) -> Duration {
        let interval = match failures {
            0 => self.0.max(round(pods)),
            _ if failures < FAILURES => CONFIRM,
            _ => FIRST.saturating_mul(1 << (failures - FAILURES).min(8)).min(LAST),
        };
        interval.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
    }
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
            [(0, 2500), (1, 300), (2, 1000), (3, 2000), (4, 4000), (5, 4000), (u32::MAX, 4000)]
        {
            let after = |jitter| Interval::default().after(failures, 6000, jitter);
            assert_eq!(after(0.0), Duration::from_millis(milliseconds), "{failures}");
            assert_eq!(after(1.0), Duration::from_millis(milliseconds) * 4 / 5, "{failures}");
        }
    }

    #[test]
    fn many_pods_slow_down_routine_probes_only() {
        for (pods, milliseconds) in [(0, 2500), (6_000, 2500), (10_000, 2500), (20_000, 5000)] {
            let interval = Interval::default();
            assert_eq!(interval.after(0, pods, 0.0), Duration::from_millis(milliseconds), "{pods}");
            assert_eq!(interval.after(1, pods, 0.0), CONFIRM);
        }
    }

    #[test]
    fn an_interval_has_bounds() {
        let interval = |milliseconds| Interval::new(Duration::from_millis(milliseconds));
        assert!(interval(500).is_some() && interval(60_000).is_some());
        assert!(interval(499).is_none() && interval(60_001).is_none());
    }
}

//! How soon to look again. Pure.
//!
//! The truth is to be shown within five seconds. The slowest way to it is a pod that stops answering without a refusal
//! right after a look: 1.5 s until the next look, its deadline of 1 s, 0.5 s until the second, and that one's deadline
//! make 4 s. A pod that comes back is seen at its next look, 4 s later at the most.
//!
//! Where there are very many pods, looks at those that answer come more rarely, so that they take no more than most of one
//! processor: with 10,000 pods the slowest way takes the five seconds, with 20,000 it takes 7.5 s. (That many looks
//! are made as long as pods answer within some milliseconds.)

use std::time::Duration;

use super::debounce::FAILURES;

/// Between looks at a pod that answers.
const CALM: Duration = Duration::from_millis(1500);
/// Looks a second at pods that answer. One takes about a sixth of a millisecond.
const RATE: f64 = 4000.0;
/// Before the look that decides whether a failure was one.
const CONFIRM: Duration = Duration::from_millis(500);
/// Between looks at a pod that does not answer, at first.
const FIRST: Duration = Duration::from_secs(1);
/// And in the end.
const LAST: Duration = Duration::from_secs(4);

/// How soon to look again after so many failures in a row, where so many pods are looked at. `jitter`, between 0 and 1,
/// shortens it by up to a fifth, so that pods that started together are not looked at together.
pub(super) fn interval(failures: u32, pods: usize, jitter: f64) -> Duration {
    let interval = match failures {
        0 => CALM.max(round(pods)),
        _ if failures < FAILURES => CONFIRM,
        _ => FIRST.saturating_mul(1 << (failures - FAILURES).min(8)).min(LAST),
    };
    interval.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
}

/// How long it takes to look at each pod once.
#[expect(clippy::cast_precision_loss, reason = "a count of pods")]
fn round(pods: usize) -> Duration {
    Duration::from_secs_f64(pods as f64 / RATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_sooner_in_doubt_and_later_when_it_is_no_use() {
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
    fn many_pods_are_looked_at_less_often_and_in_doubt_as_soon() {
        for (pods, milliseconds) in [(0, 1500), (6_000, 1500), (10_000, 2500), (20_000, 5000)] {
            assert_eq!(interval(0, pods, 0.0), Duration::from_millis(milliseconds), "{pods}");
            assert_eq!(interval(1, pods, 0.0), CONFIRM);
        }
    }
}

//! How soon to look again. Pure.
//!
//! The truth is to be shown within five seconds. The slowest way to it is a pod that stops answering without a refusal
//! right after a look: 1.5 s until the next look, its deadline of 1 s, 0.5 s until the second, and that one's deadline
//! make 4 s. A pod that comes back is seen at its next look, 4 s later at the most.

use std::time::Duration;

use super::damp::FAILURES;

/// Between looks at a pod that answers.
const CALM: Duration = Duration::from_millis(1500);
/// Before the look that decides whether a failure was one.
const DOUBT: Duration = Duration::from_millis(500);
/// Between looks at a pod that does not answer, at first.
const FIRST: Duration = Duration::from_secs(1);
/// And in the end.
const LAST: Duration = Duration::from_secs(4);

/// How soon to look again after so many failures in a row. `chance`, between 0 and 1, shortens it by up to a fifth, so that
/// pods that started together are not looked at together.
pub(super) fn pause(failures: u32, chance: f64) -> Duration {
    let pause = match failures {
        0 => CALM,
        _ if failures < FAILURES => DOUBT,
        _ => FIRST.saturating_mul(1 << (failures - FAILURES).min(8)).min(LAST),
    };
    pause.mul_f64(1.0 - 0.2 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_sooner_in_doubt_and_later_when_it_is_no_use() {
        for (failures, milliseconds) in
            [(0, 1500), (1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 4000), (u32::MAX, 4000)]
        {
            assert_eq!(pause(failures, 0.0), Duration::from_millis(milliseconds), "{failures}");
            assert_eq!(pause(failures, 1.0), Duration::from_millis(milliseconds) * 4 / 5, "{failures}");
        }
    }
}

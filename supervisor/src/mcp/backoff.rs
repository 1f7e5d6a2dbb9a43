//! When a server that failed is tried again.

use std::time::Duration;

/// The delay before the second attempt, before jitter.
const BASE: Duration = Duration::from_millis(500);
/// The longest delay, before jitter.
const CAP: Duration = Duration::from_mins(1);
/// How long a server must have served for its failures to be forgotten.
pub(super) const STABLE: Duration = Duration::from_secs(30);

/// How long to wait after the given number of failures in a row, counted from one.
///
/// Doubles from half a second to a minute. `jitter` in `0.0..=1.0` takes off up to half, so that the servers of many
/// supervisors that lost the same peer do not come back in step.
pub(super) fn delay(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = BASE.saturating_mul(1 << doublings).min(CAP);
    full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::{CAP, delay};
    use std::time::Duration;

    #[test]
    fn doubles_up_to_the_cap() {
        let plain: Vec<u128> = (0..10).map(|failures| delay(failures, 0.0).as_millis()).collect();
        assert_eq!(plain, [500, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(delay(u32::MAX, 0.0), CAP);
    }

    #[test]
    fn jitter_takes_off_up_to_half() {
        assert_eq!(delay(2, 0.5), Duration::from_millis(750));
        assert_eq!(delay(2, 1.0), Duration::from_millis(500));
        assert_eq!(delay(2, 7.0), Duration::from_millis(500));
        assert_eq!(delay(2, -1.0), Duration::from_secs(1));
    }
}

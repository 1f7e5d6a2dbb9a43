//! Limits how often changed probe results queue a supervisor, because pods may report something else each time. Pure.

use tokio::time::{Duration, Instant};

/// The burst: as many changes as a migration of many agents makes.
const BURST: u32 = 30;
/// The interval after the burst. Changes in between are reported together.
const EACH: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct RateLimit {
    /// When the whole burst is available again.
    whole: Option<Instant>,
}

impl RateLimit {
    /// When the next change may be reported, which uses one permit: now, or later if there were too many.
    pub(super) fn next(&mut self, now: Instant) -> Instant {
        let whole = self.whole.map_or(now, |whole| whole.max(now));
        self.whole = Some(whole + EACH);
        whole.checked_sub(EACH * BURST).map_or(now, |free| free.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_one_per_second() {
        let (mut rate_limit, now) = (RateLimit::default(), Instant::now() + Duration::from_hours(1));
        let mut granted = Vec::new();
        for tenth in 0..10_000_u32 {
            let now = now + Duration::from_millis(100) * tenth;
            if granted.last().is_none_or(|last| *last <= now) {
                granted.push(rate_limit.next(now));
            }
        }
        let at_once = granted.iter().take_while(|at| **at <= now + Duration::from_secs(10)).count();
        assert!((30..=45).contains(&at_once), "{at_once}");
        assert!((1_000..=1_060).contains(&granted.len()), "{}", granted.len());
        assert_eq!(rate_limit.next(now + Duration::from_hours(1)), now + Duration::from_hours(1));
    }
}

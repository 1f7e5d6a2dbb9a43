//! How often a supervisor may have a pass for what its pods say: they may say something else at every look. Pure.

use tokio::time::{Duration, Instant};

/// As many at once as a move of many agents makes.
const BURST: u32 = 30;
/// One more after each of these. What comes in between is told with it. Pods of people who move many agents while others
/// ask say something new about twice a second, for a while.
const EACH: Duration = Duration::from_secs(1);

/// What a supervisor has used of its passes.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    /// When all of it will have been given back.
    whole: Option<Instant>,
}

impl RateLimit {
    /// When the next pass may be asked for, which counts as used: now, unless there were too many.
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
    fn many_may_come_at_once_and_few_for_ever() {
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

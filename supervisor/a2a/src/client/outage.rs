//! Since when the agent cannot be heard, and whether the last connection was worth its name. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A connection that held this long was a good one, unless more was waited for it.
const STEADY: Duration = Duration::from_secs(2);

/// How long the agent has been out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outage {
    /// When the connection was lost; none while there is one that has proved good, or none was tried yet.
    since: Option<Instant>,
    /// When the present connection was opened, and how long was waited before.
    opened: Option<(Instant, Duration)>,
}

impl Outage {
    /// A connection was opened after a wait.
    pub(super) const fn opened(&mut self, now: Instant, wait: Duration) {
        self.opened = Some((now, wait));
    }

    /// Something new came.
    pub(super) const fn heard(&mut self) {
        self.since = None;
    }

    /// The connection was lost, or none came about. `silent` is how long it had said nothing at all, if that is
    /// why it was given up: only keep-alives or events show that somebody is there. Returns whether it had held
    /// for longer than was waited for it, so that tries count anew.
    pub(super) fn lost(&mut self, now: Instant, silent: Duration) -> bool {
        let held = self.opened.take().is_some_and(|(opened, wait)| {
            now.saturating_duration_since(opened).saturating_sub(silent) >= wait.max(STEADY)
        });
        if held {
            self.since = None;
        }
        self.since.get_or_insert(now);
        held
    }

    /// How long it has lasted.
    pub(super) fn lasted(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_outage_begins_with_the_loss_however_long_nothing_new_had_come() {
        let start = Instant::now();
        let mut outage = Outage::default();
        outage.opened(start, Duration::ZERO);
        assert!(outage.lost(start + secs(360), Duration::ZERO));
        assert_eq!(outage.lasted(start + secs(360)), Duration::ZERO);
        assert_eq!(outage.lasted(start + secs(367)), secs(7));
    }

    #[test]
    fn only_a_connection_that_held_makes_tries_count_anew() {
        // How long was waited, how long it then held, and how long of that it was silent.
        for (wait, open, silent, held) in
            [(0, 1, 0, false), (0, 2, 0, true), (10, 9, 0, false), (10, 10, 0, true), (0, 90, 90, false)]
        {
            let start = Instant::now();
            let mut outage = Outage::default();
            assert!(!outage.lost(start, Duration::ZERO));
            outage.opened(start + secs(wait), secs(wait));
            let end = start + secs(wait + open);
            assert_eq!(outage.lost(end, secs(silent)), held, "{wait} {open} {silent}");
            assert_eq!(outage.lasted(end), if held { Duration::ZERO } else { secs(wait + open) });
        }
    }

    #[test]
    fn a_try_that_fails_does_not_begin_the_outage_again_and_news_ends_it() {
        let start = Instant::now();
        let mut outage = Outage::default();
        assert!(!outage.lost(start, Duration::ZERO));
        assert!(!outage.lost(start + secs(60), Duration::ZERO));
        assert_eq!(outage.lasted(start + secs(60)), secs(60));
        outage.heard();
        assert_eq!(outage.lasted(start + secs(61)), Duration::ZERO);
    }
}

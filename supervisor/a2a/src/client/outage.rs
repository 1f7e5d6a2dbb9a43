//! How long an agent has been unreachable, and whether the last connection was stable. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// A connection that lasted this long was stable, unless the wait before it was longer.
const STEADY: Duration = Duration::from_secs(2);

/// The time for which an agent has been unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outage {
    /// When the connection was lost.
    since: Option<Instant>,
    /// When the current connection was opened, and the wait before it.
    opened: Option<(Instant, Duration)>,
}

impl Outage {
    /// A connection was opened after a wait.
    pub(super) const fn opened(&mut self, now: Instant, wait: Duration) {
        self.opened = Some((now, wait));
    }

    /// A new event has arrived.
    pub(super) const fn end(&mut self) {
        self.since = None;
    }

    /// The connection was lost or not made. `silent` is the time without keep-alives and events, if that is the reason.
    /// Returns whether the connection was stable, which resets the attempts.
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

    /// How long the agent has been unreachable.
    pub(super) fn duration(&self, now: Instant) -> Duration {
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
    fn an_outage_starts_when_the_connection_is_lost() {
        let start = Instant::now();
        let mut outage = Outage::default();
        outage.opened(start, Duration::ZERO);
        assert!(outage.lost(start + secs(360), Duration::ZERO));
        assert_eq!(outage.duration(start + secs(360)), Duration::ZERO);
        assert_eq!(outage.duration(start + secs(367)), secs(7));
    }

    #[test]
    fn only_a_stable_connection_resets_the_attempts() {
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
            assert_eq!(outage.duration(end), if held { Duration::ZERO } else { secs(wait + open) });
        }
    }

    #[test]
    fn a_failed_attempt_does_not_restart_the_outage_and_an_event_ends_it() {
        let start = Instant::now();
        let mut outage = Outage::default();
        assert!(!outage.lost(start, Duration::ZERO));
        assert!(!outage.lost(start + secs(60), Duration::ZERO));
        assert_eq!(outage.duration(start + secs(60)), secs(60));
        outage.end();
        assert_eq!(outage.duration(start + secs(61)), Duration::ZERO);
    }
}

//! The clock of the server, by which leases end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a reading of the clock is used. Another member with another clock may become the primary.
const USED_FOR: Duration = Duration::from_secs(5);

/// The last reading of the clock. The time in between is measured by the monotonic clock of this process.
#[derive(Debug, Default)]
pub(super) struct ServerClock(Mutex<Option<Reading>>);

/// A reading of the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Milliseconds since 1970, at some moment between the request and its response.
    pub(super) millis: i64,
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

/// The time of the server, in milliseconds since 1970, between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerTime {
    /// A term has ended only if it ended before this.
    pub(super) earliest: i64,
    /// A new term begins here, so that it does not end before its owner expects that.
    pub(super) latest: i64,
}

impl ServerClock {
    /// The time, if the last reading is recent.
    pub(super) fn now(&self) -> Option<ServerTime> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        last.filter(|reading| now - reading.answered < USED_FOR).map(|reading| reading.at(now))
    }

    pub(super) fn set(&self, reading: Reading) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
    }
}

impl Reading {
    /// How far its bounds are from each other.
    pub(super) fn bounds(&self) -> Duration {
        self.answered - self.asked
    }

    pub(super) fn at(&self, now: Instant) -> ServerTime {
        let after = |since: Instant| i64::try_from((now - since).as_millis()).unwrap_or(i64::MAX);
        let time = |since| self.millis.saturating_add(after(since));
        ServerTime { earliest: time(self.answered), latest: time(self.asked).saturating_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_response_bounds_the_clock() {
        let asked = Instant::now();
        let answered = asked + Duration::from_millis(30);
        let now = answered + Duration::from_millis(100);
        let time = Reading { millis: 1000, asked, answered }.at(now);
        assert_eq!(time, ServerTime { earliest: 1100, latest: 1131 });
    }
}

//! The clock of the server, by which leases end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mongodb::bson::doc;
use tokio::time::Instant;

use super::connection::Connection;
use super::error::corrupt;
use crate::error::StoreError;

/// How long a reading of the clock is used. Another member with another clock may become the primary.
const USED_FOR: Duration = Duration::from_secs(5);

/// Most readings in a row, if none has bounds as close as this.
const READINGS: usize = 3;
const EXACT: Duration = Duration::from_millis(5);

/// The last reading of the clock. The time in between is measured by the monotonic clock of this process.
#[derive(Debug, Default)]
pub(super) struct ServerClock(Mutex<Option<Reading>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Milliseconds since 1970, at some moment between the request and its response.
    millis: i64,
    asked: Instant,
    answered: Instant,
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
    pub(super) async fn now(&self, connection: &Connection) -> Result<ServerTime, StoreError> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = match last.filter(|reading| reading.answered.elapsed() < USED_FOR) {
            Some(reading) => reading,
            None => self.read(connection).await?,
        };
        Ok(reading.at(Instant::now()))
    }

    /// The most exact of a few readings.
    async fn read(&self, connection: &Connection) -> Result<Reading, StoreError> {
        let mut best = Self::ask(connection).await?;
        for _ in 1..READINGS {
            if best.bounds() <= EXACT {
                break;
            }
            let next = Self::ask(connection).await?;
            best = if next.bounds() < best.bounds() { next } else { best };
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(best);
        Ok(best)
    }

    async fn ask(connection: &Connection) -> Result<Reading, StoreError> {
        let asked = Instant::now();
        let hello = connection.command(doc! { "hello": 1 }).await?;
        let time = hello.get_datetime("localTime").map_err(|_| corrupt("the clock of the server"))?;
        Ok(Reading { millis: time.timestamp_millis(), asked, answered: Instant::now() })
    }
}

impl Reading {
    /// How far its bounds are from each other.
    fn bounds(&self) -> Duration {
        self.answered - self.asked
    }

    fn at(&self, now: Instant) -> ServerTime {
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

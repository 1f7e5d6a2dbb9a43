//! Stop signals, the removal of old conversations, and the rejection of unanswered questions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_store::{FactChange, Pruned, Retention, Store};
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::run::Runs;

/// How often old conversations are removed; more often if they are kept for a shorter time.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
const SHORTEST_PRUNE_INTERVAL: Duration = Duration::from_mins(1);

/// How often the server looks for questions that nobody has answered.
const EXPIRY_INTERVAL: Duration = Duration::from_mins(5);

/// How long ended tasks and untouched conversations are kept; `None` keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keep {
    tasks: Option<SignedDuration>,
    conversations: Option<SignedDuration>,
}

impl Keep {
    /// For so many days, or minutes for conversations, whichever is sooner; 0 days means forever.
    pub(super) fn new(days: u32, ttl_minutes: Option<u32>) -> Self {
        let days = (days > 0).then(|| SignedDuration::from_hours(24 * i64::from(days)));
        let ttl = ttl_minutes.map(|minutes| SignedDuration::from_mins(minutes.into()));
        Self { tasks: days, conversations: days.into_iter().chain(ttl).min() }
    }

    /// The wait between two rounds.
    fn interval(self) -> Duration {
        let shortest = self.conversations.and_then(|time| Duration::try_from(time / 4).ok());
        shortest.unwrap_or(PRUNE_INTERVAL).clamp(SHORTEST_PRUNE_INTERVAL, PRUNE_INTERVAL)
    }

    /// What is old; `None` if nothing is.
    fn retention(self, now: Timestamp) -> Option<Retention> {
        let before = |time: Option<SignedDuration>| time.and_then(|time| now.checked_sub(time).ok());
        let retention =
            Retention { tasks_before: before(self.tasks), conversations_before: before(self.conversations) };
        Some(retention).filter(|retention| *retention != Retention::default())
    }
}

/// Removes what is older than `keep`, which is asked before each round.
pub(super) async fn forget_old(store: Arc<dyn Store>, keep: impl Fn() -> Keep, shutdown: CancellationToken) {
    let clock = AgeClock::start();
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let keep = keep();
        wait = keep.interval();
        let Some(retention) = keep.retention(clock.now()) else { continue };
        match store.prune(retention).await {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(pruned) => tracing::info!(
                tasks = pruned.tasks,
                conversations = pruned.conversations,
                "removed what is old"
            ),
            Err(error) => tracing::warn!(%error, "failed to remove what is old"),
        }
    }
}

/// Removes facts about people that have expired. Readers do not see them before either.
pub(super) async fn forget_expired(facts: Arc<dyn Store>, shutdown: CancellationToken) {
    let clock = AgeClock::start();
    let mut rounds = tokio::time::interval(PRUNE_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = rounds.tick() => {}
        }
        match facts.change_facts(FactChange::RemoveExpired(clock.now())).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed expired facts about people"),
            Err(error) => tracing::warn!(%error, "failed to remove expired facts about people"),
        }
    }
}

/// The clock that decides what is old. While the process runs, it does not advance faster than the monotonic clock, so that a
/// wall clock that is set forward deletes and rejects nothing early. One that is set back delays what is due.
struct AgeClock {
    wall: Timestamp,
    monotonic: Instant,
}

impl AgeClock {
    fn start() -> Self {
        Self { wall: Timestamp::now(), monotonic: Instant::now() }
    }

    fn now(&self) -> Timestamp {
        self.at(Timestamp::now(), self.monotonic.elapsed())
    }

    /// The time when the wall clock shows `wall`, so long after the start.
    fn at(&self, wall: Timestamp, elapsed: Duration) -> Timestamp {
        self.wall.checked_add(elapsed).map_or(wall, |latest| wall.min(latest))
    }
}

/// The time so many hours ago; `None` for 0, which means never, and if there was no such time.
fn hours_ago(hours: i64, now: Timestamp) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::from_hours(hours)).ok().filter(|_| hours > 0)
}

/// Rejects each question that nobody has answered for this many hours; 0 rejects none.
pub(super) async fn reject_unanswered(runs: Arc<Runs>, hours: u32, shutdown: CancellationToken) {
    let mut rounds = tokio::time::interval(EXPIRY_INTERVAL);
    let clock = AgeClock::start();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = rounds.tick() => {}
        }
        let Some(before) = hours_ago(i64::from(hours), clock.now()) else { return };
        match runs.reject_unanswered(before).await {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, hours, "rejected questions that nobody has answered"),
            Err(error) => tracing::warn!(%error, "failed to look for questions that nobody has answered"),
        }
    }
}

/// Completes at SIGTERM or SIGINT. Catches them from the call on, not from the first poll.
pub(in crate::cli) fn stopping() -> anyhow::Result<impl Future<Output = ()>> {
    let catch = |kind| signal(kind).context("failed to listen for signals");
    let (mut terminate, mut interrupt) = (catch(SignalKind::terminate())?, catch(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_forward_makes_nothing_old() {
        let clock = AgeClock::start();
        let (start, hour, day) = (clock.wall, Duration::from_hours(1), Duration::from_hours(24));
        assert_eq!(clock.at(start + hour, hour), start + hour);
        assert_eq!(clock.at(start + day + hour, hour), start + hour, "set forward by a day");
        assert_eq!(clock.at(start, hour), start, "set back by an hour");
    }

    #[test]
    fn zero_days_and_days_before_time_began_keep_everything() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        let before =
            |days| Keep::new(days, None).retention(now).map(|it| it.tasks_before.unwrap().to_string());
        assert_eq!(before(7), Some("2026-03-24T12:00:00Z".to_owned()));
        assert_eq!([before(0), before(u32::MAX)], [None, None]);
    }

    #[test]
    fn conversations_go_sooner_than_tasks_where_the_store_says_so() {
        let now: Timestamp = "2026-03-31T12:00:00Z".parse().unwrap();
        for (days, ttl, tasks, conversations) in [
            (7, Some(60), Some("2026-03-24T12:00:00Z"), Some("2026-03-31T11:00:00Z")),
            (1, Some(2880), Some("2026-03-30T12:00:00Z"), Some("2026-03-30T12:00:00Z")),
            (0, Some(60), None, Some("2026-03-31T11:00:00Z")),
        ] {
            let found = Keep::new(days, ttl).retention(now).unwrap();
            let shown = |time: Option<Timestamp>| time.map(|time| time.to_string());
            assert_eq!(shown(found.tasks_before).as_deref(), tasks);
            assert_eq!(shown(found.conversations_before).as_deref(), conversations);
        }
        let waits = [Some(1), Some(60), None].map(|ttl| Keep::new(30, ttl).interval().as_secs());
        assert_eq!(waits, [60, 900, 3600]);
    }
}

//! Stop signals, the removal of old conversations, and the rejection of unanswered questions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_store::{Pruned, Retention, Store};
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::run::Runs;

/// How often old conversations are removed.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

/// How often the server looks for questions that nobody has answered.
const EXPIRY_INTERVAL: Duration = Duration::from_mins(5);

/// Removes ended tasks and untouched conversations once they are old enough.
pub(super) async fn forget_old(store: Arc<dyn Store>, days: u32, shutdown: CancellationToken) {
    if days == 0 {
        return;
    }
    let mut rounds = tokio::time::interval(PRUNE_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = rounds.tick() => {}
        }
        let before = Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days));
        let retention = Retention { tasks_before: Some(before), conversations_before: Some(before) };
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

/// Rejects each question that nobody has answered for this many hours; 0 rejects none.
pub(super) async fn reject_unanswered(runs: Arc<Runs>, hours: u32, shutdown: CancellationToken) {
    if hours == 0 {
        return;
    }
    let mut rounds = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = rounds.tick() => {}
        }
        match runs.reject_unanswered(Timestamp::now() - SignedDuration::from_hours(i64::from(hours))).await {
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

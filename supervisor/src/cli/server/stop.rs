//! Stop signals, and the removal of old conversations.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_store::{Pruned, Retention, Store};
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How often old conversations are removed.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

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

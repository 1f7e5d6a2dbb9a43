//! Sends live events to other processes.

use tokio::sync::mpsc;

use super::connection::Connection;
use crate::live_exchange::{BATCH, Message};

/// Sends the messages in order. One that cannot be sent is lost.
pub(super) async fn send(connection: Connection, mut queue: mpsc::Receiver<Message>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let mut pipeline = redis::pipe();
        for (channel, message) in batch.drain(..) {
            pipeline.cmd("PUBLISH").arg(connection.key(&channel)).arg(message).ignore();
        }
        if let Err(error) = connection.pipeline("publish text", &pipeline).await {
            tracing::debug!(%error, "failed to publish text to other processes; they read it from the store");
        }
    }
}

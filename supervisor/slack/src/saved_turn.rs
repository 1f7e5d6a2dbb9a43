//! The state of a turn in the database: which process owns it, and how people find it while it runs.

use tokio::time::Instant;

use crate::api::Target;
use crate::state::Bot;
use crate::store::{LEASE, Running};
use crate::turn::{DATABASE_RETRY, Saved, Turn};

/// The most attempts to save a new turn.
const DATABASE_ATTEMPTS: u32 = 60;

impl Turn {
    /// Runs a new turn, unless another process has it already.
    pub(crate) async fn begin(self, bot: &Bot) {
        for _ in 0..DATABASE_ATTEMPTS {
            match self.store(bot, true).await {
                Saved::Unknown if bot.store.is_shared() => {
                    let wait = tokio::time::sleep(DATABASE_RETRY);
                    if bot.shutdown.run_until_cancelled(wait).await.is_none() {
                        return;
                    }
                }
                Saved::Lost => return,
                Saved::Yes | Saved::Unknown => return self.run(bot).await,
            }
        }
        tracing::error!(
            channel = self.target.channel,
            "gave up a request, because the database stays unavailable"
        );
    }

    /// Lets people stop the task, once it is known.
    pub(crate) async fn register(&self, bot: &Bot) {
        let Some(task) = self.task.clone() else { return };
        let Target { channel, thread, user, .. } = self.target.clone();
        let running = Running { channel, thread, task, user, question: self.question.clone() };
        if let Err(error) = bot.store.set_running(&running).await {
            tracing::error!(%error, "failed to save a running turn; it cannot be stopped from its thread");
        }
    }

    /// The task has ended. A later turn of the thread stays registered.
    pub(crate) async fn unregister(&self, bot: &Bot) {
        let Target { channel, thread, .. } = &self.target;
        let task = self.task.as_deref().unwrap_or_default();
        if let Err(error) = bot.store.remove_running(channel, thread, task).await {
            tracing::error!(%error, "failed to remove a running turn");
        }
    }

    pub(crate) async fn save(&self, bot: &Bot) -> Saved {
        self.store(bot, false).await
    }

    async fn store(&self, bot: &Bot, is_new: bool) -> Saved {
        let began = Instant::now();
        let state = match serde_json::to_string(self) {
            Ok(state) => state,
            Err(error) => {
                tracing::error!(%error, "failed to write a turn as JSON");
                return Saved::Unknown;
            }
        };
        let store = &bot.store;
        let saved =
            if is_new { store.begin_turn(&self.id, &state) } else { store.save_turn(&self.id, &state) }.await;
        match saved {
            // Saving renews the lease.
            Ok(true) if began.elapsed() < LEASE / 2 => Saved::Yes,
            Ok(true) => Saved::Unknown,
            Ok(false) => {
                tracing::info!(task = self.task, "another process continues a turn");
                Saved::Lost
            }
            Err(error) => {
                tracing::error!(%error, "failed to save a turn");
                Saved::Unknown
            }
        }
    }
}

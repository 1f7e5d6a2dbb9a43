//! Ctrl-C and the signals that end a terminal session.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A request of the user, or of the system, to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Cancels the current task.
    Cancel,
    /// Ends the program.
    Leave,
}

/// The interrupts of this process, in order.
#[derive(Debug)]
pub(super) struct Interrupts {
    queue: mpsc::Receiver<Interrupt>,
    leaving: bool,
}

impl Interrupts {
    /// Handles Ctrl-C, and the signals that end a terminal session, from now on.
    ///
    /// # Errors
    /// When the system refuses a signal handler.
    pub(super) fn of_process() -> io::Result<Self> {
        let (sender, queue) = mpsc::channel(4);
        let wanted = [
            (SignalKind::interrupt(), Interrupt::Cancel),
            (SignalKind::terminate(), Interrupt::Leave),
            (SignalKind::hangup(), Interrupt::Leave),
        ];
        for (kind, interrupt) in wanted {
            let (mut signals, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() && sender.send(interrupt).await.is_ok() {}
            });
        }
        Ok(Self { queue, leaving: false })
    }

    #[cfg(test)]
    pub(super) const fn from_queue(queue: mpsc::Receiver<Interrupt>) -> Self {
        Self { queue, leaving: false }
    }

    /// The next one; waits for ever if none can come.
    pub(super) async fn next(&mut self) -> Interrupt {
        let Some(interrupt) = self.queue.recv().await else { return std::future::pending().await };
        self.leaving |= interrupt == Interrupt::Leave;
        interrupt
    }

    /// Completes once the user, or the system, has asked to leave. Discards all other interrupts.
    pub(super) async fn leave(&mut self) {
        while !self.leaving {
            self.next().await;
        }
    }

    /// Whether the user, or the system, has asked to leave.
    pub(super) const fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Discards each Ctrl-C from before the task.
    pub(super) fn forget(&mut self) {
        while let Ok(interrupt) = self.queue.try_recv() {
            self.leaving |= interrupt == Interrupt::Leave;
        }
    }
}

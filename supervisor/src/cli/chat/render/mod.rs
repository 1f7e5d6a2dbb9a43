//! What is shown, as text: for a terminal, for a pipe, or as JSON for scripts.

mod json;
mod live;
mod markdown;
mod paint;
mod plain;
mod spacing;
mod terminal;

use std::io;
use std::time::Duration;

use caipe_a2a::client::StreamEvent;

pub(super) use json::Json;
pub(super) use paint::Paint;
pub(super) use plain::Plain;
pub(super) use terminal::Terminal;

use caipe_view::ViewEvent;

/// Where a turn is shown. Errors are those of writing.
pub(super) trait Screen {
    /// A turn begins.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// An event as it came, before what it means.
    fn event(&mut self, _event: &StreamEvent) -> io::Result<()> {
        Ok(())
    }

    fn show(&mut self, show: &ViewEvent) -> io::Result<()>;

    /// What is waited for from now on.
    fn wait(&mut self, _waiting: Waiting) -> io::Result<()> {
        Ok(())
    }

    /// Time passed since the turn began.
    fn tick(&mut self, _elapsed: Duration) -> io::Result<()> {
        Ok(())
    }

    /// The turn is over: whatever was still open is written, and the cursor is where the next line begins.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    Agent,
    /// The end of a task that is being canceled.
    Cancel,
    Connection {
        /// Which try this is, from 1.
        attempt: u32,
        /// How many there will be.
        of: u32,
    },
}

//! The stderr of a child: to the log, and its last lines for messages to people.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, BufReader};

use super::lines::next_line;
use crate::redact::Redactor;

const LAST_LINES: usize = 8;
/// The bytes of a line that go to the log.
const LINE_BYTES: usize = 2_000;
/// The characters of a line that go into a message.
const LINE_CHARS: usize = 300;

/// The last lines that a child wrote to a stream. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Adds a line, which must already be redacted.
    pub(super) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(LINE_CHARS).collect());
    }

    /// The lines as one; `None` if there are none.
    pub(super) fn text(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }
}

/// Reads the stream to its end, so that the child never blocks on it; each line goes to the log and to the tail.
pub(super) async fn drain(
    server: String,
    stream: impl AsyncRead + Unpin,
    redactor: Redactor,
    tail: Tail,
    verbose: bool,
) {
    let mut reader = BufReader::new(stream);
    let mut buffer = Vec::new();
    while next_line(&mut reader, &mut buffer, LINE_BYTES).await.is_some() {
        let line = redactor.redact(String::from_utf8_lossy(&buffer).trim_end().to_owned());
        if !line.is_empty() {
            if verbose {
                tracing::info!(server, line, "tool server stderr");
            } else {
                tracing::debug!(server, line, "tool server stderr");
            }
            tail.push(&line);
        }
    }
}

//! Events as they came, one JSON object a line, for scripts.

use std::io::{self, Write};

use caipe_a2a::client::StreamEvent;
use caipe_a2a::event_id;
use caipe_a2a::model::Event;
use serde::Serialize;

use super::Screen;
use caipe_view::ViewEvent;

/// Writes every event in the shape of A2A 1.0, whatever the wire had.
#[derive(Debug)]
pub(crate) struct Json<W> {
    out: W,
}

/// `{"id":"7.0","state":"completed","statusUpdate":{…}}`.
#[derive(Serialize)]
struct Line<'a> {
    /// The event's id in the stream, if the server numbers its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The task's state in one word, for events that tell of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The event takes the place of all before it: something may have been missed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
    #[serde(flatten)]
    event: &'a Event,
}

impl<W: Write> Json<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Screen for Json<W> {
    fn event(&mut self, event: &StreamEvent) -> io::Result<()> {
        let state = event.event.state().map(|state| state.to_string());
        let line = serde_json::to_string(&Line {
            id: event.seq.map(event_id::to_string),
            state,
            resumed: event.resumed,
            event: &event.event,
        })?;
        writeln!(self.out, "{}", escaped(&line))?;
        self.out.flush()
    }

    fn show(&mut self, _show: &ViewEvent) -> io::Result<()> {
        Ok(())
    }
}

/// JSON escapes the older control characters only; the newer ones command terminals too.
fn escaped(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            line.extend(format!("\\u{:04x}", u32::from(c)).chars());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;

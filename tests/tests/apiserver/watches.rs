//! Watches of both servers, and the events that they send.

use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::io::{AsyncBufReadExt, Lines};
use futures::{AsyncBufRead, TryStreamExt};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::requests::Ask;
use super::servers::{Pair, Side};

/// The annotation of the change with which the comparison of a watch ends.
pub(crate) const MARK: &str = "mark";

/// How long the marked change may take to be sent.
const WAIT: Duration = Duration::from_secs(30);

/// A watch of both servers.
pub(crate) struct Watch {
    what: String,
    streams: [EventStream; 2],
}

/// The events of each server.
pub(crate) type Events = [Vec<Value>; 2];

impl Pair<'_> {
    /// Begins a watch at both.
    pub(crate) async fn watch(&self, ask: &Ask) -> Result<Watch> {
        let [real, stand_in] = &self.sides;
        let streams = [EventStream::open(real, ask).await?, EventStream::open(stand_in, ask).await?];
        Ok(Watch { what: ask.to_string(), streams })
    }

    /// Compares the events of a watch until an object with this mark changes, or until the watch ends.
    pub(crate) async fn compare_events(&mut self, watch: Watch, mark: &str) -> Result<Events> {
        let [real, stand_in] = watch.streams;
        let (real, stand_in) = futures::try_join!(real.until(mark), stand_in.until(mark))
            .with_context(|| format!("{} until {mark}", watch.what))?;
        let [left, right] = [(&self.sides[0], &real), (&self.sides[1], &stand_in)]
            .map(|(side, events)| compared(side, events));
        self.compare(&watch.what, &left, &right);
        Ok([real, stand_in])
    }
}

/// What is compared of the events: also the order of their versions.
fn compared(side: &Side, events: &[Value]) -> Value {
    let mut last = 0;
    let each = events.iter().map(|event| {
        let version = version(event).and_then(|version| version.parse().ok()).unwrap_or_default();
        let is_later = version > std::mem::replace(&mut last, version);
        json!({ "event": side.masked(event), "later": is_later })
    });
    each.collect()
}

/// The version of an event's object.
pub(crate) fn version(event: &Value) -> Option<&str> {
    event["object"]["metadata"]["resourceVersion"].as_str()
}

/// The stream of events of one server.
enum EventStream {
    Open { lines: Lines<Pin<Box<dyn AsyncBufRead + Send>>>, since: Instant },
    Refused(Value),
}

impl EventStream {
    async fn open(side: &Side, ask: &Ask) -> Result<Self> {
        let since = Instant::now();
        let response = side.client.send(side.request(ask)?).await?;
        let code = response.status().as_u16();
        if code != 200 {
            let bytes = response.into_body().collect_bytes().await?;
            let status: Value = serde_json::from_slice(&bytes)?;
            return Ok(Self::Refused(json!({ "HTTP status": code, "object": status })));
        }
        let body = response.into_body().into_data_stream().map_err(std::io::Error::other);
        let reader: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(body.into_async_read());
        Ok(Self::Open { lines: reader.lines(), since })
    }

    /// The events up to the mark, or up to the end.
    async fn until(self, mark: &str) -> Result<Vec<Value>> {
        let (mut lines, since) = match self {
            Self::Open { lines, since } => (lines, since),
            Self::Refused(status) => return Ok(vec![status]),
        };
        let mut events = Vec::new();
        while let Ok(line) = tokio::time::timeout(WAIT, lines.try_next()).await {
            let Some(line) = line? else {
                events.push(json!({ "closed after seconds": since.elapsed().as_secs() }));
                return Ok(events);
            };
            let event: Value = serde_json::from_str(&line)?;
            let is_last = event["object"]["metadata"]["annotations"][MARK] == mark;
            events.push(event);
            if is_last {
                return Ok(events);
            }
        }
        bail!("the watch neither sent the mark nor ended; it sent {events:#?}")
    }
}

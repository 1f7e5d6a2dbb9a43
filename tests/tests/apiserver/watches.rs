//! Watches of both servers, and the events that they send.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::io::AsyncBufReadExt;
use futures::{Stream, TryStreamExt};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::requests::Ask;
use super::servers::{Pair, Side};

/// The annotation of the change with which the comparison of a watch ends.
pub(crate) const MARK: &str = "mark";

/// The annotation of the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// How long the marked change may take to be sent.
const WAIT: Duration = Duration::from_secs(30);

/// A watch of both servers.
pub(crate) struct Watch {
    what: String,
    events: [JoinHandle<Result<Vec<Value>>>; 2],
}

/// The events of each server.
pub(crate) type Events = [Vec<Value>; 2];

impl Pair<'_> {
    /// Begins a watch at both. It ends with a change of an object with this mark, if it does not end before.
    pub(crate) async fn watch(&self, ask: &Ask, mark: &str) -> Result<Watch> {
        let [real, stand_in] = &self.sides;
        let events = [watch(real, ask, mark).await?, watch(stand_in, ask, mark).await?];
        Ok(Watch { what: format!("{ask} until {mark}"), events })
    }

    /// Compares the events of a watch.
    pub(crate) async fn compare_events(&mut self, Watch { what, events }: Watch) -> Result<Events> {
        let [real, stand_in] = events;
        let (real, stand_in) = (real.await?.context(what.clone())?, stand_in.await?.context(what.clone())?);
        let [left, right] = [(&self.sides[0], &real), (&self.sides[1], &stand_in)]
            .map(|(side, events)| compared(side, events));
        self.compare(&what, &left, &right);
        Ok([real, stand_in])
    }
}

/// What is compared of the events: also how each version compares with the one before.
///
/// When a quiet watch gets a bookmark depends on the time, so only those are compared that have a reason: the end of the
/// initial events and the end of the watch. Others must not be earlier than what was sent before.
fn compared(side: &Side, events: &[Value]) -> Value {
    let mut last = 0;
    let mut compared: Vec<Value> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let version = version(event).and_then(|version| version.parse::<u64>().ok()).unwrap_or_default();
        let order = version.cmp(&last);
        last = version;
        if event["type"] != "BOOKMARK" {
            compared.push(json!({ "event": side.masked(event), "version": format!("{order:?}") }));
        } else if order.is_lt() || has_reason(event, events.get(at + 1)) {
            compared.push(bookmark(side, event, order));
        }
    }
    compared.into()
}

fn has_reason(bookmark: &Value, next: Option<&Value>) -> bool {
    let ends_initial = !bookmark["object"]["metadata"]["annotations"][INITIAL_EVENTS_END].is_null();
    ends_initial || next.is_some_and(|next| next["type"] == "closed")
}

/// A bookmark has any version from that of the event before it on. Apart from the metadata it is the zero value of a
/// type in Go.
fn bookmark(side: &Side, event: &Value, order: Ordering) -> Value {
    let mut metadata = event["object"]["metadata"].clone();
    metadata["resourceVersion"].take();
    let [kind, api_version] = ["kind", "apiVersion"].map(|field| &event["object"][field]);
    let event = json!({ "type": "BOOKMARK", "kind": kind, "apiVersion": api_version, "metadata": metadata });
    json!({ "event": side.masked(&event), "earlier": order.is_lt() })
}

/// The version of an event's object.
pub(crate) fn version(event: &Value) -> Option<&str> {
    event["object"]["metadata"]["resourceVersion"].as_str()
}

/// Begins a watch of one server.
async fn watch(side: &Side, ask: &Ask, mark: &str) -> Result<JoinHandle<Result<Vec<Value>>>> {
    let since = Instant::now();
    let response = side.client.send(side.request(ask)?).await?;
    let code = response.status().as_u16();
    if code != 200 {
        let status: Value = serde_json::from_slice(&response.into_body().collect_bytes().await?)?;
        let refusal = json!({ "HTTP status": code, "object": status });
        return Ok(tokio::spawn(async { Ok(vec![refusal]) }));
    }
    let lines =
        response.into_body().into_data_stream().map_err(std::io::Error::other).into_async_read().lines();
    let mark = mark.to_owned();
    Ok(tokio::spawn(async move { read(lines, since, &mark).await }))
}

async fn read(
    mut lines: impl Stream<Item = std::io::Result<String>> + Unpin,
    since: Instant,
    mark: &str,
) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    while let Ok(line) = tokio::time::timeout(WAIT, lines.try_next()).await {
        let Some(line) = line? else {
            events.push(json!({ "type": "closed", "time": since.elapsed().as_secs_f64() }));
            return Ok(events);
        };
        let event: Value = serde_json::from_str(&line)?;
        let is_last = event["object"]["metadata"]["annotations"][MARK] == mark;
        events.push(event);
        if is_last {
            return Ok(events);
        }
    }
    bail!("a watch neither sent the mark nor ended; it sent {events:#?}")
}

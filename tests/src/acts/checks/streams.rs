//! Several streams of one task, and those that break off.

use serde_json::{Value, json};

use crate::acts::endpoint::Events;
use crate::acts::events;
use crate::acts::expect::Fault;
use crate::acts::operation::Operation;
use crate::acts::run::Bench;

/// Two streams of one task have the same events in the same order, each from where it began.
pub(super) async fn two(bench: &Bench) -> Result<(), Fault> {
    let (first, task) = begin(bench).await?;
    let mut second = subscribe(bench, &task).await?;
    let opening = second.event().await?;
    if events::state(&opening).is_none() {
        return Err(Fault::new(format!("the second stream does not begin with the task's state: {opening}")));
    }
    let (all, some) = tokio::try_join!(first.rest(), second.rest())?;
    if all.ends_with(&some) {
        return reached_the_end(&some);
    }
    Err(Fault::new(format!("the streams differ: {} and {}", json!(all), json!(some))))
}

/// A stream reaches the end though another one of the same task is closed.
pub(super) async fn one_closes(bench: &Bench) -> Result<(), Fault> {
    let (first, task) = begin(bench).await?;
    let second = subscribe(bench, &task).await?;
    drop(first);
    reached_the_end(&second.rest().await?)
}

/// A task continues without its only reader, which reconnects and reads the rest.
pub(super) async fn resubscribe(bench: &Bench) -> Result<(), Fault> {
    let (first, task) = begin(bench).await?;
    drop(first);
    let rest = subscribe(bench, &task).await?.rest().await?;
    reached_the_end(&rest)?;
    let task = bench.endpoint.call(Operation::Get, &json!({"id": task})).await?.root();
    if task["artifacts"].as_array().is_some_and(|artifacts| !artifacts.is_empty()) {
        return Ok(());
    }
    Err(Fault::new(format!("the task has no artifact: {task}")))
}

/// A task that takes a while, with its stream, of which one event is read.
async fn begin(bench: &Bench) -> Result<(Events, String), Fault> {
    let params = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "tck-long-running stream"}]}});
    let mut stream = bench.endpoint.open(Operation::Stream, &params).await?;
    let first = stream.event().await?;
    match first["task"]["id"].as_str() {
        Some(id) => Ok((stream, id.to_owned())),
        None => Err(Fault::new(format!("the stream does not begin with the task: {first}"))),
    }
}

async fn subscribe(bench: &Bench, task: &str) -> Result<Events, Fault> {
    Ok(bench.endpoint.open(Operation::Subscribe, &json!({"id": task})).await?)
}

fn reached_the_end(events: &[Value]) -> Result<(), Fault> {
    match events.last().and_then(events::state) {
        Some("TASK_STATE_COMPLETED") => Ok(()),
        _ => Err(Fault::new(format!("the stream does not reach the end: {}", json!(events)))),
    }
}

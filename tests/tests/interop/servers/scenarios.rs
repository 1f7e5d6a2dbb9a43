//! What our client must be able to do with every agent.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_a2a::ProtocolVersion;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions};
use futures::StreamExt;

use super::{Agent, Stream, connect, connect_with, options, says};
use crate::sdk_events::{Event, Task};

/// Runs every scenario, and tells all that failed.
pub(super) async fn run(agent: Agent, expected: ProtocolVersion) -> Result<()> {
    let mut faults = Vec::new();
    macro_rules! scenarios {
        ($($scenario:ident),* $(,)?) => {
            $(if let Err(error) = $scenario(&agent).await {
                faults.push(format!("{}: {error:#}", stringify!($scenario)));
            })*
        };
    }
    if let Err(error) = card(&agent, expected) {
        faults.push(format!("card: {error:#}"));
    }
    scenarios![send, message, stream, cancel, subscribe, ask, fail, errors];
    if let Err(error) = dead(agent).await {
        faults.push(format!("dead: {error:#}"));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n\n"));
    Ok(())
}

fn card(agent: &Agent, expected: ProtocolVersion) -> Result<()> {
    let card = agent.client.card();
    ensure!(card.name == "Peer" && card.version == "7" && card.capabilities.streaming, "{card:?}");
    ensure!(card.skills.first().is_some_and(|skill| skill.id == "echo"), "{card:?}");
    let (version, endpoint) = (agent.client.version(), agent.client.endpoint());
    ensure!(version == expected && endpoint.path() == "/rpc", "{version} at {endpoint} was chosen");
    Ok(())
}

/// A task that is waited for, and looked at again.
async fn send(agent: &Agent) -> Result<()> {
    let task = agent.task(says("hello – 🚀")).await?;
    ensure!(task.state == "completed" && task.text("answer") == "echo: hello – 🚀", "{task:?}");
    let again = agent.get(&task.id).await?;
    ensure!(again == task, "{again:?} is not {task:?}");
    Ok(())
}

/// An answer without a task.
async fn message(agent: &Agent) -> Result<()> {
    let answer = agent.send(says("message hello")).await?;
    ensure!(answer == Event::Message("echo: hello".to_owned()), "{answer:?}");
    let events = agent.stream("message hello").await?.rest().await?;
    ensure!(events == [Event::Message("echo: hello".to_owned())], "{events:?}");
    Ok(())
}

/// Pieces of an artifact make it up exactly.
async fn stream(agent: &Agent) -> Result<()> {
    let events = agent.stream("chunks 100").await?.rest().await?;
    let numbers: Vec<String> = (0..100).map(|number| format!("{number} ")).collect();
    let expected = numbers.concat();
    let pieces = events.iter().filter(|event| matches!(event, Event::Artifact(..))).count();
    let whole = Task::of(&events);
    ensure!(pieces == 100 && whole.text("pieces") == expected, "{pieces} pieces: {whole:?}");
    ensure!(matches!(events.last(), Some(Event::Status(state, _)) if state == "completed"), "{events:?}");
    ensure!(agent.get(&whole.id).await?.text("pieces") == expected);
    Ok(())
}

/// A task that waits at a gate, told up to there: its stream and what it has.
async fn at_gate(client: &A2aClient, name: &str) -> Result<(Stream, Task)> {
    let mut stream = super::stream(client, &format!("gate {name}")).await?;
    let at_gate = |event: &Event| matches!(event, Event::Artifact(piece, _) if piece.text == "two ");
    let events = stream.until(at_gate).await?;
    Ok((stream, Task::of(&events)))
}

/// A task that runs is canceled: its stream ends so. The Python SDK of 0.3 leaves a stream open and silent when its
/// task is canceled; a client that knows when silence is too long finds out.
async fn cancel(agent: &Agent) -> Result<()> {
    let idle_timeout = if agent.flawed { Duration::from_secs(2) } else { options().idle_timeout };
    let version = Some(agent.client.version());
    let client = connect_with(&agent.url, ClientOptions { idle_timeout, version, ..options() }).await?;
    let (stream, before) = at_gate(&client, "of-the-canceled").await?;
    let canceled = Task::read(&serde_json::to_value(agent.client.cancel(&before.id).await?)?);
    ensure!(canceled.state == "canceled", "{canceled:?}");
    let events = stream.rest().await?;
    ensure!(Task::of(&events).state == "canceled", "{events:?}");
    ensure!(agent.get(&before.id).await?.state == "canceled");
    Ok(())
}

/// A stream that was left is taken up again up to the end. The Python SDK of 0.3 does not tell what was before, and
/// keeps twice whatever has two readers.
async fn subscribe(agent: &Agent) -> Result<()> {
    let (stream, before) = at_gate(&agent.client, "of-the-left").await?;
    drop(stream);
    let again = Stream(agent.client.subscribe(&before.id, None).await?);
    agent.send(says("open of-the-left")).await?;
    let events = again.rest().await?;
    let whole = Task::of(&events);
    let expected = if agent.flawed { "three four" } else { "one two three four" };
    ensure!(whole.state == "completed" && whole.text("pieces") == expected, "{events:?}");
    let task = agent.get(&before.id).await?;
    ensure!(task.state == "completed", "{task:?}");
    ensure!(agent.flawed || task.text("pieces") == "one two three four", "{task:?}");
    Ok(())
}

/// An agent that asks ends the stream; the answer continues the same task.
async fn ask(agent: &Agent) -> Result<()> {
    let events = agent.stream("ask").await?.rest().await?;
    let asks = |event: &Event| matches!(event, Event::Status(state, text) if state == "input-required" && text == "Which one?");
    ensure!(events.last().is_some_and(asks), "{events:?}");
    let asked = agent.task(says("ask")).await?;
    ensure!(asked.state == "input-required", "{asked:?}");
    let answered = agent.task(says("this one").within(&asked.id, &asked.context)).await?;
    ensure!(answered.id == asked.id && answered.text("answer") == "echo: this one", "{answered:?}");
    Ok(())
}

/// A task that fails is no error of the call, and says why.
async fn fail(agent: &Agent) -> Result<()> {
    let events = agent.stream("fail").await?.rest().await?;
    let fails = |event: &Event| matches!(event, Event::Status(state, text) if state == "failed" && text == "It broke.");
    ensure!(events.last().is_some_and(fails), "{events:?}");
    ensure!(agent.task(says("fail")).await?.state == "failed");
    Ok(())
}

/// What the agent refuses comes with its code.
async fn errors(agent: &Agent) -> Result<()> {
    let client = &agent.client;
    let ended = agent.task(says("hello")).await?;
    let failures = [
        ("get", -32001, client.get("no-such-task", None).await.err()),
        ("cancel", -32001, client.cancel("no-such-task").await.err()),
        ("cancel what has ended", -32002, client.cancel(&ended.id).await.err()),
        ("subscribe", -32001, agent.first_error("no-such-task").await),
    ];
    for (what, code, error) in failures {
        let error = error.with_context(|| format!("{what} did not fail"))?;
        ensure!(matches!(&error, ClientError::Remote(error) if error.code == code), "{what}: {error}");
    }
    Ok(())
}

/// An agent that is gone is said to be so, whatever was wanted.
async fn dead(agent: Agent) -> Result<()> {
    let (stream, task) = at_gate(&agent.client, "of-the-dead").await?;
    let Agent { program, url, client, .. } = agent;
    program.kill().await?;
    ensure!(stream.rest().await.is_err(), "a stream ended well though its agent died");
    for error in [client.get(&task.id, None).await.err(), connect(&url, None).await.err()] {
        let error = error.context("a dead agent answered")?;
        ensure!(matches!(error, ClientError::Connect { .. }), "{error}");
    }
    Ok(())
}

impl Agent {
    /// The failure of a subscription, whether it comes at once or as the first event.
    async fn first_error(&self, id: &str) -> Option<ClientError> {
        match self.client.subscribe(id, None).await {
            Ok(mut stream) => stream.next().await?.err(),
            Err(error) => Some(error),
        }
    }
}

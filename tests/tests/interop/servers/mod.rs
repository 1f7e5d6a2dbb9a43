//! Our client against agents made with the official SDKs.

mod chat;
mod scenarios;

use std::time::Duration;

use anyhow::{Context, Result};
use caipe_a2a::client::{A2aClient, ClientOptions, EventStream, Reconnect};
use caipe_a2a::model::{Message, SendMessageRequest};
use caipe_a2a::{ProtocolVersion, client::ClientError};
use caipe_tests::sdk::{Program, Sdk};
use caipe_tests::stream::TIMEOUT;
use caipe_tests::supervisor::unique;
use futures::StreamExt;

use crate::sdk_events::{Event, Task};

/// An agent, and our client of it.
pub(crate) struct Agent {
    program: Program,
    url: String,
    client: A2aClient,
    /// The Python SDK of 0.3 has flaws that its successors do not have.
    flawed: bool,
}

impl Agent {
    /// Starts an agent and connects to it; nothing if its SDK is not installed.
    async fn start(sdk: Sdk, arguments: &[&str], version: Option<ProtocolVersion>) -> Result<Option<Self>> {
        let Some((program, url)) = Program::server(sdk, arguments).await? else { return Ok(None) };
        let client = connect(&url, version).await?;
        Ok(Some(Self { program, url, client, flawed: sdk == Sdk::Python03 }))
    }

    /// Says something, and waits for the answer.
    async fn send(&self, message: Message) -> Result<Event> {
        let reply = self.client.send(SendMessageRequest::new(message)).await?;
        Event::read(&serde_json::to_value(reply)?)
    }

    /// Says something that is answered by a task.
    async fn task(&self, message: Message) -> Result<Task> {
        match self.send(message).await? {
            Event::Task(task) => Ok(task),
            other => anyhow::bail!("the answer is no task: {other:?}"),
        }
    }

    /// Says something, and follows the task.
    async fn stream(&self, text: &str) -> Result<Stream> {
        stream(&self.client, text).await
    }

    async fn get(&self, id: &str) -> Result<Task> {
        Ok(Task::read(&serde_json::to_value(self.client.get(id, None).await?)?))
    }
}

async fn connect(url: &str, version: Option<ProtocolVersion>) -> Result<A2aClient, ClientError> {
    connect_with(url, ClientOptions { version, ..options() }).await
}

async fn connect_with(url: &str, options: ClientOptions) -> Result<A2aClient, ClientError> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap_or_default();
    A2aClient::connect(url, http, options).await
}

/// An agent that is gone is given up on soon: none of these comes back.
fn options() -> ClientOptions {
    let first_wait = Duration::from_millis(10);
    ClientOptions {
        reconnect: Reconnect { attempts: 3, first_wait, ..Reconnect::default() },
        ..ClientOptions::default()
    }
}

async fn stream(client: &A2aClient, text: &str) -> Result<Stream> {
    Ok(Stream(client.stream(SendMessageRequest::new(says(text))).await?))
}

/// A user's message.
fn says(text: &str) -> Message {
    Message::user(unique("message"), text)
}

/// The events of a stream of ours.
struct Stream(EventStream);

impl Stream {
    /// Reads up to the first event for which `wanted` holds, which is the last of the answer.
    async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            let found = wanted(&event);
            events.push(event);
            if found {
                return Ok(events);
            }
        }
        anyhow::bail!("the stream ended before what was waited for: {events:?}")
    }

    async fn rest(mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }

    async fn next(&mut self) -> Result<Option<Event>> {
        let next = tokio::time::timeout(TIMEOUT, self.0.next()).await.context("the stream fell silent")?;
        next.transpose()?.map(|event| Event::read(&serde_json::to_value(event.event)?)).transpose()
    }
}

/// Runs every scenario with an agent that speaks `expected`.
async fn check(sdk: Sdk, arguments: &[&str], expected: ProtocolVersion) -> Result<()> {
    let Some(agent) = Agent::start(sdk, arguments, None).await? else { return Ok(()) };
    scenarios::run(agent, expected).await
}

/// The same, but ours insists on 0.3 with an agent that speaks both.
async fn check_compatibility(sdk: Sdk) -> Result<()> {
    let version = ProtocolVersion::V0_3;
    let Some(agent) = Agent::start(sdk, &["--compat"], Some(version)).await? else { return Ok(()) };
    scenarios::run(agent, version).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_1_0() -> Result<()> {
    check(Sdk::Python10, &[], ProtocolVersion::V1_0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_1_0_that_speaks_0_3_too() -> Result<()> {
    check(Sdk::Python10, &["--compat"], ProtocolVersion::V1_0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_1_0_speaking_0_3() -> Result<()> {
    check_compatibility(Sdk::Python10).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_0_3() -> Result<()> {
    check(Sdk::Python03, &[], ProtocolVersion::V0_3).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_1_0() -> Result<()> {
    check(Sdk::JavaScript10, &[], ProtocolVersion::V1_0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_1_0_speaking_0_3() -> Result<()> {
    check_compatibility(Sdk::JavaScript10).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_1_0_alone_is_not_spoken_to_in_0_3() -> Result<()> {
    let Some((_program, url)) = Program::server(Sdk::Python10, &[]).await? else { return Ok(()) };
    let error = connect(&url, Some(ProtocolVersion::V0_3)).await.err().context("it connected")?;
    anyhow::ensure!(matches!(error, ClientError::NoInterface { .. }), "{error}");
    Ok(())
}

//! The official clients against our server.

mod lf;
mod push;
mod scenarios;

use anyhow::{Result, ensure};
use caipe_tests::sdk::{Output, Program, Sdk};
use caipe_tests::supervisor::Supervisor;
use serde_json::Value;

use self::lf::LfClient;
use crate::sdk_events::{Event, Task};

const JSON_RPC: &str = "JSONRPC";
const REST: &str = "HTTP+JSON";

/// A client and what it is like.
pub(crate) struct Client {
    kind: Kind,
    /// Whether it speaks 0.3.
    old: bool,
    /// How the name of the SDK's transport begins.
    transport: &'static str,
    /// Whether it can list and delete push configurations.
    keeps_pushes: bool,
    /// Whether the SDK drops `append` from what it reads, as the JavaScript one of 0.3 does over REST.
    forgets_append: bool,
}

enum Kind {
    Program(Box<Program>),
    Lf(Box<LfClient>),
}

impl Client {
    /// A client made with `sdk`; nothing if that is not installed.
    fn of(sdk: Sdk, supervisor: &Supervisor, transport: &str) -> Result<Option<Self>> {
        let program = Program::client(sdk, supervisor.url(), transport)?;
        let old = matches!(sdk, Sdk::Python03 | Sdk::JavaScript03);
        let rest = transport == REST;
        Ok(program.map(|program| Self {
            kind: Kind::Program(Box::new(program)),
            old,
            transport: if rest { "Rest" } else { "Json" },
            keeps_pushes: sdk != Sdk::Python03,
            forgets_append: rest && sdk == Sdk::JavaScript03,
        }))
    }

    /// Does something, and tells what was observed.
    async fn ask(&mut self, command: Value) -> Result<Output> {
        match &mut self.kind {
            Kind::Program(program) => program.ask(&command).await,
            Kind::Lf(client) => client.ask(&command).await,
        }
    }

    /// Does something that is answered by one task.
    async fn task(&mut self, command: Value) -> Result<Task> {
        Ok(Task::read(self.ask(command).await?.one("task")?))
    }

    /// Sends something that is answered by one task.
    async fn send(&mut self, command: Value) -> Result<Task> {
        match Event::read(self.ask(command).await?.one("event")?)? {
            Event::Task(task) => Ok(task),
            other => anyhow::bail!("the answer is no task: {other:?}"),
        }
    }

    /// Does something that is answered by a stream: its events and what else was observed.
    async fn events(&mut self, command: Value) -> Result<(Vec<Event>, Output)> {
        let output = self.ask(command).await?;
        let mut events: Vec<Event> =
            output.all("event")?.into_iter().map(Event::read).collect::<Result<_>>()?;
        for event in events.iter_mut().filter(|_| self.forgets_append) {
            if let Event::Artifact(_, append) = event {
                *append = true;
            }
        }
        Ok((events, output))
    }

    /// Does something that must fail with this class of error, whose JSON-RPC code is `code`.
    async fn fails(&mut self, command: Value, class: &str, code: i64) -> Result<()> {
        let output = self.ask(command.clone()).await?;
        let Some(error) = output.error else { anyhow::bail!("{command} did not fail: {:?}", output.lines) };
        let text = error.to_string();
        // Not every SDK of 0.3 has classes: out of a stream, the JavaScript one tells the code in words, and over
        // REST, where there is no code, the status.
        let status = if code == -32001 { "404" } else { "400" };
        // The Python one of 0.3 gets no further there than that a refused stream is none.
        let vague = text.contains(status) || text.contains("Invalid SSE response");
        let output = text.contains(&code.to_string()) || (self.old && vague);
        let known = error["class"] == class || output;
        ensure!(known, "{command} failed otherwise than with {class} ({code}): {text}");
        Ok(())
    }
}

/// Runs every scenario with a client, and tells all that failed.
async fn check(sdk: Sdk, transport: &str) -> Result<()> {
    let supervisor = scenarios::supervisor().await?;
    let Some(client) = Client::of(sdk, &supervisor, transport)? else { return Ok(()) };
    scenarios::run(client).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_1_0() -> Result<()> {
    check(Sdk::Python10, JSON_RPC).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_0_3() -> Result<()> {
    check(Sdk::Python03, JSON_RPC).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_1_0() -> Result<()> {
    check(Sdk::JavaScript10, JSON_RPC).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_0_3() -> Result<()> {
    check(Sdk::JavaScript03, JSON_RPC).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_1_0_over_rest() -> Result<()> {
    check(Sdk::Python10, REST).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_0_3_over_rest() -> Result<()> {
    check(Sdk::Python03, REST).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_1_0_over_rest() -> Result<()> {
    check(Sdk::JavaScript10, REST).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdk_of_0_3_over_rest() -> Result<()> {
    check(Sdk::JavaScript03, REST).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_of_1_0() -> Result<()> {
    let supervisor = scenarios::supervisor().await?;
    let client = LfClient::connect(supervisor.url()).await?;
    let kind = Kind::Lf(Box::new(client));
    let client = Client { kind, old: false, transport: "", keeps_pushes: true, forgets_append: false };
    scenarios::run(client).await
}

//! The programs of `tests/clients`.

use anyhow::{Context, Result};
use caipe_tests::sdk::{Program, with_packages};
use caipe_tests::{peers, programs};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::system::System;
use crate::view::View;

/// A client program and the way it reads a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Python's `requests` with its default decoding, over JSON-RPC (`0.3`, `1.0`) or REST (`REST 0.3`, `REST 1.0`).
    Requests(&'static str),
    /// The Python SDK that this environment has.
    Python(&'static str),
    /// The JavaScript SDK of this version, in this package.
    JavaScript(&'static str, &'static str),
}

/// CAIPE's Slack bot: `requests` and A2A 0.3.
pub(crate) const SLACK: Kind = Kind::Requests("0.3");

/// `requests` with every binding and version.
pub(crate) const REQUESTS: [Kind; 4] =
    [SLACK, Kind::Requests("1.0"), Kind::Requests("REST 0.3"), Kind::Requests("REST 1.0")];

/// The official SDKs. CAIPE's web UI uses the JavaScript SDK of 0.3.
pub(crate) const SDKS: [Kind; 4] = [
    Kind::Python("py-a2a-0.3"),
    Kind::Python("py-a2a"),
    Kind::JavaScript("0.3", "a2a-js-sdk-0.3"),
    Kind::JavaScript("1.0", "@a2a-js/sdk"),
];

/// One client for each library and version.
pub(crate) const EACH: [Kind; 5] = [SLACK, SDKS[0], SDKS[1], SDKS[2], SDKS[3]];

impl Kind {
    /// The command that runs the client; nothing if its peer is not installed.
    fn command(self) -> Option<Command> {
        let (interpreter, script, argument) = match self {
            Self::Requests(how) => (peers::python("py")?, "requests_client.py", how),
            Self::Python(environment) => (peers::python(environment)?, "sdk_client.py", ""),
            Self::JavaScript(version, package) => {
                peers::npm_package(package)?;
                ("node".into(), "sdk_client.cjs", version)
            }
        };
        let root = programs::workspace();
        let mut command = Command::new(interpreter);
        command.arg(root.join("tests/clients").join(script)).arg(argument);
        command.env("PYTHONPATH", root.join("fixtures/a2a-peers"));
        Some(with_packages(command))
    }
}

/// A running client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) kind: Kind,
    program: Program,
}

impl Client {
    /// Starts a client; nothing if its peer is not installed.
    pub(crate) fn start(kind: Kind) -> Result<Option<Self>> {
        let Some(command) = kind.command() else { return Ok(None) };
        let program = Program::spawn(command).with_context(|| format!("failed to start {kind:?}"))?;
        Ok(Some(Self { kind, program }))
    }

    /// Sends a message and reads the answer: `text`, perhaps `data` (the contents of data parts), `context`, `task` and
    /// `extension`.
    pub(crate) async fn ask(&mut self, system: &System, message: Value) -> Result<View> {
        let mut command = message;
        command["do"] = "ask".into();
        command["url"] = system.supervisor.url().into();
        let output = self.program.ask(&command).await?;
        View::new(&format!("{:?} {}", self.kind, system.placement), output)
            .with_context(|| format!("log:\n{}", system.supervisor.log()))
    }

    /// POST of any body with `requests`: the status code and the answer.
    pub(crate) async fn post(
        &mut self,
        system: &System,
        path: &str,
        version: &str,
        body: Value,
    ) -> Result<(u64, Value)> {
        self.call(system, json!({"path": path, "headers": {"A2A-Version": version}, "body": body})).await
    }

    /// GET of a path with `requests`.
    pub(crate) async fn get(&mut self, system: &System, path: &str) -> Result<(u64, Value)> {
        self.call(system, json!({"path": path})).await
    }

    /// A request with `requests`: `path`, perhaps `headers` and `body`.
    pub(crate) async fn call(&mut self, system: &System, request: Value) -> Result<(u64, Value)> {
        let mut command = request;
        command["do"] = "call".into();
        command["url"] = system.supervisor.url().into();
        let output = self.program.ask(&command).await?;
        let answer = output.one("answer")?;
        Ok((answer["code"].as_u64().unwrap_or_default(), answer["body"].clone()))
    }
}

/// Starts clients of these kinds; leaves out those whose peers are not installed.
pub(crate) fn clients(kinds: &[Kind]) -> Result<Vec<Client>> {
    kinds.iter().filter_map(|kind| Client::start(*kind).transpose()).collect()
}

/// Sends the same message with each client, in a conversation of its own: what each client shows.
pub(crate) async fn ask_all(clients: &mut [Client], system: &System, message: Value) -> Result<Vec<View>> {
    try_join_all(clients.iter_mut().map(|client| client.ask(system, message.clone()))).await
}

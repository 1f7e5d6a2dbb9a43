//! Programs made with the official A2A SDKs: clients that execute the commands on their input, agents that do what a message says.
//!
//! They live in `fixtures/a2a-peers`; `make peers` installs the SDKs.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::stream::TIMEOUT;
use crate::{peers, programs};

/// An official SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// Python, A2A 1.0.
    Python10,
    /// Python, A2A 0.3.
    Python03,
    /// JavaScript, A2A 1.0.
    JavaScript10,
    /// JavaScript, A2A 0.3.
    JavaScript03,
}

impl Sdk {
    /// The command that runs `client`, `server` or `agent` made with this SDK; nothing if the SDK is not installed.
    fn command(self, role: &str) -> Option<Command> {
        let (interpreter, script) = match self {
            Self::Python10 => (peers::python("py-a2a")?, format!("{role}_1_0.py")),
            Self::Python03 => (peers::python("py-a2a-0.3")?, format!("{role}_0_3.py")),
            Self::JavaScript10 => (node("@a2a-js/sdk")?, format!("{role}_1_0.cjs")),
            Self::JavaScript03 => (node("a2a-js-sdk-0.3")?, format!("{role}_0_3.cjs")),
        };
        let mut command = Command::new(interpreter);
        command.arg(programs::workspace().join("fixtures/a2a-peers").join(script));
        Some(with_packages(command))
    }
}

/// The command with the variables by which Node.js finds the packages of peers, and Python leaves no files behind.
pub fn with_packages(mut command: Command) -> Command {
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1")
        .env("NODE_PATH", peers::root().join("npm/node_modules"));
    command
}

/// Node.js, if the package is there for it.
fn node(package: &str) -> Option<PathBuf> {
    peers::npm_package(package).map(|_| PathBuf::from("node"))
}

/// A running program. It ends with its stdin, so that none outlives the test, however that ends.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts a client of the agent at `url` that speaks over `transport`; nothing if the SDK is not installed.
    pub fn client(sdk: Sdk, url: &str, transport: &str) -> Result<Option<Self>> {
        Self::start(sdk, "client", &[url, transport])
    }

    /// Starts an agent and waits until it listens: the program and its base URL.
    pub async fn server(sdk: Sdk, arguments: &[&str]) -> Result<Option<(Self, String)>> {
        Self::listening(sdk, "server", arguments).await
    }

    /// The same for the agent `jira`, which speaks as upstream's sub-agents do; there is one in Python only.
    pub async fn agent(sdk: Sdk, arguments: &[&str]) -> Result<Option<(Self, String)>> {
        Self::listening(sdk, "agent", arguments).await
    }

    async fn listening(sdk: Sdk, role: &str, arguments: &[&str]) -> Result<Option<(Self, String)>> {
        let Some(mut program) = Self::start(sdk, role, arguments)? else { return Ok(None) };
        let url = program.url().await?;
        Ok(Some((program, url)))
    }

    /// The base URL that a program prints once it listens.
    pub(crate) async fn url(&mut self) -> Result<String> {
        let line = self.line().await?;
        Ok(line["url"].as_str().with_context(|| format!("the program prints no URL: {line}"))?.to_owned())
    }

    fn start(sdk: Sdk, role: &str, arguments: &[&str]) -> Result<Option<Self>> {
        let Some(mut command) = sdk.command(role) else { return Ok(None) };
        command.args(arguments);
        Self::spawn(command).with_context(|| format!("failed to start the {role} of {sdk:?}")).map(Some)
    }

    /// Starts any program that takes commands from its stdin as those of `fixtures/a2a-peers` do.
    pub fn spawn(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = child.stdout.take().context("no stdout")?;
        Ok(Self { child, stdin, lines: BufReader::new(stdout).lines() })
    }

    /// Has a client do something: everything that it observed.
    pub async fn ask(&mut self, command: &Value) -> Result<Output> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await.context("the peer is gone")?;
        let mut output = Output::default();
        loop {
            let mut line = self.line().await.with_context(|| format!("no answer to {command}"))?;
            if let Some(error) = line.get_mut("error") {
                output.error = Some(error.take());
                return Ok(output);
            }
            if line.get("end").is_some() {
                return Ok(output);
            }
            output.lines.push(line);
        }
    }

    /// Kills it as a crash does, and waits until it is gone.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("failed to kill the peer")
    }

    async fn line(&mut self) -> Result<Value> {
        let line = tokio::time::timeout(TIMEOUT, self.lines.next_line()).await;
        let Some(line) = line.context("the peer says nothing")?? else { bail!("the peer ended") };
        serde_json::from_str(&line).with_context(|| format!("the peer says something else than JSON: {line}"))
    }
}

/// What a client observed.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Its observations, in their order.
    pub lines: Vec<Value>,
    /// What the SDK raised at last: `class`, `message`, perhaps `code`.
    pub error: Option<Value>,
}

impl Output {
    /// The observations with this name, if nothing was raised.
    pub fn all(&self, name: &str) -> Result<Vec<&Value>> {
        ensure!(self.error.is_none(), "the SDK raised {:?} after {:?}", self.error, self.lines);
        Ok(self.lines.iter().filter_map(|line| line.get(name)).collect())
    }

    /// The only observation with this name.
    pub fn one(&self, name: &str) -> Result<&Value> {
        match self.all(name)?.as_slice() {
            [one] => Ok(one),
            others => bail!("one {name} was expected, not {others:?}"),
        }
    }
}

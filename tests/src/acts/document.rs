//! The documents: what a test says, as it is written.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The major version of the file format that is understood.
const FORMAT: &str = "1";

/// One file.
#[derive(Debug, Clone, Deserialize)]
pub struct Document {
    /// The version of the file format.
    pub acts_version: String,
    /// The version of A2A that the tests are about; also the value of the `A2A-Version` header.
    pub spec_version: String,
    #[serde(default)]
    pub variables: Map<String, Value>,
    /// Further files, beside this one.
    #[serde(default)]
    pub include: Vec<String>,
    /// The tests.
    #[serde(default)]
    pub suites: Vec<Suite>,
}

/// Tests about one subject.
#[derive(Debug, Clone, Deserialize)]
pub struct Suite {
    pub id: String,
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// Inherited by the tests.
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub tests: Vec<Test>,
}

/// How much a failure weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not conformant.
    Must,
    /// Recommended.
    Should,
    /// Optional.
    May,
}

/// A binding of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// JSON-RPC.
    Jsonrpc,
    /// HTTP+JSON.
    Rest,
    /// gRPC.
    Grpc,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Test {
    /// Its id, unique over all files.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// How much a failure weighs.
    pub level: Level,
    /// Labels; `runner-special` means that the test describes more than its steps do.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The bindings that it applies to; absent means any.
    #[serde(default)]
    pub transport: Option<Vec<Binding>>,
    /// What the card must say.
    #[serde(default)]
    pub preconditions: Preconditions,
    /// What happens, one after the other.
    pub steps: Vec<Step>,
}

/// What the card must say for a test to apply.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Preconditions {
    /// Capabilities; one that the card does not name counts as false.
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
}

/// One step: one of the three actions, and what is expected of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its id, unique in its test.
    pub id: String,
    /// An operation of the protocol, whatever the binding.
    pub operation: Option<String>,
    /// Its parameters.
    pub params: Option<Value>,
    /// A literal HTTP request.
    pub raw: Option<RawConnection>,
    /// A payload for our own client.
    pub client_response: Option<ClientResponse>,
    /// Wait so long before it, in milliseconds.
    pub delay_ms: Option<u64>,
    /// What a plain answer must look like.
    pub expect: Option<Value>,
    /// How it must fail.
    pub expect_error: Option<Value>,
    /// What a stream must look like.
    pub expect_stream: Option<Value>,
    /// What our client must make of the payload.
    pub expect_parsed: Option<Value>,
    /// Values to keep, by name: paths into the answer.
    pub capture: BTreeMap<String, String>,
    /// Patterns for elements of a collection.
    pub assertions: Vec<Value>,
    /// Whether to do it again until something holds.
    pub repeat: Option<Repeat>,
}

/// A literal HTTP request.
#[derive(Debug, Clone, Deserialize)]
pub struct RawConnection {
    /// `GET` or `POST`.
    pub method: String,
    /// Below the base URL of the binding.
    pub path: String,
    /// Exactly these are sent.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// Sent as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// Sent as it is.
    #[serde(default)]
    pub body_raw: Option<String>,
}

/// An answer for our own client; no server is involved.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientResponse {
    /// What the client has called.
    pub operation: String,
    /// What it gets.
    pub wire_payload: Value,
}

/// How often a step is done.
#[derive(Debug, Clone, Deserialize)]
pub struct Repeat {
    /// The condition; see [`super::condition`].
    pub until: String,
    /// Fails after so many attempts.
    #[serde(default = "ten")]
    pub max_attempts: u32,
    /// Between two attempts, in milliseconds.
    #[serde(default = "second")]
    pub delay_ms: u64,
    /// How the delay grows: `none`, `linear`, `exponential`.
    #[serde(default)]
    pub backoff: Backoff,
}

/// How a delay grows from attempt to attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// Not at all.
    #[default]
    None,
    /// By itself each time.
    Linear,
    /// Twofold each time.
    Exponential,
}

const fn ten() -> u32 {
    10
}

const fn second() -> u64 {
    1000
}

impl Repeat {
    /// How long to wait after the attempt `number`, which counts from 1, in milliseconds.
    pub fn delay_after(&self, number: u32) -> u64 {
        match self.backoff {
            Backoff::None => self.delay_ms,
            Backoff::Linear => self.delay_ms.saturating_mul(u64::from(number)),
            Backoff::Exponential => {
                self.delay_ms.saturating_mul(2_u64.saturating_pow(number.saturating_sub(1)))
            }
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a> {
    /// An operation with its parameters.
    Operation(&'a str, &'a Value),
    /// A literal request.
    RawConnection(&'a RawConnection),
    /// A payload for our client.
    Client(&'a ClientResponse),
}

impl Step {
    /// What it does.
    ///
    /// # Errors
    /// When it does nothing or several things.
    pub fn action(&self) -> Result<Action<'_>> {
        static NOTHING: Value = Value::Null;
        match (&self.operation, &self.raw, &self.client_response) {
            (Some(name), None, None) => Ok(Action::Operation(name, self.params.as_ref().unwrap_or(&NOTHING))),
            (None, Some(raw), None) => Ok(Action::RawConnection(raw)),
            (None, None, Some(payload)) => Ok(Action::Client(payload)),
            _ => bail!("step {} needs exactly one of operation, raw, client_response", self.id),
        }
    }
}

impl Test {
    /// Whether it describes more than its steps do.
    pub fn is_special(&self) -> bool {
        self.tags.iter().any(|tag| tag == "runner-special")
    }

    /// Whether no server takes part.
    pub fn is_about_the_client(&self) -> bool {
        self.steps.iter().all(|step| step.client_response.is_some())
    }
}

/// A test with what its file and suite say.
#[derive(Debug, Clone)]
pub struct Case {
    /// The suite's id.
    pub suite: String,
    /// The version of A2A.
    pub spec_version: String,
    /// The variables of the file, and of the file that includes it.
    pub variables: Map<String, Value>,
    pub test: Test,
}

/// Reads one file.
pub fn parse(yaml: &str) -> Result<Document> {
    let document: Document = serde_saphyr::from_str(yaml).context("failed to read the YAML")?;
    let major = document.acts_version.split('.').next().unwrap_or_default();
    ensure!(major == FORMAT, "the file has format {}, {FORMAT}.x is needed", document.acts_version);
    Ok(document)
}

/// Reads a file and those that it includes, which may not include others.
pub fn load(path: &Path) -> Result<Vec<Case>> {
    let document = read(path)?;
    let dir = path.parent().unwrap_or(path);
    let mut cases = cases(&document, &Map::new());
    for name in &document.include {
        ensure!(!name.contains(['/', '\\']), "{name} is not a file beside {}", path.display());
        let included = read(&dir.join(name))?;
        ensure!(included.include.is_empty(), "{name} includes others");
        cases.extend(self::cases(&included, &document.variables));
    }
    let mut ids: Vec<&str> = cases.iter().map(|case| &*case.test.id).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair.first() == pair.last()) {
        bail!("{} is there twice", twice.concat());
    }
    Ok(cases)
}

fn read(path: &Path) -> Result<Document> {
    let context = || format!("failed to read {}", path.display());
    parse(&std::fs::read_to_string(path).with_context(context)?).with_context(context)
}

fn cases(document: &Document, outer: &Map<String, Value>) -> Vec<Case> {
    let mut variables = outer.clone();
    variables.extend(document.variables.clone());
    let of_suite = |suite: &Suite| {
        let case = |test: &Test| {
            let mut test = test.clone();
            test.tags.extend(suite.tags.iter().cloned());
            let spec_version = document.spec_version.clone();
            Case { suite: suite.id.clone(), spec_version, variables: variables.clone(), test }
        };
        suite.tests.iter().map(case).collect::<Vec<_>>()
    };
    document.suites.iter().flat_map(of_suite).collect()
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;

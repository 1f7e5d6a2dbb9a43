//! The knowledge base: its caps, its sizes, its sources, and a supervisor that starts before it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::mcp::{self, Mode, Options};
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::stream::Answer;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::metrics::{metrics_url, value};

/// A knowledge base in this process, with a file of its calls.
struct Knowledge {
    address: SocketAddr,
    dir: TempDir,
    server: JoinHandle<()>,
}

impl Knowledge {
    async fn start() -> Result<Self> {
        Self::at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    async fn at(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await.context("failed to listen")?;
        let dir = TempDir::new()?;
        let options = Options { mode: Mode::Knowledge, state: Some(calls(dir.path())), ..Options::default() };
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move { drop(mcp::serve(listener, options).await) });
        Ok(Self { address, dir, server })
    }

    fn rag(&self) -> Value {
        json!({"url": format!("http://{}", self.address)})
    }

    /// The arguments of the calls of a tool.
    fn calls(&self, tool: &str) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(calls(self.dir.path()))?;
        let own = text.lines().filter_map(|line| line.strip_prefix(tool)?.strip_prefix(' '));
        Ok(own.map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

impl Drop for Knowledge {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn calls(dir: &Path) -> PathBuf {
    dir.join("calls")
}

/// A model that repeats a call; once it has read this text, it answers with the result.
fn repeating(scenario: Scenario, phrase: &str, call: &Value, until: &str) -> Scenario {
    scenario
        .turn(json!({"user": phrase, "result_contains": until}), answer("{{ last_result }}"))
        .turn(json!({"user": phrase}), json!({"text": "I look. ", "calls": [call]}))
}

fn fetch() -> Value {
    // Each call has other arguments, as those of a model that reads one document after the other.
    json!({"name": "fetch_document", "arguments": {"document_id": "doc-{{ results | length }}"}})
}

fn search() -> Value {
    json!({"name": "search", "arguments": {"query": "slim {{ results | length }}", "limit": 10}})
}

fn with(knowledge: &Knowledge) -> Scenario {
    Scenario::new().set("agents", json!([])).set("rag", knowledge.rag())
}

/// The answer without its sources.
fn answered(answer: &Answer) -> Result<String> {
    let text = answer.result()?;
    Ok(text.split("\n\n**Sources**").next().unwrap_or_default().to_owned())
}

fn cap(tool: &str, most: usize) -> String {
    format!(
        "[Document already retrieved] You have reached the maximum allowed number of {tool} calls ({most}). Please \
         synthesize your answer from the documents already retrieved. Do NOT call {tool} again."
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_above_the_caps_are_answered_with_the_request_to_answer() -> Result<()> {
    let knowledge = Knowledge::start().await?;
    let scenario = repeating(with(&knowledge), "read", &fetch(), "maximum allowed number");
    let scenario = repeating(scenario, "find", &search(), "maximum allowed number");
    let setup = scenario.setup()?.env("NO_COLOR", "1").env("CAIPE_METRICS_ADDRESS", "127.0.0.1:0");
    let supervisor = setup.start().await?;
    let read = supervisor.ask("read everything").await?;
    assert_eq!(answered(&read)?, cap("fetch_document", 10));
    assert_eq!(read.state(), "completed");
    assert_eq!(knowledge.calls("fetch_document")?.len(), 10);
    let notices = read.texts("tool_notification_start").concat();
    ensure!(
        notices.contains("🔍 Supervisor: the budget of 10 calls of fetch_document is used up\n"),
        "{notices}"
    );

    let found = supervisor.ask("find everything").await?;
    assert_eq!(answered(&found)?, cap("search", 5));
    let searches = knowledge.calls("search")?;
    assert_eq!(searches.len(), 5);
    ensure!(searches.iter().all(|arguments| arguments["limit"] == 3), "{searches:?}");

    supervisor.ask_in("find it again", Some(found.context())).await?;
    assert_eq!(knowledge.calls("search")?.len(), 10, "a new request has its own calls");
    let reached = value(&metrics_url(&supervisor)?, r#"limits_reached_total{limit="tool_calls"}"#).await?;
    ensure!((reached - 3.0).abs() < 0.1, "{reached}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_stops_searching_must_answer() -> Result<()> {
    let knowledge = Knowledge::start().await?;
    let stubborn = json!({"text": "SLIM is a protocol.", "calls": [search()]});
    let supervisor = with(&knowledge).turn(json!({"user": "*"}), stubborn).setup()?.start().await?;
    let answer = supervisor.ask("what is agntcy slim?").await?;
    assert_eq!((answered(&answer)?.as_str(), answer.state()), ("SLIM is a protocol.", "completed"));
    assert_eq!(knowledge.calls("search")?.len(), 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_have_their_own_calls() -> Result<()> {
    let knowledge = Knowledge::start().await?;
    let supervisor =
        repeating(with(&knowledge), "find", &search(), "maximum allowed number").setup()?.start().await?;
    let asked = (0..4).map(|_| supervisor.ask("find everything"));
    for answer in futures::future::try_join_all(asked).await? {
        assert_eq!(answered(&answer)?, cap("search", 5));
    }
    assert_eq!(knowledge.calls("search")?.len(), 20);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_document_is_cut_and_the_environment_sets_the_limits() -> Result<()> {
    let knowledge = Knowledge::start().await?;
    let long = json!({"name": "fetch_document", "arguments": {"document_id": "long"}});
    let scenario = Scenario::new().set("agents", json!([]));
    let setup = repeating(scenario, "read", &long, "Output truncated").setup()?;
    for (variable, chars) in [(None, 10_000), (Some("500"), 500)] {
        let mut setup = setup.clone().env("ENABLE_RAG", "true");
        setup = setup.env("RAG_SERVER_URL", format!("http://{}/mcp", knowledge.address));
        if let Some(chars) = variable {
            setup = setup.env("RAG_MAX_OUTPUT_CHARS", chars);
        }
        let supervisor = setup.start().await?;
        let read = supervisor.ask("read the long document").await?;
        let text = answered(&read)?;
        let shown = text.split(|c| c != 'x').map(str::len).max();
        assert_eq!((shown, text.ends_with("[Output truncated]")), (Some(chars), true));
        ensure!(!read.texts("tool_notification_end").concat().contains("xxx"), "the document is not shown");
        supervisor.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sources_are_shown_once_at_the_end() -> Result<()> {
    let knowledge = Knowledge::start().await?;
    let scenario = with(&knowledge)
        .turn(json!({"user": "*", "turn": 0}), json!({"text": "I'll search.", "calls": [search()]}))
        .turn(
            json!({"user": "*", "turn": 1}),
            json!({"calls": [{"name": "fetch_document", "arguments": {"document_id": "doc-002"}}]}),
        )
        .turn(json!({"user": "*"}), answer("Leave spec.replicas out."));
    let supervisor = scenario.setup()?.start().await?;
    let answer = supervisor.ask("why is it OutOfSync?").await?;
    let expected = "Leave spec.replicas out.\n\n**Sources**\n\n1. Autoscaling and GitOps (`doc-002`)";
    assert_eq!(answer.result()?, expected);
    let streamed = answer.texts("streaming_result").concat();
    assert_eq!(streamed.matches("**Sources**").count(), 1, "{streamed}");
    ensure!(streamed.contains("I'll search.") && streamed.ends_with(expected), "{streamed}");
    Ok(())
}

/// The warnings of a supervisor, which the operator shows as the condition `Degraded`.
async fn warnings(supervisor: &Supervisor) -> Result<String> {
    let (_, status) = supervisor.get("/internal/status").await?;
    Ok(serde_json::from_str::<Value>(&status)?["warnings"].to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_knowledge_base_that_starts_later_joins() -> Result<()> {
    let address = Knowledge::start().await?.address;
    let scenario =
        Scenario::new().set("agents", json!([])).set("rag", json!({"url": format!("http://{address}")}));
    let scenario = scenario
        .turn(json!({"user": "*", "turn": 0}), json!({"calls": [search()]}))
        .turn(json!({"user": "*"}), answer("{{ last_result | first_line }}"));
    let supervisor = scenario.setup()?.start().await?;
    let missing = answered(&supervisor.ask("what is slim?").await?)?;
    ensure!(missing.contains("there is no such tool"), "{missing}");
    let reported = async || Ok(warnings(&supervisor).await?.contains("knowledge base: "));
    supervisor.until("the status names the knowledge base", reported).await?;

    let _knowledge = Knowledge::at(address).await?;
    let joined = async || Ok(!warnings(&supervisor).await?.contains("knowledge base: "));
    tokio::time::timeout(Duration::from_mins(1), supervisor.until("the knowledge base joins", joined))
        .await??;
    let (_, tools) = supervisor.get("/tools").await?;
    ensure!(tools.contains(r#""supervisor":["fetch_document","search"]"#), "{tools}");
    assert_eq!(answered(&supervisor.ask("what is slim?").await?)?, "{");
    Ok(())
}

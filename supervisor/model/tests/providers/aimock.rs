//! The wires of the providers against an independent implementation of them, `@copilotkit/aimock`.
//!
//! It is looked for in `$CAIPE_PEERS`, by default `.cache/peers` of the workspace. Without it, these
//! tests report that they are skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use caipe_fixtures::requirements::Requirement;
use caipe_model::{FinishReason, Message, ModelErrorKind, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{Env, KEY, ask, calls, env, model, run, streamed_calls, text};

const SENTENCE: &str = "Hello, wide world. This is a sentence of several pieces.";

/// One provider's wire.
struct Wire {
    name: &'static str,
    variables: fn(&str) -> Env,
    /// How this provider names 21 tokens in and 8 out; aimock passes the names through, but has none for Ollama.
    usage: Option<Value>,
    /// Whether the provider's calls have the ids that the fixture gives them.
    keeps_ids: bool,
}

struct Aimock {
    url: String,
    _process: Child,
    _fixtures: tempfile::TempDir,
}

/// The program, or `None` after saying that it is not there.
fn program() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = std::env::var_os("CAIPE_PEERS").map_or_else(|| workspace.join(".cache/peers"), PathBuf::from);
    let program = peers.join("npm/node_modules/.bin/llmock");
    if program.exists() {
        return Some(program);
    }
    Requirement::Peers.unmet(&format!("{} is not installed", program.display()));
    None
}

impl Aimock {
    async fn start(program: &Path, fixtures: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, fixtures.to_string()).unwrap();
        let mut process = Command::new(program)
            .args(["--port", "0", "--strict", "--validate-on-load", "--fixtures"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let listening = async {
            loop {
                let line =
                    lines.next_line().await.unwrap().expect("aimock says where it listens before it ends");
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.trim().to_owned();
                }
            }
        };
        let url = tokio::time::timeout(Duration::from_secs(30), listening).await.expect("aimock starts");
        // Its pipe must not fill up.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url, _process: process, _fixtures: folder }
    }
}

fn fixtures(usage: Option<&Value>) -> Value {
    let usage = usage.cloned().unwrap_or_else(|| json!({}));
    let task =
        |id: &str, agent: &str| json!({ "id": id, "name": "task", "arguments": { "subagent_type": agent } });
    json!({ "fixtures": [
        { "match": { "userMessage": "hello" }, "chunkSize": 5, "response": { "content": SENTENCE, "usage": usage } },
        { "match": { "userMessage": "compare", "hasToolResult": true }, "response": { "content": "Both are open.", "usage": usage } },
        { "match": { "userMessage": "compare" }, "chunkSize": 3, "response": {
            "toolCalls": [task("call_jira", "jira"), task("call_github", "github")], "usage": usage } },
        { "match": { "userMessage": "limited" }, "response": {
            "error": { "message": "slow down", "type": "rate_limit_error" }, "status": 429, "retryAfter": 7 } },
        { "match": { "userMessage": "cut" }, "chunkSize": 5, "latency": 20, "truncateAfterChunks": 3,
          "response": { "content": SENTENCE } },
    ] })
}

/// Everything that a turn can be, on one wire.
async fn holds(wire: Wire) {
    let Some(program) = program() else { return };
    let aimock = Aimock::start(&program, &fixtures(wire.usage.as_ref())).await;
    let mut variables = (wire.variables)(&aimock.url);
    variables.insert("MAX_LLM_RETRIES".into(), "0".into());
    let model = model(&variables);

    streams_text(&wire, &*model).await;
    calls_tools_in_parallel(&wire, &*model).await;
    fails(&wire, &*model).await;
}

async fn streams_text(wire: &Wire, model: &dyn caipe_model::ChatModel) {
    let (events, end) = run(model, ask("hello")).await;
    let completion = end.unwrap_or_else(|error| panic!("{}: {error}", wire.name));
    assert_eq!(text(&events), SENTENCE, "{}", wire.name);
    assert!(events.len() > 2, "{}: it streams: {events:?}", wire.name);
    assert_eq!(completion.message.plain_text(), SENTENCE, "{}", wire.name);
    assert_eq!(completion.reason, FinishReason::Stop, "{}", wire.name);
    let expected = if wire.usage.is_some() { (21, 8) } else { (0, 0) };
    assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), expected, "{}", wire.name);
    assert_eq!(completion.model, model.name(), "{}", wire.name);
}

async fn calls_tools_in_parallel(wire: &Wire, model: &dyn caipe_model::ChatModel) {
    let mut request = ask("compare");
    let (events, end) = run(model, request.clone()).await;
    let completion = end.unwrap_or_else(|error| panic!("{}: {error}", wire.name));
    let made = calls(&completion);
    assert_eq!(streamed_calls(&events), made, "{}", wire.name);
    assert_eq!(completion.reason, FinishReason::ToolCalls, "{}", wire.name);
    let agents: Vec<Value> = made
        .iter()
        .map(|call| serde_json::from_str::<Value>(&call.arguments).unwrap()["subagent_type"].take())
        .collect();
    assert_eq!(agents, ["jira", "github"], "{}", wire.name);
    assert!(
        made.iter().all(|call| call.name == "task") && made[0].id != made[1].id,
        "{}: {made:?}",
        wire.name
    );
    if wire.keeps_ids {
        assert_eq!(
            made.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(),
            ["call_jira", "call_github"],
            "{}",
            wire.name
        );
    }

    // The results go back, and the answer comes.
    request.messages.push(Arc::new(completion.message));
    let results = made.iter().map(|call| ToolResult {
        call_id: call.id.clone(),
        content: "3 open".into(),
        is_error: false,
    });
    request.messages.push(Arc::new(Message::results(results)));
    let (events, end) = run(model, request).await;
    assert_eq!(text(&events), "Both are open.", "{}: {end:?}", wire.name);
}

async fn fails(wire: &Wire, model: &dyn caipe_model::ChatModel) {
    let error = run(model, ask("limited")).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimited, "{}: {error}", wire.name);
    assert!(error.message.contains("slow down"), "{}: {error}", wire.name);
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{}: {error}", wire.name);

    let (events, end) = run(model, ask("cut")).await;
    let error = end.expect_err("half an answer is not an answer");
    assert!(
        matches!(error.kind, ModelErrorKind::Transport | ModelErrorKind::Truncated),
        "{}: {error}",
        wire.name
    );
    let shown = text(&events);
    assert!(SENTENCE.starts_with(&shown) && shown.len() < SENTENCE.len(), "{}: {shown:?}", wire.name);
}

fn openai_usage() -> Value {
    json!({ "prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 29 })
}

#[tokio::test]
async fn openai() {
    let variables: fn(&str) -> Env = |url| {
        env(&[
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_ENDPOINT", &format!("{url}/v1")),
            ("OPENAI_MODEL_NAME", "gpt-4o"),
        ])
    };
    holds(Wire { name: "openai", variables, usage: Some(openai_usage()), keeps_ids: true }).await;
}

#[tokio::test]
async fn azure_classic() {
    let variables: fn(&str) -> Env = |url| {
        env(&[
            ("AZURE_OPENAI_API_KEY", KEY),
            ("AZURE_OPENAI_ENDPOINT", url),
            ("AZURE_OPENAI_DEPLOYMENT", "gpt-4o"),
            ("AZURE_OPENAI_API_VERSION", "2024-10-21"),
        ])
    };
    holds(Wire { name: "azure classic", variables, usage: Some(openai_usage()), keeps_ids: true }).await;
}

#[tokio::test]
async fn azure_v1() {
    let variables: fn(&str) -> Env = |url| {
        env(&[
            ("AZURE_OPENAI_API_KEY", KEY),
            ("AZURE_OPENAI_ENDPOINT", url),
            ("AZURE_OPENAI_DEPLOYMENT", "gpt-4o"),
        ])
    };
    holds(Wire { name: "azure v1", variables, usage: Some(openai_usage()), keeps_ids: true }).await;
}

#[tokio::test]
async fn anthropic() {
    let variables: fn(&str) -> Env = |url| env(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", url)]);
    let usage = json!({ "input_tokens": 21, "output_tokens": 8 });
    holds(Wire { name: "anthropic", variables, usage: Some(usage), keeps_ids: true }).await;
}

#[tokio::test]
async fn gemini() {
    let variables: fn(&str) -> Env = |url| env(&[("GOOGLE_API_KEY", KEY), ("GOOGLE_GEMINI_BASE_URL", url)]);
    let usage = json!({ "promptTokenCount": 21, "candidatesTokenCount": 8, "totalTokenCount": 29 });
    holds(Wire { name: "gemini", variables, usage: Some(usage), keeps_ids: false }).await;
}

#[tokio::test]
async fn bedrock() {
    let variables: fn(&str) -> Env = |url| {
        env(&[
            ("AWS_BEARER_TOKEN_BEDROCK", KEY),
            ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url),
            ("AWS_BEDROCK_MODEL_ID", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ])
    };
    let usage = json!({ "input_tokens": 21, "output_tokens": 8 });
    holds(Wire { name: "bedrock", variables, usage: Some(usage), keeps_ids: true }).await;
}

#[tokio::test]
async fn ollama() {
    let variables: fn(&str) -> Env = |url| env(&[("OLLAMA_MODEL_NAME", "qwen3"), ("OLLAMA_HOST", url)]);
    holds(Wire { name: "ollama", variables, usage: None, keeps_ids: false }).await;
}

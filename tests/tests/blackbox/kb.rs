//! The embedded knowledge base: two commands, and agents can search documents.

mod sources;

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::sdk::with_packages;
use caipe_tests::supervisor::{Setup, until};
use caipe_tests::{peers, programs};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Runs `kb` with these arguments: what it prints.
async fn kb(setup: &Setup, arguments: &[&str]) -> Result<String> {
    let output = setup.run(&[&["kb"], arguments].concat()).await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kb {arguments:?}: {errors}");
    Ok(String::from_utf8(output.stdout)? + &errors)
}

/// `kb serve`, killed when dropped, and its base URL.
async fn serve(setup: &Setup, arguments: &[&str]) -> Result<(Child, String)> {
    let file = setup.dir().join("kb-address");
    let path = file.to_str().context("a path")?;
    let command = [&["kb", "serve", "--listen", "127.0.0.1:0", "--address-file", path], arguments].concat();
    let child = setup.command(&command)?.stderr(Stdio::null()).spawn()?;
    let address = || std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
    until("it listens", async || Ok(!address().is_empty())).await?;
    Ok((child, format!("http://{}", address())))
}

/// What the official Python SDK observes of these calls, or `None` if it is not installed: the tools, then the results.
async fn python_client(url: &str, calls: &Value, key: Option<&str>) -> Result<Option<Vec<Value>>> {
    let Some(python) = peers::py("python") else { return Ok(None) };
    let mut command = with_packages(Command::new(python));
    command.arg(programs::workspace().join("fixtures/mcp-peers/client.py"));
    command.args([&format!("{url}/mcp"), &calls.to_string()]).args(key).kill_on_drop(true);
    let output = command.output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    Ok(Some(lines.map(serde_json::from_str).collect::<Result<_, _>>()?))
}

fn docs() -> Result<String> {
    programs::workspace().join("docs").into_os_string().into_string().ok().context("a path")
}

fn ids(results: &str) -> Result<Vec<String>> {
    let lines = results.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()?;
    Ok(lines.iter().filter_map(|hit| hit["document_id"].as_str()).map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_searched_with_two_commands() -> Result<()> {
    let setup = Setup::new()?;
    let added = kb(&setup, &["add", &docs()?]).await?;
    ensure!(added.starts_with("docs: ") && added.contains("0 changed, 0 removed, 0 unchanged"), "{added}");
    ensure!(kb(&setup, &["add"]).await?.contains("docs: 0 added, 0 changed, 0 removed"));
    let found = kb(&setup, &["search", "-o", "json", "How do I rotate the keys of clients?"]).await?;
    ensure!(ids(&found)?[0] == "docs/operations.md#rotate-keys-and-secrets", "{found}");
    let (_server, url) = serve(&setup, &[]).await?;
    let health: Value = reqwest::get(format!("{url}/healthz")).await?.json().await?;
    ensure!(health["status"] == "healthy" && health["config"]["graph_rag_enabled"] == false, "{health}");
    let search = json!(["search", {"query": "rotate the keys", "limit": 3, "thought": "asked"}]);
    let fetch = json!(["fetch_document", {"document_id": "docs/operations.md#rotate-keys-and-secrets", "thought": "best"}]);
    let list = json!(["list_datasources_and_entity_types", {"thought": "first"}]);
    let wrong = json!(["fetch_document", {"document_id": "docs/nothing.md"}]);
    let Some(seen) = python_client(&url, &json!([search, fetch, list, wrong]), None).await? else {
        return Ok(());
    };
    let [tools, searched, fetched, listed, refused] = &seen[..] else { anyhow::bail!("{seen:?}") };
    let names: Vec<&str> =
        tools["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["search", "fetch_document", "list_datasources_and_entity_types"]);
    ensure!(tools["tools"][0]["annotations"]["readOnlyHint"] == true, "{tools}");
    let results = &searched["structuredContent"];
    ensure!(results["keyword_results"].as_array().is_some_and(|hits| hits.len() == 3), "{searched}");
    ensure!(
        results["keyword_results"][0]["metadata"]["title"] == "How do I operate supervisors day to day?",
        "{results}"
    );
    let text = fetched["content"][0]["text"].as_str().context("no text")?;
    ensure!(text.starts_with("## Rotate keys and Secrets") && text.chars().count() <= 10_000, "{text}");
    ensure!(listed["structuredContent"]["datasources"][0]["datasource_id"] == "docs", "{listed}");
    ensure!(refused["isError"] == true, "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_what_is_added_and_removed() -> Result<()> {
    let setup =
        Setup::new()?.file("first.md", "# First\n\nAbout alpha.\n")?.file("second.txt", "About beta.")?;
    kb(&setup, &["add", "first.md"]).await?;
    let (_server, url) = serve(&setup, &[]).await?;
    let search = async |word: &str| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": word}}});
        let request = reqwest::Client::new()
            .post(format!("{url}/mcp"))
            .header("accept", "application/json, text/event-stream");
        let answer: Value =
            request.header("mcp-protocol-version", "2025-06-18").json(&call).send().await?.json().await?;
        let results = answer["result"]["structuredContent"]["keyword_results"].clone();
        Ok::<_, anyhow::Error>(results.as_array().with_context(|| answer.to_string())?.len())
    };
    assert_eq!((search("alpha").await?, search("beta").await?), (1, 0));
    kb(&setup, &["add", "second.txt", "--name", "notes"]).await?;
    ensure!(kb(&setup, &["remove", "first.md"]).await?.contains("first.md: 1 removed"));
    assert_eq!((search("alpha").await?, search("beta").await?), (0, 1));
    ensure!(kb(&setup, &["list"]).await?.starts_with("notes: 1 documents of "));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_a_key_is_needed() -> Result<()> {
    let setup = Setup::new()?.file("a.md", "About alpha.")?;
    kb(&setup, &["add", "a.md"]).await?;
    let output = setup.run(&["kb", "serve", "--listen", "0.0.0.0:0"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && words.contains("CAIPE_KB_KEY"), "{words}");
    let http = reqwest::Client::new();
    let status = async |url: &str, name: &str, value: &str| {
        let request = http.post(format!("{url}/mcp")).header(name, value).json(&json!({}));
        Ok::<_, anyhow::Error>(request.send().await?.status().as_u16())
    };
    let (open, url) = serve(&setup, &[]).await?;
    assert_eq!(status(&url, "origin", "https://evil.example").await?, 403);
    assert_eq!(status(&url, "host", "rebound.example").await?, 403);
    drop(open);
    std::fs::remove_file(setup.dir().join("kb-address"))?;
    let setup = setup.env("CAIPE_KB_KEY", "a-key-of-enough-letters");
    let (_closed, url) = serve(&setup, &[]).await?;
    assert_eq!(status(&url, "authorization", "Bearer wrong").await?, 401);
    assert_eq!(http.get(format!("{url}/healthz")).send().await?.status().as_u16(), 200);
    let calls = json!([["search", {"query": "alpha"}]]);
    if let Some(seen) = python_client(&url, &calls, Some("a-key-of-enough-letters")).await? {
        ensure!(
            seen[1]["structuredContent"]["keyword_results"][0]["metadata"]["document_id"] == "a.md",
            "{seen:?}"
        );
    }
    Ok(())
}

/// The supervisor sends the key of `headersFrom`, and its answer names the document that the model read.
#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_answers_from_a_knowledge_base_with_a_key() -> Result<()> {
    let key = "a-key-of-enough-letters";
    let setup = Setup::new()?.file("slim.md", "# SLIM\n\nA protocol of agents.\n")?.env("CAIPE_KB_KEY", key);
    kb(&setup, &["add", "slim.md"]).await?;
    let (_server, url) = serve(&setup, &[]).await?;
    let secret = json!({"name": "documents", "key": "KB_KEY"});
    let header = json!({"name": "Authorization", "prefix": "Bearer ", "secretKeyRef": secret});
    let fetch = json!({"name": "fetch_document", "arguments": {"document_id": "slim.md"}});
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .set("rag", json!({"url": url, "headersFrom": [header]}))
        .turn(json!({"result_contains": "protocol"}), answer("A protocol."))
        .turn(json!({"user": "*"}), json!({"calls": [fetch]}));
    let supervisor = scenario.setup()?.env("KB_KEY", key).start().await?;
    assert_eq!(supervisor.ask("what is slim?").await?.result()?, "A protocol.\n\n**Sources**\n\n1. slim.md");
    Ok(())
}

/// Kills the update at several moments; whatever they are, the documents of before are found, and the next update succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_update_loses_nothing() -> Result<()> {
    let setup = Setup::new()?.file("before.md", "About alpha.")?;
    kb(&setup, &["add", "before.md"]).await?;
    let folder = setup.dir().join("many");
    std::fs::create_dir(&folder)?;
    for number in 0..400 {
        std::fs::write(folder.join(format!("{number}.md")), format!("# Page {number}\n\nAbout omega.\n"))?;
    }
    for written in [0, 3, 6] {
        let mut child = setup.command(&["kb", "add", "many"])?.stdout(Stdio::null()).spawn()?;
        let files =
            || std::fs::read_dir(setup.dir().join(".caipe/knowledge-base/index")).map_or(0, Iterator::count);
        let before = files();
        until("it has begun to write, or has ended", async || {
            Ok(files() >= before + written
                || child.id().is_none_or(|pid| !Path::new(&format!("/proc/{pid}/fd/1")).exists()))
        })
        .await?;
        child.kill().await?;
        let found = kb(&setup, &["search", "-o", "json", "alpha"]).await?;
        assert_eq!(ids(&found)?, ["before.md"]);
    }
    let added = kb(&setup, &["add", "many"]).await?;
    ensure!(added.contains("0 removed"), "{added}");
    assert_eq!(ids(&kb(&setup, &["search", "-o", "json", "omega"]).await?)?.len(), 5);
    Ok(())
}

/// A provider of embeddings for which cars and automobiles are the same; it wants a key. Its base URL.
async fn embeddings() -> Result<String> {
    let answer = async |headers: HeaderMap, Json(body): Json<Value>| {
        if headers.get("authorization").is_none_or(|key| key != "Bearer embedding-key") {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let texts = body["input"].as_array().cloned().unwrap_or_default();
        let is_car = |text: &Value| {
            ["car", "automobile"].iter().any(|word| text.as_str().is_some_and(|it| it.contains(word)))
        };
        let vector = |text: &Value| if is_car(text) { json!([1.0, 0.1]) } else { json!([0.1, 1.0]) };
        let data = texts.iter().enumerate().map(|(at, text)| json!({"index": at, "embedding": vector(text)}));
        Ok(Json(json!({"data": data.collect::<Vec<_>>()})))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/v1/embeddings", post(answer))).await },
    );
    Ok(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_of_a_provider_find_other_words() -> Result<()> {
    let setup = Setup::new()?
        .file("garage.md", "# Garage\n\nThe automobile is red.\n")?
        .file("kitchen.md", "# Kitchen\n\nThe stove is hot.\n")?
        .env("CAIPE_KB_EMBEDDINGS_URL", &embeddings().await?)
        .env("CAIPE_KB_EMBEDDINGS_MODEL", "cars")
        .env("CAIPE_KB_EMBEDDINGS_KEY", "embedding-key");
    let added = kb(&setup, &["add", "garage.md", "kitchen.md"]).await?;
    ensure!(added.contains("1 chunks embedded, about ") && added.contains("embedded with cars"), "{added}");
    ensure!(!added.contains("embedding-key"), "{added}");
    let found = kb(&setup, &["search", "car", "--limit", "1", "--output", "json"]).await?;
    ensure!(ids(&found)?.iter().all(|id| id.ends_with("garage.md")) && !ids(&found)?.is_empty(), "{found}");
    let words_only = kb(&setup, &["search", "car", "--embeddings-model", ""]).await?;
    ensure!(words_only.contains("nothing found"), "{words_only}");
    let (server, url) = serve(&setup, &[]).await?;
    let call = json!([["search", {"query": "car", "limit": 1}]]);
    if let Some(results) = python_client(&url, &call, None).await? {
        ensure!(json!(results).to_string().contains("garage.md"), "{results:?}");
    }
    drop(server);
    Ok(())
}

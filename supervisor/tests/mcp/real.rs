//! Servers that others wrote, of two languages and two eras of the protocol.
//!
//! They are looked for under `$CAIPE_PEERS` (`.cache/peers` in the workspace), in `py/bin` and `npm/node_modules/.bin`. A test whose
//! server is absent reports that it is skipped.

use std::path::{Path, PathBuf};

use caipe_fixtures::requirements::Requirement;
use caipe_supervisor::mcp::{ServerSpec, Transport};
use serde_json::{Map, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use crate::harness::tests;
use crate::support::{Bench, eventually, message, names, notes, state_file, status};

tests![time, git, everything, filesystem, stateless_over_stdio, stateless_over_http];

/// A server on the official Python SDK.
pub(crate) const MODERN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/modern.py");

pub(crate) fn peer(path: &str) -> Option<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/peers");
    let peers = std::env::var_os("CAIPE_PEERS").map_or(workspace, PathBuf::from);
    let program = peers.join(path);
    if program.exists() {
        return Some(program.to_str().unwrap().to_owned());
    }
    Requirement::Peers.unmet(&format!("{} is not installed", program.display()));
    None
}

async fn start(name: &str, program: String, arguments: &[&str]) -> Bench {
    let bench =
        Bench::settled([ServerSpec::new(name, Transport::stdio(program, arguments.iter().copied()))]).await;
    let view = bench.toolbox.view();
    assert_eq!(status(&view, name).message, None, "{}", message(&view, name));
    bench
}

async fn time() {
    let Some(program) = peer("py/bin/mcp-server-time") else { return };
    let bench = start("time", program, &["--local-timezone", "Europe/Berlin"]).await;
    let view = bench.toolbox.view();
    assert_eq!(names(&view), ["convert_time", "get_current_time"]);
    assert_eq!(status(&view, "time").protocol_version.as_deref(), Some("2026-07-28"));
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    assert!(bench.ask("convert_time", arguments).await.contains("21:00:00+09:00"));
    assert!(
        bench.refusal("get_current_time", json!({"timezone": "Mars/Olympus"})).await.contains("Mars/Olympus")
    );
    bench.finish().await;
}

async fn git() {
    let Some(program) = peer("py/bin/mcp-server-git") else { return };
    let repository = tempfile::tempdir().unwrap();
    let path = repository.path().to_str().unwrap();
    let init = tokio::process::Command::new("git").args(["init", "-q", path]).status().await.unwrap();
    assert!(init.success());
    let bench = start("git", program, &["--repository", path]).await;
    std::fs::write(repository.path().join("new.txt"), "new").unwrap();
    assert!(bench.ask("git_status", json!({"repo_path": path})).await.contains("new.txt"));
    assert!(!bench.refusal("git_status", json!({"repo_path": "/no/such/repository"})).await.is_empty());
    bench.finish().await;
}

async fn everything() {
    let Some(program) = peer("npm/node_modules/.bin/mcp-server-everything") else { return };
    let bench = start("everything", program, &["stdio"]).await;
    assert_eq!(status(&bench.toolbox.view(), "everything").protocol_version.as_deref(), Some("2025-11-25"));
    assert!(bench.ask("echo", json!({"message": "hi"})).await.contains("hi"));
    assert!(
        bench.ask("get-structured-content", json!({"location": "New York"})).await.contains("temperature")
    );
    assert!(bench.ask("get-tiny-image", json!({})).await.contains("[image, image/png"));
    bench.finish().await;
}

async fn filesystem() {
    let Some(program) = peer("npm/node_modules/.bin/mcp-server-filesystem") else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    std::fs::write(path.join("note.txt"), "remember the milk").unwrap();
    let bench = start("files", program, &[path.to_str().unwrap()]).await;
    let note = path.join("note.txt").to_str().unwrap().to_owned();
    // Only this server has `read_text_file`; its `write_file` is also the name of a built-in tool.
    assert_eq!(bench.ask("read_text_file", json!({"path": note})).await, "remember the milk");
    assert!(names(&bench.toolbox.view()).contains(&"files_write_file"));
    assert!(bench.refusal("read_text_file", json!({"path": "/etc/hostname"})).await.contains("denied"));
    bench.finish().await;
}

async fn stateless_over_stdio() {
    let Some(python) = peer("py/bin/python") else { return };
    let (_directory, path, state) = state_file();
    let bench = start("modern", python, &[MODERN, "stdio", &state]).await;
    speaks_the_stateless_protocol(&bench, &path).await;
    bench.finish().await;
}

async fn stateless_over_http() {
    let Some(python) = peer("py/bin/python") else { return };
    let (_directory, path, state) = state_file();
    let mut command = tokio::process::Command::new(python);
    command.args([MODERN, "http", &state]).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let bench = Bench::settled([ServerSpec::new("modern", Transport::http(url))]).await;
    speaks_the_stateless_protocol(&bench, &path).await;
    bench.finish().await;
    server.kill().await.unwrap();
}

async fn speaks_the_stateless_protocol(bench: &Bench, path: &PathBuf) {
    let view = bench.toolbox.view();
    let status = status(&view, "modern");
    assert_eq!(status.protocol_version.as_deref(), Some("2026-07-28"), "{:?}", status.message);
    assert_eq!(names(&view), ["echo", "grow", "hang"]);
    assert_eq!(bench.ask("echo", json!({"text": "hi"})).await, "hi");
    tokio::select! {
        output = bench.toolbox.call("hang", Map::new(), CancellationToken::new()) => panic!("{}", output.content),
        () = eventually(|| notes(path).contains("called")) => {}
    }
    eventually(|| notes(path).contains("cancelled")).await;
    bench.ask("grow", json!({})).await;
    bench.until(|view| names(view).contains(&"grown")).await;
    assert_eq!(bench.ask("grown", json!({"text": "grown"})).await, "grown");
}

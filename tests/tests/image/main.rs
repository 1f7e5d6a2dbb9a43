//! The image, seen as a container engine sees it: its program runs with nothing but the image's own files.
//!
//! `make image-test` builds the image first; without one these tests pass and say so.

mod names;
mod tls;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use caipe_tests::image::{Unpacked, archive};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Setup;
use serde_json::Value;

/// The image, if there is one and it can be run here.
fn image() -> Result<Option<Arc<Unpacked>>> {
    let Some(archive) = archive() else { return Ok(None) };
    Ok(Unpacked::new(&archive)?.map(Arc::new))
}

#[test]
fn it_is_small_and_runs_as_nobody() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    ensure!(image.compressed() < 30_000_000, "{} bytes", image.compressed());
    let config = &image.config()["config"];
    assert_eq!(config["User"], "65532:65532");
    let passwd = std::fs::read_to_string(image.root().join("etc/passwd"))?;
    ensure!(passwd.contains(":65532:65532:"), "{passwd}");
    for writable in ["data", "tmp"] {
        ensure!(image.root().join(writable).is_dir(), "{writable} is missing");
    }
    Ok(())
}

#[test]
fn it_runs_under_each_of_its_names() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    for (command, expected) in [
        (vec!["/usr/local/bin/caipe-supervisor", "--version"], "caipe-supervisor "),
        (vec!["/usr/local/bin/platform-engineer", "--help"], "--listen"),
        (vec!["/usr/local/bin/platform-engineer-single", "--help"], "--listen"),
        (vec!["/usr/local/bin/caipe-supervisor", "platform-engineer", "--help"], "--listen"),
        (vec!["/usr/local/bin/caipe-supervisor", "card"], "\"protocolVersion\""),
        (vec!["/usr/local/bin/caipe-operator", "--version"], "caipe-operator "),
        (vec!["/usr/local/bin/caipe-operator", "crd"], "kind: CustomResourceDefinition"),
        (vec!["/usr/local/bin/caipe-operator", "run", "--help"], "--leader-election"),
    ] {
        let output = image.run_alone(&command)?;
        let text = String::from_utf8(output.stdout)?;
        ensure!(output.status.success() && text.contains(expected), "{command:?}: {text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_checks_files() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    let setup = Setup::of("kind: Nothing", "turns: []")?.of_image(&image);
    let file = setup.dir().join("supervisor.yaml");
    let output = setup.run(&["check", "-f", file.to_str().context("an odd path")?]).await?;
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    ensure!(output.status.code() == Some(1) && words.contains("kind"), "{:?}: {words}", output.status);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_over_a2a_and_remembers() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    let scenario = Scenario::new().answers("hello", "Hello from the image.");
    let supervisor = scenario.set("agents", serde_json::json!([])).setup()?.of_image(&image).start().await?;
    let answer = supervisor.ask("hello").await?;
    assert_eq!(answer.result()?, "Hello from the image.");
    let (status, card) = supervisor.get("/.well-known/agent-card.json").await?;
    let card: Value = serde_json::from_str(&card)?;
    ensure!(status == 200 && card["name"].is_string(), "{status}: {card}");
    ensure!(supervisor.setup().dir().join("data/caipe.sqlite3").exists(), "nothing was saved");
    assert_eq!(supervisor.stop().await?, Some(0), "it stops when it is told to");
    Ok(())
}

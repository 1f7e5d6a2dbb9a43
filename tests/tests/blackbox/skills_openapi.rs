//! The skills API does what its `OpenAPI` document says, which Schemathesis checks with generated requests.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::routing::get;
use axum::{Json, Router};
use caipe_tests::peers;
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

const KEY: &str = "a-key-of-more-than-16-characters";

/// The operations of the API.
const OPERATIONS: usize = 11;

/// A schema cannot state the format of a `SKILL.md`, so the server refuses most texts that the schema permits.
const CONFIGURATION: &str =
    "[[operations]]\ninclude-operation-id = \"add\"\nchecks.positive_data_acceptance.enabled = false\n";

/// A GitHub API where each repository is empty.
async fn github() -> Result<String> {
    let tree = get(async || Json(json!({"tree": []})));
    let routes = Router::new().route("/repos/{owner}/{name}/git/trees/{revision}", tree);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}

/// Sends valid and invalid requests with this header to each operation of the document.
async fn check(supervisor: &Supervisor, schemathesis: &Path, header: &str) -> Result<()> {
    let mut command = Command::new(schemathesis);
    command.args(["--config-file=schemathesis.toml", "run", "openapi.json", "--header", header, "--url"]);
    command.arg(supervisor.url()).args([
        "--seed=1",
        "--max-examples=10",
        "--continue-on-failure",
        "--no-color",
    ]);
    command.args(["--generation-database=none", "--suppress-health-check=all"]);
    let running = command.current_dir(supervisor.setup().dir()).kill_on_drop(true).output();
    let output = timeout(Duration::from_mins(1), running).await.context("Schemathesis did not end")??;
    let text = String::from_utf8_lossy(&output.stdout);
    let tested = format!("Tested: {OPERATIONS}\n");
    ensure!(output.status.success() && text.contains(&tested), "with {header}: {text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skills_api_conforms_to_its_openapi_document() -> Result<()> {
    let Some(python) = peers::python("py-schemathesis") else { return Ok(()) };
    let schemathesis = python.with_file_name("schemathesis");
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .set("skills", json!({}))
        .turn(json!({"user": "*"}), answer("Done."));
    let setup = scenario.setup()?.env("A2A_AUTH_SHARED_KEY", KEY).env("GITHUB_API_URL", github().await?);
    let supervisor = setup.file("schemathesis.toml", CONFIGURATION)?.start_unready().await?;
    let url = |path: &str| format!("{}{path}", supervisor.url().trim_end_matches('/'));
    let http = reqwest::Client::new();
    let document = http.get(url("/openapi.json")).bearer_auth(KEY).send().await?.error_for_status()?;
    std::fs::write(supervisor.setup().dir().join("openapi.json"), document.bytes().await?)?;
    let made = http.post(url("/catalog-api-keys")).bearer_auth(KEY).send().await?.error_for_status()?;
    let made: Value = made.json().await?;
    let catalog_key = made["key"].as_str().context("a key")?;
    for header in [format!("Authorization: Bearer {KEY}"), format!("X-Caipe-Catalog-Key: {catalog_key}")] {
        check(&supervisor, &schemathesis, &header).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_read_gets_an_error_of_the_document() -> Result<()> {
    let supervisor = Scenario::new().set("agents", json!([])).setup()?.start_unready().await?;
    let url = |path: &str| format!("{}{path}", supervisor.url().trim_end_matches('/'));
    let http = reqwest::Client::new();
    for (method, path) in
        [("GET", "/skills/%FF"), ("DELETE", "/skills/%FF"), ("DELETE", "/catalog-api-keys/%FF")]
    {
        let response = http.request(method.parse()?, url(path)).send().await?;
        assert_eq!(response.status(), 422, "{method} {path}");
        assert_eq!(response.json::<Value>().await?["detail"][0]["loc"], json!(["path"]), "{method} {path}");
    }
    let large = vec![b' '; 5 << 20];
    let response = http.post(url("/catalog-api-keys")).body(large).send().await?;
    assert_eq!(response.status(), 413);
    assert_eq!(response.json::<Value>().await?, json!({"detail": "the request has more than 4 MiB"}));
    Ok(())
}

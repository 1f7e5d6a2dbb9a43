//! Web pages of other origins that may call, and those that may not.

use anyhow::{Context, Result, ensure};
use caipe_tests::migration_scenario::edit;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, message};
use reqwest::Method;
use serde_json::json;

const KEY: &str = "s3cret";

fn allowing(origins: &[&str]) -> Result<Setup> {
    let scenario = Scenario::new().answers("*", "Hello.").set("server", json!({"corsOrigins": origins}));
    Ok(scenario.setup()?.env("A2A_AUTH_SHARED_KEY", KEY))
}

/// What a browser asks before a page of this origin may send a message: the status, and the origin that may.
async fn preflight(supervisor: &Supervisor, origin: &str) -> Result<(u16, Option<String>)> {
    let request = reqwest::Client::new().request(Method::OPTIONS, supervisor.url()).header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    let request =
        request.header("access-control-request-headers", "authorization,content-type,last-event-id");
    let answer = request.send().await?;
    let header = |name: &str| anyhow::Ok(answer.headers().get(name).map(|value| value.to_str()).transpose()?);
    let allowed = header("access-control-allow-origin")?.map(str::to_owned);
    if allowed.is_some() {
        let headers = header("access-control-allow-headers")?.context("no header may be sent")?;
        ensure!(headers.contains("authorization") && headers.contains("last-event-id"), "{headers}");
        assert_eq!(header("access-control-allow-methods")?, Some("POST"));
    }
    Ok((answer.status().as_u16(), allowed))
}

async fn may_call(supervisor: &Supervisor, origin: &str) -> Result<bool> {
    match preflight(supervisor, origin).await? {
        (200, Some(allowed)) if allowed == origin => Ok(true),
        (403, None) => Ok(false),
        other => anyhow::bail!("the preflight of {origin} answers {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_says_which_pages_may_call_and_is_followed() -> Result<()> {
    let (ui, portal) = ("http://localhost:3000", "https://portal.example.com");
    let setup = allowing(&[ui])?;
    let supervisor = setup.start().await?;
    ensure!(may_call(&supervisor, ui).await? && !may_call(&supervisor, portal).await?);
    for (origin, expected) in [(ui, 200), (portal, 403)] {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message("hi", None)});
        let request = reqwest::Client::new().post(supervisor.url()).bearer_auth(KEY).json(&body);
        let answer = request.header("origin", origin).send().await?;
        assert_eq!(answer.status().as_u16(), expected, "{origin}");
        let allowed = answer.headers().get("access-control-allow-origin");
        assert_eq!(allowed.is_some(), expected == 200, "{origin}: the page may read the answer");
    }
    edit(&setup, |spec| spec["server"] = json!({"corsOrigins": [portal]}))?;
    supervisor.until("the other pages may call", async || may_call(&supervisor, portal).await).await?;
    ensure!(!may_call(&supervisor, ui).await?, "no longer");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_comes_before_the_resource() -> Result<()> {
    let (ui, portal) = ("http://localhost:3000", "https://portal.example.com");
    let setup = allowing(&[portal])?.env("CAIPE_CORS_ORIGINS", ui);
    let supervisor = setup.start().await?;
    ensure!(may_call(&supervisor, ui).await? && !may_call(&supervisor, portal).await?);
    edit(&setup, |spec| spec["card"] = json!({"name": "Another"}))?;
    let renamed =
        async || Ok(supervisor.get("/.well-known/agent-card.json").await?.1.contains("\"Another\""));
    supervisor.until("the resource is taken", renamed).await?;
    ensure!(may_call(&supervisor, ui).await? && !may_call(&supervisor, portal).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_an_origin_is_refused() -> Result<()> {
    for wrong in ["*", "https://*.example.com", "http://localhost:3000/", "https://portal.example.com/ui"] {
        let output =
            allowing(&[])?.run(&["serve", "--listen", "127.0.0.1:0", "--cors-origin", wrong]).await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && words.contains("invalid web origin"), "{wrong}: {words}");

        let output = allowing(&[wrong])?.run(&["check", "-f", "supervisor.yaml"]).await?;
        let words = format!("{output:?}");
        ensure!(!output.status.success() && words.contains("spec.server.corsOrigins[0]"), "{wrong}: {words}");
        ensure!(words.contains("must be a web origin"), "{wrong}: {words}");
    }
    Ok(())
}

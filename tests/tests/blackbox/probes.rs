//! What a platform asks: is it alive, can it answer, what has it got.

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, processes_with};
use serde_json::{Value, json};

use crate::echo;

#[tokio::test(flavor = "multi_thread")]
async fn it_is_alive_before_it_is_ready_and_ready_once_tools_have_settled() -> Result<()> {
    // A server that never answers: it settles only at its deadline.
    let silent = json!([{"name": "silent", "stdio": {"command": "sleep", "args": ["1000"]}}]);
    let scenario =
        echo(&["jira"])?.agent_with("mute", silent).set("limits", json!({"mcpStartTimeoutSeconds": 2}));
    let supervisor = scenario.answers("*", "Hello.").setup()?.start_unready().await?;

    assert_eq!(supervisor.get("/health").await?.0, 200);
    let (code, body) = supervisor.get("/ready").await?;
    assert_eq!(code, 503, "{body}");
    ensure!(body.contains("mute"), "it does not say what it waits for: {body}");

    supervisor.until_ready().await?;
    assert_eq!(supervisor.ask("hi").await?.result()?, "Hello.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_by_agent() -> Result<()> {
    let scenario = echo(&["jira"])?
        .agent_with("broken", json!([{"name": "x", "stdio": {"command": "caipe-no-such-program"}}]));
    let supervisor = scenario.answers("*", "Hello.").setup()?.start().await?;
    let (code, body) = supervisor.get("/tools").await?;
    let tools: Value = serde_json::from_str(&body)?;
    assert_eq!(code, 200);
    let of = |agent: &str| tools["tools"][agent].as_array().cloned().unwrap_or_default();
    ensure!(of("jira").contains(&json!("echo")), "{body}");
    assert_eq!(of("broken"), Vec::<Value>::new(), "{body}");
    let why = tools["faults"]["broken"][0].as_str().unwrap_or_default();
    ensure!(why.contains("caipe-no-such-program") && tools["faults"]["jira"].is_null(), "{body}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_tool_is_reported_and_the_other_tools_work() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let scenario = Scenario::new().agent("jira", &server, &["--mode", "malformed-tools"]);
    let supervisor = scenario.answers("*", "Hello.").setup()?.start().await?;
    let (_, tools) = supervisor.get("/tools").await?;
    let tools: Value = serde_json::from_str(&tools)?;
    let offered = tools["tools"]["jira"].as_array().cloned().unwrap_or_default();
    ensure!(offered.contains(&json!("echo")) && !offered.contains(&json!("bare")), "{tools}");
    let status: Value = serde_json::from_str(&supervisor.get("/internal/status").await?.1)?;
    assert_eq!(status["agents"][0]["phase"], "Ready", "{status}");
    let listed = Setup::new()?.run(&["agents", "--url", supervisor.url()]).await?;
    let listed = String::from_utf8(listed.stdout)?;
    let fault = "tool \"bare\" is ignored: missing field `inputSchema`";
    for text in [tools["faults"]["jira"].to_string(), status["warnings"].to_string(), listed] {
        ensure!(text.replace('\\', "").contains(fault), "{text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_paths_of_the_card_describe_it() -> Result<()> {
    let supervisor = Scenario::new().answers("*", "Hello.").setup()?.start().await?;
    let (_, new) = supervisor.get("/.well-known/agent-card.json").await?;
    let (_, old) = supervisor.get("/.well-known/agent.json").await?;
    let card: Value = serde_json::from_str(&new)?;
    assert_eq!(card, serde_json::from_str::<Value>(&old)?);
    assert_eq!(card["capabilities"]["streaming"], true, "{card}");
    ensure!(
        card["url"].as_str().is_some_and(|url| url.starts_with(supervisor.url())),
        "the card's url: {card}"
    );
    ensure!(card["skills"].as_array().is_some_and(|skills| !skills.is_empty()), "no skills: {card}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_brings_the_key_sees_a_skill_for_each_agent() -> Result<()> {
    let setup = echo(&["jira"])?.answers("*", "Hello.").setup()?.env("A2A_AUTH_SHARED_KEY", "s3cret");
    let supervisor = setup.start().await?;
    let (_, public) = supervisor.get("/.well-known/agent-card.json").await?;
    let public: Value = serde_json::from_str(&public)?;
    assert_eq!(public["capabilities"]["extendedAgentCard"], true, "{public}");

    let ask = |version: &'static str, method: &'static str, key: Option<&'static str>| {
        let request = reqwest::Client::new().post(supervisor.url()).header("a2a-version", version);
        let request =
            key.map_or_else(|| request.try_clone(), |key| request.try_clone().map(|r| r.bearer_auth(key)));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        async move { anyhow::Ok(request.context("a request can be cloned")?.json(&body).send().await?) }
    };
    for (version, method) in [("1.0", "GetExtendedAgentCard"), ("0.3", "agent/getAuthenticatedExtendedCard")]
    {
        assert_eq!(ask(version, method, None).await?.status(), 401, "{method}");
        let answer: Value = ask(version, method, Some("s3cret")).await?.json().await?;
        let skills = answer["result"]["skills"].as_array().cloned().unwrap_or_default();
        let ids: Vec<_> = skills.iter().filter_map(|skill| skill["id"].as_str()).collect();
        assert_eq!(ids, ["ai_platform_engineer", "jira"], "{method}: {answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_server_is_left_behind() -> Result<()> {
    let setup: Setup = echo(&["jira", "github"])?.answers("*", "Hello.").setup()?;
    // The directory's name, as an argument that does nothing here, tells these servers from those of other tests.
    let mark = setup.dir().to_string_lossy().into_owned();
    let marked = json!([{"name": "tools", "stdio": {"command": caipe_tests::programs::fixture_mcp()?, "args": ["--state", mark]}}]);
    let scenario = Scenario::new().agent_with("jira", marked).answers("*", "Hello.");
    let (first, second) = (scenario.setup()?, scenario.setup()?);

    let label = format!("--state\0{mark}");
    let supervisor = first.start().await?;
    assert_eq!(processes_with(&label).len(), 1);
    assert_eq!(supervisor.stop().await?, Some(0));
    assert_eq!(processes_with(&label), Vec::<std::path::PathBuf>::new());

    // A crash gives no time to tidy up: the servers notice that nobody reads them any more.
    second.start().await?.kill().await?;
    caipe_tests::supervisor::until("its servers are gone", async || Ok(processes_with(&label).is_empty()))
        .await
}

/// The status and the list of tools of an agent whose tool server answers the check of credentials so.
async fn checked(answer: &str) -> Result<(Value, Value, String)> {
    let server = programs::fixture_mcp()?;
    let mut spec = crate::migration::rendered(1, &json!({"inProcess": {}}));
    let agent = &mut spec["agents"][0];
    agent["requireApproval"] = json!(["detele_*"]);
    agent["mcp"] = json!([{"name": "api", "transport": {"stdio": {"command": server, "args": [], "env": {}, "cwd": null}},
        "reads": ["echo"], "check": {"tool": "echo", "arguments": {"text": answer}}}]);
    agent["budget"] = json!({"calls": 1});
    let script = Scenario::new().answers("*", "Hello.").script();
    let supervisor = Setup::of(&spec.to_string(), &script)?.start().await?;
    let status =
        async || anyhow::Ok(serde_json::from_str::<Value>(&supervisor.get("/internal/status").await?.1)?);
    let is_checked = async || Ok(!status().await?["agents"][0]["credentials"].is_null());
    supervisor.until("the credentials are checked", is_checked).await?;
    let (code, ready) = supervisor.get("/ready").await?;
    assert_eq!(code, 200, "{ready}");
    let listed = Setup::new()?.run(&["agents", "--url", supervisor.url()]).await?;
    Ok((status().await?, serde_json::from_str(&ready)?, String::from_utf8(listed.stdout)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_degrade_their_agent_and_nothing_else() -> Result<()> {
    let (status, ready, listed) = checked("401 Unauthorized").await?;
    let agent = &status["agents"][0];
    assert_eq!((&agent["phase"], &ready["agents"]["jira"]), (&json!("Degraded"), &json!("Degraded")));
    assert_eq!(agent["credentials"]["reason"], "Refused", "{agent}");
    let why = agent["message"].as_str().unwrap_or_default();
    ensure!(why.starts_with("the credentials are refused: echo failed: 401 Unauthorized. Check "), "{why}");
    ensure!(listed.contains("Degraded  Refused      the credentials are refused: echo failed"), "{listed}");
    ensure!(agent["unmatched"].to_string().contains("`detele_*` matches no tool"), "{agent}");
    assert_eq!(status["limits"], Value::Null, "the check is no call of the budget");

    let (status, ready, listed) = checked("{}").await?;
    let agent = &status["agents"][0];
    assert_eq!((&agent["phase"], &ready["agents"]), (&json!("Ready"), &json!({})), "{agent}");
    assert_eq!(agent["credentials"], json!({"reason": "Accepted", "message": "echo answered"}));
    ensure!(listed.contains("Ready  Accepted     requireApproval: `detele_*`"), "{listed}");
    ensure!(status["warnings"].to_string().contains("agent jira: requireApproval: `detele_*`"), "{status}");
    Ok(())
}

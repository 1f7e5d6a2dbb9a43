//! Who the agent says it is, and how it can be started at all.

use anyhow::{Context, Result, ensure};
use caipe_tests::agent;
use caipe_tests::supervisor::Setup;
use serde_json::{Value, json};

use super::{call_1_0, jira};
use crate::echo;

fn printed(output: &std::process::Output) -> Result<Value> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("something else than the card was printed")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_names_the_agent_in_both_versions() -> Result<()> {
    let agent = jira().await?;
    let (code, body) = agent.get("/.well-known/agent-card.json").await?;
    let card: Value = serde_json::from_str(&body)?;
    assert_eq!(
        (code, &card["name"], &card["description"]),
        (200, &json!("jira"), &json!("Knows all about jira."))
    );
    assert_eq!(card["url"], agent.url());
    assert_eq!(card["defaultInputModes"], json!(["text/plain"]));
    assert_eq!(
        (&card["capabilities"]["streaming"], &card["capabilities"]["pushNotifications"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(card["skills"][0]["id"], "jira");
    ensure!(card["skills"][0]["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "{card}");
    let versions: Vec<_> = card["supportedInterfaces"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["protocolVersion"])
        .collect();
    ensure!(versions.contains(&&json!("1.0")) && versions.contains(&&json!("0.3")), "{card}");
    let (health, ready) = (agent.get("/health").await?.0, agent.get("/ready").await?.0);
    assert_eq!((health, ready), (200, 200));
    ensure!(agent.get("/tools").await?.1.contains("echo"), "its tools are not listed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn printing_the_card_serves_nothing_and_says_the_same() -> Result<()> {
    let setup = agent::setup(&echo(&["jira"])?, "jira")?;
    let (agent, file) = (setup.start().await?, setup.dir().join("supervisor.yaml"));
    let address = agent.url().trim_start_matches("http://").to_owned();
    let arguments = ["agent", "jira", "--card", "-f", &file.to_string_lossy(), "--listen", &address];
    let (first, second) = (setup.run(&arguments).await?, setup.run(&arguments).await?);
    assert_eq!(first.stdout, second.stdout, "the same input gives the same bytes");
    let served: Value = serde_json::from_str(&agent.get("/.well-known/agent-card.json").await?.1)?;
    assert_eq!(printed(&first)?, served);

    let known = setup.env("JIRA_AGENT_URL", "http://jira.example:8000").run(&arguments).await?;
    assert_eq!(printed(&known)?["url"], "http://jira.example:8000", "the address under which others know it");
    let catalogue = Setup::new()?.run(&["agent", "GitHub", "--card"]).await?;
    assert_eq!(printed(&catalogue)?["name"], "github");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_is_signed_like_a_supervisors() -> Result<()> {
    // Ed25519 of the seed 7, 7, 7, …
    let key = "MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";
    let [begin, end] = ["BEGIN", "END"].map(|word| format!("-----{word} PRIVATE KEY-----"));
    let setup =
        agent::setup(&echo(&["jira"])?, "jira")?.file("key.pem", &format!("{begin}\n{key}\n{end}\n"))?;
    let path = setup.dir().join("key.pem");
    let agent = setup.env("CAIPE_CARD_SIGNING_KEY", path).start().await?;
    let card: Value = serde_json::from_str(&agent.get("/.well-known/agent-card.json").await?.1)?;
    ensure!(card["signatures"][0]["signature"].is_string(), "{card}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_bring_the_key_is_not_answered() -> Result<()> {
    let setup = agent::setup(&echo(&["jira"])?, "jira")?.env("A2A_AUTH_SHARED_KEY", "s3cret");
    let agent = setup.start().await?;
    let card: Value = serde_json::from_str(&agent.get("/.well-known/agent-card.json").await?.1)?;
    assert_eq!(card["capabilities"]["extendedAgentCard"], true, "{card}");
    let refused = call_1_0(&agent, "GetExtendedAgentCard", json!({})).await?;
    assert_eq!(refused["error"], "unauthorized", "{refused}");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}});
    let request = reqwest::Client::new().post(agent.url()).header("a2a-version", "1.0").bearer_auth("s3cret");
    let answer: Value = request.json(&body).send().await?.json().await?;
    assert_eq!(answer["result"]["name"], "jira", "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_served_ends_with_status_1_and_the_reason() -> Result<()> {
    let agent = jira().await?;
    let taken = agent.url().trim_start_matches("http://").to_owned();
    let cases: [(&[&str], &str, &str); 5] = [
        (&["agent", "weather", "--listen", &taken], "", "another program does already"),
        (&["agent", "nobody"], "", "there is no agent `nobody`: name one of github"),
        (&["agent", "netutils"], "", "`netutils` is another program"),
        (&["agent", "weather"], "ENABLE_WEATHER", "agent `weather` is disabled"),
        (&["agent", "weather", "--listen", "0.0.0.0:0"], "", "A2A_AUTH_SHARED_KEY"),
    ];
    for (arguments, off, says) in cases {
        let mut setup = Setup::new()?;
        if !off.is_empty() {
            setup = setup.env(off, "false");
        }
        let output = setup.run(arguments).await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {words}");
        ensure!(words.contains(says), "{arguments:?}: {words}");
        ensure!(output.stdout.is_empty(), "{arguments:?}");
    }
    Ok(())
}

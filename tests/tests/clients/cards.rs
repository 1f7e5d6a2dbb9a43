//! What clients rely on in agent cards.

use anyhow::{Context, Result, ensure};
use caipe_tests::agent;
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

use crate::client::{Client, Kind};
use crate::system::in_process;

const KEY: &str = "s3cret";

fn jira() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    Ok(Scenario::new().agent("jira", &server, &[]).turn(json!({}), json!({"text": "Hello."})))
}

/// The card that everybody gets.
async fn public(supervisor: &Supervisor, path: &str) -> Result<Value> {
    let (code, body) = supervisor.get(path).await?;
    ensure!(code == 200, "{path}: {code} {body}");
    serde_json::from_str(&body).context("the card is not JSON")
}

/// The card for callers with the key.
async fn extended(supervisor: &Supervisor, version: &str, method: &str) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
    let request = reqwest::Client::new().post(supervisor.url()).header("a2a-version", version);
    let answer: Value = request.bearer_auth(KEY).json(&body).send().await?.json().await?;
    ensure!(answer["result"].is_object(), "{method}: {answer}");
    Ok(answer["result"].clone())
}

fn check_examples(card: &Value) -> Result<()> {
    let skills = card["skills"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(!skills.is_empty(), "no skills: {card}");
    for skill in skills {
        let examples = skill["examples"].as_array().map(Vec::as_slice).unwrap_or_default();
        let all = examples.iter().all(|example| example.as_str().is_some_and(|text| !text.trim().is_empty()));
        ensure!(!examples.is_empty() && all, "no examples: {skill}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_skill_of_every_card_has_examples() -> Result<()> {
    let supervisor = jira()?.setup()?.env("A2A_AUTH_SHARED_KEY", KEY).start().await?;
    let agent = agent::setup(&jira()?, "jira")?.env("A2A_AUTH_SHARED_KEY", KEY).start().await?;
    for process in [&supervisor, &agent] {
        for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
            check_examples(&public(process, path).await?)?;
        }
        for (version, method) in
            [("1.0", "GetExtendedAgentCard"), ("0.3", "agent/getAuthenticatedExtendedCard")]
        {
            check_examples(&extended(process, version, method).await?)?;
        }
    }
    let skills = extended(&supervisor, "1.0", "GetExtendedAgentCard").await?["skills"].clone();
    ensure!(skills.as_array().is_some_and(|skills| skills.len() == 2), "the agent is no skill: {skills}");
    Ok(())
}

/// Every URL at which the card says that the agent answers.
fn urls(card: &Value) -> Vec<&str> {
    let lists =
        ["supportedInterfaces", "additionalInterfaces"].into_iter().filter_map(|name| card[name].as_array());
    let listed = lists.flatten().map(|interface| &interface["url"]);
    [&card["url"]].into_iter().chain(listed).filter_map(Value::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_urls_of_a_card_end_without_a_slash() -> Result<()> {
    let known = jira()?.set("card", json!({"externalUrl": "https://caipe.example/a2a/"}));
    let known = known.setup()?.start().await?;
    let (here, agent) = (jira()?.setup()?.start().await?, agent::setup(&jira()?, "jira")?.start().await?);
    for process in [&known, &here, &agent] {
        for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
            let card = public(process, path).await?;
            ensure!(urls(&card).len() > 2, "{card}");
            for url in urls(&card) {
                ensure!(!url.ends_with('/') && url.starts_with("http"), "{url}: {card}");
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_behind_the_cards_url_works_with_one_slash_or_two() -> Result<()> {
    let system = in_process(&jira()?).await?;
    let card = public(&system.supervisor, "/.well-known/agent-card.json").await?;
    let same = urls(&card).iter().all(|url| *url == system.supervisor.url());
    ensure!(same, "{} is not where it answers: {card}", system.supervisor.url());
    let Some(mut client) = Client::start(Kind::Requests("1.0"))? else { return Ok(()) };
    let new = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
    let old = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}});
    for (version, path, body) in [("1.0", "message:send", new), ("0.3", "v1/message:send", old)] {
        for slashes in ["/", "//"] {
            let path = format!("{slashes}{path}");
            let (code, answer) = client.post(&system, &path, version, body.clone()).await?;
            ensure!(code == 200 && answer.to_string().contains("Hello."), "{path}: {code} {answer}");
        }
    }
    Ok(())
}

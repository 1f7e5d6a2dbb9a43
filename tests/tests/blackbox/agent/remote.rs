//! The agent as the remote instance of a supervisor's agent.

use std::path::Path;

use anyhow::{Result, ensure};
use caipe_tests::agent::{self, transcript};
use caipe_tests::stream::Answer;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::approval::decide;
use crate::echo;

/// Everything of an answer that does not change from one to the next: names, texts, and who each artifact is from.
fn essence(answer: &Answer) -> Vec<(String, Value, Value)> {
    let artifacts = answer.events.iter().filter(|event| event["artifact"].is_object());
    let sources = artifacts.map(|event| {
        let metadata = &event["artifact"]["metadata"];
        (
            event["artifact"]["name"].to_string(),
            metadata["sourceAgent"].clone(),
            metadata["agentType"].clone(),
        )
    });
    sources.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_no_difference_between_the_two_placements() -> Result<()> {
    let scenario = echo(&["jira"])?.asks("compare", &["jira"]);
    let here = scenario.setup()?.start().await?.ask("compare them").await?;
    let jira = agent::setup(&scenario, "jira")?.start().await?;
    let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
    let there = supervisor.ask("compare them").await?;
    assert_eq!(transcript(&there), transcript(&here));
    assert_eq!(essence(&there), essence(&here));
    ensure!(there.texts("tool_notification_start").contains(&"🔧 Jira: Calling tool: Echo\n".to_owned()));
    let tasks = super::call_1_0(&jira, "ListTasks", json!({})).await?;
    assert_eq!(tasks["result"]["totalSize"], 1, "it was asked once: {tasks}");
    Ok(())
}

/// The same answer without the ids of interactions, which are different in each conversation.
fn without_ids(answer: &Answer) -> Answer {
    fn mask(value: &mut Value) {
        match value {
            Value::String(text) => {
                for word in ["approve ", "reject ", "respond "] {
                    let places: Vec<usize> =
                        text.match_indices(word).map(|(at, _)| at + word.len()).collect();
                    for at in places {
                        if text
                            .get(at..at + 4)
                            .is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))
                        {
                            text.replace_range(at..at + 4, "CODE");
                        }
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(mask),
            Value::Object(members) => {
                members.retain(|name, _| name != "interaction_id");
                members.values_mut().for_each(mask);
            }
            _ => {}
        }
    }
    let mut answer = answer.clone();
    answer.events.iter_mut().for_each(mask);
    answer
}

/// The question that a tool of `jira` puts before it runs, and what comes after the user has said yes.
async fn approved(supervisor: &Supervisor) -> Result<[Answer; 2]> {
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let answered = decide(supervisor, &asked, json!({"type": "approve"})).await?;
    Ok([asked, answered])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_agent_reaches_the_user_the_same_way() -> Result<()> {
    let mut scenario = echo(&["jira"])?.asks("write", &["jira"]);
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    let here = approved(&scenario.setup()?.start().await?).await?;
    let jira = agent::setup(&scenario, "jira")?.start().await?;
    let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
    let there = approved(&supervisor).await?;
    let [here, there] = [here, there].map(|answers| answers.map(|answer| without_ids(&answer)));
    for (there, here) in there.iter().zip(&here) {
        assert_eq!(transcript(there), transcript(here));
        assert_eq!(essence(there), essence(here));
    }
    let form = |answer: &Answer| {
        answer.artifacts("UserInputMetaData").next().map(|it| it["artifact"]["parts"].clone())
    };
    assert_eq!(form(&there[0]), form(&here[0]));
    assert_eq!(there[1].result()?, "jira says: jira: write it");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_obeys_the_approvals_that_only_its_supervisor_knows() -> Result<()> {
    let mut scenario = echo(&["jira"])?.asks("write", &["jira"]);
    let jira = agent::setup(&scenario, "jira")?.start().await?;
    scenario.change_agent("jira", "requireApproval", json!(["EC*"]));
    let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let rejected = decide(&supervisor, &asked, json!({"type": "reject", "message": "not today"})).await?;
    ensure!(rejected.result()?.contains("not today"), "{}", rejected.outline());
    let [_, answered] = approved(&supervisor).await?;
    assert_eq!(answered.result()?, "jira says: jira: write it");
    Ok(())
}

/// What an operator mounts in the pod of the remote agent `jira`, with a model and a tool server of this machine.
fn rendered(script: &Path) -> Result<Value> {
    let server = json!({"stdio": {"command": caipe_tests::programs::fixture_mcp()?}});
    let jira = json!({
        "name": "jira", "title": "Jira", "description": "Tickets.", "routingHint": "Tickets.",
        "systemPrompt": "You are the jira agent.", "placement": {"remote": {"url": "http://platform-jira.ns.svc:8000"}},
        "mcp": [{"name": "tools", "transport": server}], "mode": "Full",
        "tools": [], "requireApproval": [], "requiredEnv": [], "secretsDir": null, "model": null,
    });
    let theirs = json!({
        "name": "theirs", "title": "Theirs", "description": "d", "routingHint": "d", "systemPrompt": "",
        "placement": {"remote": {"url": "https://agents.example.com"}}, "mcp": [],
        "tools": [], "requireApproval": [], "requiredEnv": [], "secretsDir": null, "model": null,
    });
    Ok(json!({
        "epoch": 3, "hash": "",
        "supervisor": {"name": "n", "description": "d", "systemPrompt": null, "skillExamples": [], "externalUrl": null},
        "models": [{"provider": "scripted", "name": null, "baseUrl": null, "secretsDir": null, "temperature": null,
            "maxOutputTokens": null, "script": script}],
        "answerMode": "structured", "streaming": true, "store": {"sqlite": {}},
        "limits": {"recursion": 500, "maxContextTokens": 100_000, "minMessagesToKeep": 4, "maxToolOutputChars": 50_000,
            "modelTimeoutMs": 60_000, "toolTimeoutMs": 60_000, "agentTimeoutMs": 60_000, "mcpStartTimeoutMs": 15_000},
        "connectivity": {"check": true, "background": true, "timeoutMs": 5000, "maxRetries": 3, "retryDelayMs": 2000,
            "startupDelayMs": 0, "refreshIntervalMs": 1500, "fastCheckTimeoutMs": 2000},
        "agents": [jira, theirs],
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pod_of_a_remote_agent_serves_it_from_the_supervisors_rendered_spec() -> Result<()> {
    let setup = echo(&["jira"])?.setup()?;
    let spec = rendered(&setup.dir().join("script.yaml"))?;
    let file = setup.dir().join("spec.json");
    let setup = setup.file("spec.json", &spec.to_string())?;
    let pod = Setup::new()?.serving(["agent", "jira"]).argument("-f").argument(&file);
    let agent = pod.start().await?;
    let card: Value = serde_json::from_str(&agent.get("/.well-known/agent-card.json").await?.1)?;
    assert_eq!((&card["name"], &card["url"]), (&json!("jira"), &json!("http://platform-jira.ns.svc:8000")));
    assert_eq!(agent.ask("show it").await?.texts("complete_result"), ["jira says: show it"]);
    let refused = setup.run(&["agent", "theirs", "--card", "-f", &file.to_string_lossy()]).await?;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && words.contains("runs outside this program"), "{words}");
    Ok(())
}

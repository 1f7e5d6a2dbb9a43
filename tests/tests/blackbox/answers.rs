//! What a client sees of an answer: text, plan and notifications, and their order.

use std::path::Path;

use anyhow::{Result, ensure};
use caipe_tests::peers;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader, all_of, text_of};
use serde_json::{Value, json};

use crate::echo;

const COMPARE: &str = "compare Jira and GitHub issues";

/// Jira and GitHub, each on a real MCP server: tickets in a file, commits of this repository.
fn compare(files: &Path, git: &Path) -> Scenario {
    let root = caipe_tests::programs::workspace();
    let root = root.to_string_lossy();
    Scenario::new()
        .agent("jira", files, &[&root])
        .agent("github", git, &["--repository", &root])
        .agent_calls("jira", "read_text_file", json!({"path": format!("{root}/LICENSE"), "head": 2}))
        .agent_calls("github", "git_log", json!({"repo_path": root, "max_count": 1}))
        .asks("compare", &["jira", "github"])
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agent_is_called_by_its_name() -> Result<()> {
    let (Some(files), Some(git)) = (peers::npm("mcp-server-filesystem"), peers::py("mcp-server-git")) else {
        return Ok(());
    };
    let supervisor = compare(&files, &git).setup()?.start().await?;
    let answer = supervisor.ask(COMPARE).await?;

    let starts = answer.texts("tool_notification_start");
    for agent in ["Jira", "Github"] {
        let calls = starts
            .iter()
            .filter(|text| **text == format!("🔧 Supervisor: Calling Agent {agent}...\n"))
            .count();
        ensure!(calls == 1, "{agent} is called {calls} times: {starts:?}");
    }
    ensure!(!starts.iter().any(|text| text.to_lowercase().contains("agent task")), "{starts:?}");
    ensure!(starts.contains(&"🔧 Jira: Calling tool: Read_Text_File\n".to_owned()), "{starts:?}");
    ensure!(starts.contains(&"🔧 Github: Calling tool: Git_Log\n".to_owned()), "{starts:?}");
    let ends = answer.texts("tool_notification_end");
    for end in ["✅ Supervisor: Agent task Jira completed\n", "✅ Github: Tool Git_Log completed\n"] {
        ensure!(ends.iter().any(|text| text == end), "no {end:?} in {ends:?}");
    }
    assert_eq!(answer.state(), "completed");
    let result = answer.result()?;
    ensure!(
        result.contains("github says: Commit history:"),
        "the answer is not what the tools returned: {result:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_and_plan_steps_name_their_agent() -> Result<()> {
    let supervisor = echo(&["jira", "github"])?.asks("compare", &["jira", "github"]).setup()?.start().await?;
    let answer = supervisor.ask(COMPARE).await?;

    let of =
        |event: &Value, key: &str| event["artifact"]["metadata"][key].as_str().unwrap_or_default().to_owned();
    let sources: Vec<(String, String, String)> = answer
        .artifacts("tool_notification_start")
        .map(|event| (text_of(event), of(event, "sourceAgent"), of(event, "agentType")))
        .collect();
    let has =
        |text: &str, source: &str, kind: &str| sources.contains(&(text.into(), source.into(), kind.into()));
    ensure!(has("🔧 Supervisor: Calling Agent Jira...\n", "jira", "notification"), "{sources:?}");
    ensure!(has("🔧 Jira: Calling tool: Echo\n", "jira", "sub-agent"), "{sources:?}");
    ensure!(has("🔧 Github: Calling tool: Echo\n", "github", "sub-agent"), "{sources:?}");

    let plans = answer.plans();
    let step = |agent: &str, status: &str| (agent.to_owned(), COMPARE.to_owned(), status.to_owned());
    assert_eq!(plans.first(), Some(&vec![step("Jira", "in_progress"), step("Github", "in_progress")]));
    assert_eq!(plans.last(), Some(&vec![step("Jira", "completed"), step("Github", "completed")]));
    let jira = "🔧 Jira: Calling tool: Echo\n";
    let stamped = answer.artifacts("tool_notification_start").find(|event| text_of(event) == jira);
    let step_id = &answer
        .artifacts("execution_plan_update")
        .next()
        .map(|event| caipe_tests::stream::steps_of(event)[0]["step_id"].clone());
    assert_eq!(stamped.map(|event| event["artifact"]["metadata"]["plan_step_id"].clone()), *step_id);
    Ok(())
}

/// Where each of the named things happens first.
fn order(answer: &Answer, wanted: &[&str]) -> Result<()> {
    let seen: Vec<String> = answer
        .events
        .iter()
        .map(|event| match event["kind"].as_str() {
            Some("artifact-update") => {
                let name = event["artifact"]["name"].as_str().unwrap_or_default();
                let role =
                    if event["artifact"]["metadata"]["is_final_answer"] == true { "answer" } else { "" };
                format!("{name} {role} {}", text_of(event))
            }
            _ => format!("{} {}", event["kind"], event["status"]["state"]),
        })
        .collect();
    let mut from = 0;
    for what in wanted {
        let found = seen[from..].iter().position(|text| text.contains(what));
        let Some(place) = found else {
            anyhow::bail!("{what:?} does not come after what precedes it:{}", answer.outline())
        };
        from += place + 1;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_jsonrpc_and_kind_streams_in_the_order_of_the_contract() -> Result<()> {
    let supervisor = echo(&["argocd"])?.asks("argocd", &["argocd"]).setup()?.start().await?;
    // The streaming seed's test command, to the letter.
    let body = r#"{"id":"test","method":"message/stream","params":{"message":{"role":"user","parts":[{"kind":"text","text":"show argocd version"}],"messageId":"msg-test"}}}"#;
    let events = SseReader::new(supervisor.post(body).await?)?.rest().await?;
    let answer = supervisor.checked(Answer::new(events))?;
    order(
        &answer,
        &[
            "\"task\" \"submitted\"",
            "streaming_result",
            "tool_notification_start  🔧 Workflow: Calling [Argocd] show argocd version...",
            "execution_plan_update",
            "tool_notification_start  🔧 Supervisor: Calling Agent Argocd...",
            "tool_notification_start  🔧 Argocd: Calling tool: Echo",
            "tool_notification_end  ✅ Argocd: Tool Echo completed",
            "tool_notification_end  ✅ Supervisor: Agent task Argocd completed",
            "tool_notification_start  ✍️ Composing answer...",
            "streaming_result answer argocd",
            "execution_plan_status_update",
            "final_result",
            "\"status-update\" \"completed\"",
        ],
    )?;
    assert_eq!(answer.events[0]["history"][0]["parts"][0]["text"], "show argocd version");
    let narration = answer.streamed(|event| event["artifact"]["metadata"]["is_final_answer"] != true);
    assert_eq!(narration, "I'll ask them.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_streams_token_by_token() -> Result<()> {
    let reply = json!({"text": "one two three four five six", "delay_ms": 2});
    let supervisor = Scenario::new()
        .turn(json!({}), reply)
        .set("prompts", json!({"answerMode": "Marker"}))
        .setup()?
        .start()
        .await?;
    let answer = supervisor.ask("count").await?;
    let pieces = answer.texts("streaming_result");
    ensure!(pieces.len() >= 4, "it came in {} pieces: {pieces:?}", pieces.len());
    assert_eq!(pieces.concat(), "one two three four five six");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn people_at_the_same_time_see_only_their_own() -> Result<()> {
    let supervisor = echo(&["jira", "github"])?.asks("compare", &["jira", "github"]).setup()?.start().await?;
    let questions: Vec<String> = (0..24).map(|user| format!("compare for user <{user}>")).collect();
    let mut streams = Vec::new();
    for question in &questions {
        streams.push(supervisor.stream(question, None).await?);
    }
    for (answer, question) in all_of(streams).await?.into_iter().zip(&questions) {
        let answer = supervisor.checked(answer)?;
        for (agent, title, _) in answer.plans().concat() {
            assert_eq!(&title, question, "a step of {agent} is somebody else's");
        }
        let result = answer.result()?;
        assert_eq!(result.matches(question.as_str()).count(), 2, "{result}");
        assert_eq!(result.matches("for user").count(), 2, "{result}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn message_send_answers_with_the_whole_task() -> Result<()> {
    let supervisor = Scenario::new().answers("*", "Hello, {{ user }}.").setup()?.start().await?;
    let reply = supervisor.call("message/send", caipe_tests::supervisor::message("Ada", None)).await?;
    let task = &reply["result"];
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")), "{reply}");
    let artifacts = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let result = artifacts.iter().find(|artifact| artifact["name"] == "final_result");
    assert_eq!(
        result.map(|artifact| artifact["parts"][0]["text"].clone()),
        Some(json!("Hello, Ada.")),
        "{task}"
    );

    let recovered =
        json!({"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"taskId": task["id"]}});
    let request = reqwest::Client::new().post(supervisor.url()).header("x-client-source", "caipe-ui");
    let recovered: Value = request.json(&recovered).send().await?.json().await?;
    let texts: Vec<&Value> = recovered["result"]["artifacts"]
        .as_array()
        .map(|artifacts| artifacts.iter().map(|artifact| &artifact["parts"][0]["text"]).collect())
        .unwrap_or_default();
    assert_eq!(texts, [&json!("Hello, Ada.")], "upstream's UI shows all of it in a row: {recovered}");

    let again = supervisor.call("tasks/get", json!({"id": task["id"]})).await?;
    assert_eq!(again["result"]["status"], task["status"]);
    assert_eq!(again["result"]["artifacts"], task["artifacts"]);
    Ok(())
}

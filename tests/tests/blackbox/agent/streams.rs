//! What an agent says on the wire.

use anyhow::{Context, Result, ensure};
use caipe_tests::agent::{self, transcript};
use caipe_tests::peers;
use caipe_tests::resumable_stream::{Connection, Version};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader, all_of};
use caipe_tests::supervisor::{Supervisor, message};
use serde_json::{Value, json};

use super::{call_1_0, jira};
use crate::echo;

#[tokio::test(flavor = "multi_thread")]
async fn calls_words_and_the_whole_answer_come_in_the_order_of_the_contract() -> Result<()> {
    let answer = jira().await?.ask("show it").await?;
    assert_eq!(
        transcript(&answer),
        [
            "task",
            "working|",
            "tool_notification_start|🔧 Jira: Calling tool: Echo\n",
            "tool_notification_end|✅ Jira: Tool Echo completed\n",
            "streaming_result|jira says: show it",
            "complete_result|jira says: show it",
            "completed|",
        ]
    );
    let closing = answer.artifacts("streaming_result").last().context("no words")?;
    assert_eq!((&closing["lastChunk"], &closing["append"]), (&json!(true), &json!(true)), "{closing}");
    let sources = answer.events.iter().filter_map(|event| event["artifact"].as_object());
    for artifact in sources {
        assert_eq!(artifact["metadata"]["sourceAgent"], "jira", "{artifact:?}");
        assert_eq!(artifact["metadata"]["agentType"], "sub-agent", "{artifact:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_reported_as_data_too() -> Result<()> {
    let answer = jira().await?.ask("show it").await?;
    let fact = |name: &str| {
        let event = answer.artifacts(name).next().context("no notification")?;
        Ok::<Value, anyhow::Error>(
            event["artifact"]["metadata"]["https://caipe.io/a2a/extensions/activity/v1"].clone(),
        )
    };
    let (started, ended) = (fact("tool_notification_start")?, fact("tool_notification_end")?);
    let call = started["callId"].as_str().context("no call id")?;
    let expected = |event: &str, status: &str| json!({"event": event, "agent": "jira", "tool": "echo", "callId": call, "status": status});
    assert_eq!(started, expected("tool_start", "running"));
    assert_eq!(ended, expected("tool_end", "completed"));
    let description =
        |name: &str| answer.artifacts(name).next().map(|it| it["artifact"]["description"].clone());
    assert_eq!(description("tool_notification_start"), Some(json!("Tool call started: echo")));
    assert_eq!(description("tool_notification_end"), Some(json!("Tool call completed: echo")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_tool_server_is_called() -> Result<()> {
    let Some(files) = peers::npm("mcp-server-filesystem") else { return Ok(()) };
    let root = caipe_tests::programs::workspace().to_string_lossy().into_owned();
    let scenario = Scenario::new().agent("files", &files, &[&root]).agent_calls(
        "files",
        "read_text_file",
        json!({"path": format!("{root}/README.md"), "head": 1}),
    );
    let answer = agent::setup(&scenario, "files")?.start().await?.ask("read").await?;
    let lines = transcript(&answer);
    ensure!(
        lines.contains(&"tool_notification_start|🔧 Files: Calling tool: Read_Text_File\n".to_owned()),
        "{lines:?}"
    );
    ensure!(lines.contains(&"complete_result|files says: # CAIPE for Kubernetes".to_owned()), "{lines:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_get_the_same_answer() -> Result<()> {
    let agent = jira().await?;
    let old = agent.call("message/send", message("show it", None)).await?;
    let new = json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "show it"}]}});
    let new = call_1_0(&agent, "SendMessage", new).await?;
    let (old, new) = (&old["result"], &new["result"]["task"]);
    assert_eq!(
        (&old["status"]["state"], &new["status"]["state"]),
        (&json!("completed"), &json!("TASK_STATE_COMPLETED"))
    );
    let artifacts = |task: &Value| -> Vec<(Value, Value)> {
        let all = task["artifacts"].as_array().cloned().unwrap_or_default();
        all.iter().map(|it| (it["name"].clone(), it["parts"][0]["text"].clone())).collect()
    };
    ensure!(artifacts(old).len() == 4, "{old}");
    assert_eq!(artifacts(old), artifacts(new));
    Ok(())
}

/// What a stream of that version tells of artifacts: name, text, whether it is appended and the last.
async fn updates(agent: &Supervisor, version: Version) -> Result<Vec<[Value; 4]>> {
    let mut stream = Connection::ask(agent.url(), version, "show it").await?;
    let mut updates = Vec::new();
    while let Some((_, event)) = stream.next().await {
        if let Some(update) = version.artifact_update(&event) {
            let artifact = &update["artifact"];
            let flag = |name: &str| json!(update[name] == true);
            let text = artifact["parts"][0]["text"].clone();
            updates.push([artifact["name"].clone(), text, flag("append"), flag("lastChunk")]);
        }
    }
    Ok(updates)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_stream_the_same() -> Result<()> {
    let agent = jira().await?;
    let old = updates(&agent, Version::V0_3).await?;
    let end = [json!("complete_result"), json!("jira says: show it"), json!(false), json!(true)];
    assert_eq!(old.last(), Some(&end));
    assert_eq!(updates(&agent, Version::V1_0).await?, old);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tools_return_is_shown_only_if_that_is_switched_on() -> Result<()> {
    let setup = agent::setup(&echo(&["jira"])?, "jira")?.env("STREAM_TOOL_OUTPUT", "true");
    let whole = setup.start().await?.ask("123456789").await?;
    assert_eq!(whole.texts("tool_output"), ["📄 Jira: Tool output:\n123456789\n\n"]);
    let cut = setup.env("MAX_TOOL_OUTPUT_LENGTH", "5").start().await?.ask("123456789").await?;
    assert_eq!(cut.texts("tool_output"), ["📄 Jira: Tool output:\n12345...\n[Output truncated]\n\n"]);
    assert_eq!(cut.texts("complete_result"), ["jira says: 123456789"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_and_a_conversation_are_taken_from_who_asks() -> Result<()> {
    let scenario = Scenario::new()
        .agent_with("memo", json!([]))
        .turn(json!({}), json!({"text": "{{ history | length }} messages so far"}));
    let agent = agent::setup(&scenario, "memo")?.start().await?;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let ask = async |text: &str, thread: &str| {
        let mut params = message(text, None);
        params["message"]["metadata"] =
            json!({"context_id": thread, "trace_id": trace, "user_email": "ada@example.com"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params});
        agent.checked(Answer::new(SseReader::new(agent.post(body.to_string()).await?)?.rest().await?))
    };
    let first = ask("one", "thread-1").await?;
    assert_eq!(first.context(), "thread-1");
    assert_eq!(first.events.last().map(|event| event["metadata"]["trace_id"].clone()), Some(json!(trace)));
    let again = ask("two", "thread-1").await?;
    assert_eq!(again.context(), "thread-1");
    assert_ne!(again.task(), first.task());
    let other = ask("three", "thread-2").await?;
    let texts = [first, again, other].map(|answer| answer.texts("complete_result").concat());
    assert_eq!(texts, ["1 messages so far", "3 messages so far", "1 messages so far"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_the_same_time_see_only_their_own() -> Result<()> {
    let agent = jira().await?;
    let questions: Vec<String> = (0..16).map(|client| format!("for client <{client}>")).collect();
    let mut streams = Vec::new();
    for question in &questions {
        streams.push(agent.stream(question, None).await?);
    }
    for (answer, question) in all_of(streams).await?.into_iter().zip(&questions) {
        let answer = agent.checked(answer)?;
        assert_eq!(answer.texts("complete_result"), [format!("jira says: {question}")]);
        let others = questions.iter().filter(|other| *other != question);
        ensure!(others.clone().all(|other| !answer.outline().contains(other)), "{}", answer.outline());
    }
    Ok(())
}

//! The tools that ask A2A agents of others.

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::sdk::{Program, Sdk};
use caipe_tests::stream::{Answer, text_of};
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

/// A supervisor that calls `tool` with the agent's address and what else a user's message says as JSON, and answers
/// with what came of it.
fn caller(tool: &str, agent: &str, allow: &[&str]) -> Scenario {
    let turn = |tool: &str| {
        let call = |arguments: Value| json!({"calls": [{"name": tool, "arguments": arguments}]});
        let (message, task) = ("{{ (user | json).message }}", "{{ (user | json).task_id }}");
        let blocking = "{{ (user | json).blocking }}";
        call(json!({"url": agent, "message": message, "task_id": task, "blocking": blocking}))
    };
    Scenario::new()
        .set("agents", json!([]))
        .set("a2a", json!({"allow": allow}))
        .set("limits", json!({"agentTimeoutSeconds": 3}))
        .turn(json!({"user": "list", "turn": 0}), json!({"calls": [{"name": "a2a_list", "arguments": {}}]}))
        .turn(
            json!({"user": "discover", "turn": 0}),
            json!({"calls": [{"name": "a2a_discover", "arguments": {"url": agent}}]}),
        )
        .turn(json!({"user": "*", "turn": 0}), turn(tool))
        .turn(json!({}), caipe_tests::scenario::answer("{{ last_result }}"))
}

/// The result of the tool, as the model got it in a new conversation.
async fn ask_model(supervisor: &Supervisor, ask: Value) -> Result<String> {
    let ask = ask.as_str().map_or_else(|| ask.to_string(), str::to_owned);
    supervisor.ask(&ask).await?.result()
}

fn says(message: &str) -> Value {
    json!({"message": message, "task_id": "", "blocking": true})
}

/// The id of the task that an answer names.
fn task(text: &str) -> Result<String> {
    let (_, after) = text.split_once("task_id ").with_context(|| format!("no task is named: {text}"))?;
    Ok(after.split(' ').next().unwrap_or_default().to_owned())
}

/// Everything that the tools can do, with an agent made with an official SDK.
async fn with_agent_of(sdk: Sdk, arguments: &[&str], tool: &str) -> Result<()> {
    let Some((_agent, url)) = Program::server(sdk, arguments).await? else { return Ok(()) };
    let supervisor = caller(tool, &url, &["127.0.0.1"]).setup()?.start().await?;
    let card: Value = serde_json::from_str(&ask_model(&supervisor, json!("discover")).await?)?;
    ensure!(card["name"] == "Peer" && card["skills"][0]["id"] == "echo", "{card}");
    ensure!(card["capabilities"]["streaming"] == true, "{card}");
    assert_eq!(ask_model(&supervisor, says("hello")).await?, "echo: hello");
    assert_eq!(ask_model(&supervisor, says("message hello")).await?, "echo: hello");
    assert_eq!(ask_model(&supervisor, says("chunks 3")).await?.trim(), "0 1 2");
    let failed = ask_model(&supervisor, says("fail")).await?;
    ensure!(failed.starts_with("ERROR: agent 127.0.0.1:") && failed.contains("It broke."), "{failed}");

    let begun =
        ask_model(&supervisor, json!({"message": "gate g", "task_id": "", "blocking": false})).await?;
    let id = task(&begun)?;
    let poll = json!({"message": "", "task_id": id, "blocking": false});
    ensure!(ask_model(&supervisor, poll.clone()).await?.contains("is at work"), "{begun}");
    ask_model(&supervisor, says("open g")).await?;
    let over = async || Ok(ask_model(&supervisor, poll.clone()).await?.contains("one two three four"));
    supervisor.until("the task has its answer", over).await?;
    let waited = ask_model(&supervisor, json!({"message": "", "task_id": id, "blocking": true})).await?;
    assert_eq!(waited, "one two three four");

    let asked = ask_model(&supervisor, says("ask")).await?;
    ensure!(asked.contains("asks: Which one?"), "{asked}");
    let answered = json!({"message": "this one", "task_id": task(&asked)?, "blocking": true});
    ensure!(ask_model(&supervisor, answered).await?.contains("this one"), "{asked}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_1_0_is_called() -> Result<()> {
    with_agent_of(Sdk::Python10, &[], "a2a_call").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_3_is_called() -> Result<()> {
    with_agent_of(Sdk::Python03, &[], "a2a_call").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_1_0_is_called_with_progress() -> Result<()> {
    with_agent_of(Sdk::Python10, &[], "a2a_call_streaming").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_3_is_called_with_progress() -> Result<()> {
    with_agent_of(Sdk::Python03, &[], "a2a_call_streaming").await
}

/// The tasks of a supervisor, as it lists them.
async fn tasks(supervisor: &Supervisor) -> Result<Vec<Value>> {
    let request = reqwest::Client::new().get(format!("{}/tasks", supervisor.url()));
    let page: Value = request.header("A2A-Version", "1.0").send().await?.json().await?;
    page["tasks"].as_array().cloned().with_context(|| format!("no list: {page}"))
}

/// Whether a supervisor's only task is in this state.
async fn is(supervisor: &Supervisor, state: &str) -> Result<bool> {
    Ok(tasks(supervisor).await?.iter().any(|task| task["status"]["state"] == state))
}

/// Another supervisor of ours, whose agent calls a tool.
async fn other() -> Result<Supervisor> {
    let server = programs::fixture_mcp()?;
    let scenario = Scenario::new().agent("jira", &server, &[]);
    let scenario =
        scenario.agent_calls("jira", "echo", json!({"text": "{{ user }}"})).asks("hello", &["jira"]);
    let wait = json!({"calls": [{"name": "wait", "arguments": {"seconds": 300}}]});
    scenario.turn(json!({"user": "wait"}), wait).setup()?.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_while_the_agent_works() -> Result<()> {
    let other = other().await?;
    for (tool, shown) in [("a2a_call_streaming", true), ("a2a_call", false)] {
        let supervisor = caller(tool, other.url(), &["127.0.0.1"]).setup()?.start().await?;
        let answer = supervisor.ask(&says("hello").to_string()).await?;
        assert_eq!(answer.result()?, "jira says: jira: hello");
        let notifications = answer.texts("tool_notification_start").concat();
        let host = other.url().trim_start_matches("http://");
        let step = format!("🔍 {host}: jira: echo started\n");
        assert_eq!(notifications.contains(&step), shown, "{tool}: {notifications}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_stops_the_remote_task() -> Result<()> {
    let other = other().await?;
    let supervisor = caller("a2a_call", other.url(), &["127.0.0.1"]).setup()?.start().await?;
    let mut stream = supervisor.stream(&says("wait").to_string(), None).await?;
    let mut events = stream.read_until(|event| text_of(event).contains("A2A_Call")).await?;
    supervisor.until("the other one works", async || is(&other, "TASK_STATE_WORKING").await).await?;
    let id = events[0]["id"].clone();
    supervisor.call("tasks/cancel", json!({"id": id})).await?;
    supervisor.until("the other one has stopped", async || is(&other, "TASK_STATE_CANCELED").await).await?;
    events.extend(stream.rest().await?);
    assert_eq!(supervisor.checked(Answer::new(events))?.state(), "canceled");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_must_not_be_asked_is_not() -> Result<()> {
    let other = other().await?;
    let private = other.url().to_owned();
    for (url, allow, part) in [
        (private.as_str(), vec![], "a loopback address, which is not allowed"),
        (private.as_str(), vec!["*"], "a loopback address, which is not allowed"),
        ("http://169.254.169.254/latest/meta-data", vec!["*"], "metadata service"),
        ("https://agents.example.com", vec!["127.0.0.1"], "is not on the list of allowed addresses"),
        (
            "jira",
            vec!["127.0.0.1"],
            "There is no registered agent \"jira\". The registered agents are: none.",
        ),
    ] {
        let supervisor = caller("a2a_call", url, &allow).setup()?.start().await?;
        let answer = ask_model(&supervisor, says("hello")).await?;
        ensure!(answer.contains(part), "{url}: {answer}");
    }
    ensure!(tasks(&other).await?.is_empty(), "somebody was asked");
    Ok(())
}

/// A server whose every answer points elsewhere.
async fn redirecting(to: String) -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let answer = move || {
        let to = to.clone();
        async move { axum::response::Redirect::temporary(&to) }
    };
    let routes = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_leads_nowhere_else() -> Result<()> {
    let other = other().await?;
    let url = redirecting(format!("{}/", other.url())).await?;
    let port = url.rsplit_once(':').context("no port")?.1.to_owned();
    let supervisor = caller("a2a_call", &url, &[&format!("127.0.0.1:{port}")]).setup()?.start().await?;
    let answer = ask_model(&supervisor, says("hello")).await?;
    ensure!(answer.starts_with("ERROR: agent") && answer.contains("points to another place"), "{answer}");
    ensure!(tasks(&other).await?.is_empty(), "somebody was asked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_address_and_a_silent_agent_are_reported_in_time() -> Result<()> {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let dead = format!("http://{}", free.local_addr()?);
    drop(free);
    let supervisor = caller("a2a_call", &dead, &["127.0.0.1"]).setup()?.start().await?;
    let answer = ask_model(&supervisor, says("hello")).await?;
    ensure!(answer.contains("nothing answers at 127.0.0.1:"), "{answer}");

    // It takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", silent.local_addr()?);
    let supervisor = caller("a2a_call", &url, &["127.0.0.1"]).setup()?.start().await?;
    let answer = ask_model(&supervisor, says("hello")).await?;
    ensure!(answer.contains("does not answer in time"), "{answer}");
    drop(silent);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_field_there_are_no_such_tools() -> Result<()> {
    let mut scenario = caller("a2a_call", "http://127.0.0.1:9", &["127.0.0.1"]);
    let with = ask_model(&scenario.setup()?.start().await?, json!("list")).await?;
    assert_eq!(with, "[]");
    scenario = scenario.set("a2a", Value::Null);
    let without = ask_model(&scenario.setup()?.start().await?, json!("list")).await?;
    ensure!(without.contains("there is no such tool"), "{without}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_agent_is_called_by_name_and_asked_for_as_any_other() -> Result<()> {
    let Some((_agent, url)) = Program::server(Sdk::Python10, &[]).await? else { return Ok(()) };
    let external = json!([{"name": "data", "external": {"url": url, "description": "Knows the data."}}]);
    let scenario = caller("a2a_call", "Data", &[]).set("agents", external);
    let task =
        json!({"calls": [{"name": "task", "arguments": {"subagent_type": "data", "description": "hello"}}]});
    let scenario = scenario.first(json!({"user": "hand it over", "turn": 0}), task);
    let supervisor = scenario.setup()?.start().await?;
    let listed: Value = serde_json::from_str(&ask_model(&supervisor, json!("list")).await?)?;
    let expected = json!([{"name": "data", "url": url, "description": "Knows the data."}]);
    assert_eq!(listed, expected);
    assert_eq!(ask_model(&supervisor, says("hello")).await?, "echo: hello");
    let card: Value = serde_json::from_str(&ask_model(&supervisor, json!("discover")).await?)?;
    assert_eq!(card["name"], "Peer");
    let answer = supervisor.ask("hand it over").await?;
    assert_eq!(answer.result()?, "echo: hello");
    let notifications = answer.texts("tool_notification_start").concat();
    ensure!(notifications.contains("🔧 Supervisor: Calling Agent Data..."), "{notifications}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_agent_that_is_registered_gets_its_token() -> Result<()> {
    let closed = Scenario::new().answers("hello", "Hello, friend.").set("agents", json!([])).setup()?;
    let other = closed.env("A2A_AUTH_SHARED_KEY", "hunter2").start().await?;
    let token = json!({"name": "other", "key": "OTHER_TOKEN"});
    let external = json!([{"name": "other", "external": {"url": other.url(), "secretRef": token}}]);
    for (agent, part) in [("other", "Hello, friend."), (other.url(), "(HTTP 401)")] {
        let scenario = caller("a2a_call", agent, &["127.0.0.1"]).set("agents", external.clone());
        let supervisor = scenario.setup()?.env("OTHER_TOKEN", "hunter2").start().await?;
        let answer = ask_model(&supervisor, says("hello")).await?;
        ensure!(answer.contains(part) && !answer.contains("hunter2"), "{agent}: {answer}");
        ensure!(!supervisor.log().contains("hunter2"), "the token is in the log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_cannot_answer_an_approval() -> Result<()> {
    let mut scenario = crate::echo(&["jira"])?;
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    let jira = caipe_tests::agent::setup(&scenario, "jira")?.start().await?;
    let supervisor = caller("a2a_call", jira.url(), &["127.0.0.1"]).setup()?.start().await?;
    let asked = ask_model(&supervisor, says("write it")).await?;
    ensure!(asked.contains("wants to call echo") && asked.contains("Only a person may answer"), "{asked}");
    let task = asked.split_once("waits in task ").and_then(|(_, rest)| rest.split(' ').next());
    let task = task.with_context(|| format!("no task is named: {asked}"))?;
    for message in ["yes", "approve", "decision: approve"] {
        let refused =
            ask_model(&supervisor, json!({"message": message, "task_id": task, "blocking": true})).await?;
        ensure!(refused.contains("Only a person may answer"), "{message}: {refused}");
    }
    let after = jira.call("tasks/get", json!({"id": task})).await?;
    assert_eq!(after["result"]["status"]["state"], "input-required", "{after}");
    Ok(())
}

//! The names of methods and parameters that existing clients use.

use anyhow::{Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader, parts_text};
use serde_json::{Value, json};

use crate::client::{Client, Kind, SLACK};
use crate::system::{System, in_process};

/// A supervisor that answers at once, or without end.
async fn system() -> Result<System> {
    let forever = json!({"repeat": {"token": "tick ", "times": 1_000_000}, "delay_ms": 5});
    in_process(
        &Scenario::new().turn(json!({"user": "forever"}), forever).answers("*", "You said: {{ user }}"),
    )
    .await
}

/// The result of a JSON-RPC call.
async fn call(
    client: &mut Client,
    system: &System,
    version: &str,
    method: &str,
    params: Value,
) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (code, answer) = client.post(system, "", version, body).await?;
    ensure!(code == 200 && answer.get("error").is_none(), "{method} {params}: {code} {answer}");
    Ok(answer["result"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_1_0_work_with_the_original_names_of_their_fields() -> Result<()> {
    let system = system().await?;
    let Some(mut client) = Client::start(Kind::Requests("1.0"))? else { return Ok(()) };
    let mut call =
        async |method: &str, params: Value| call(&mut client, &system, "1.0", method, params).await;

    let message = json!({"message_id": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi", "media_type": "text/plain"}]});
    let configuration = json!({"accepted_output_modes": ["text/plain"], "history_length": 0});
    let sent =
        call("SendMessage", json!({"message": message, "configuration": configuration})).await?["task"]
            .clone();
    let (task, context) = (sent["id"].clone(), sent["contextId"].clone());
    ensure!(sent["status"]["state"] == "TASK_STATE_COMPLETED", "{sent}");
    ensure!(sent["history"].as_array().is_none_or(Vec::is_empty), "history_length is ignored: {sent}");

    let message = json!({"message_id": "m-2", "context_id": context, "role": "ROLE_USER", "parts": [{"text": "again"}]});
    let again = call("SendMessage", json!({"message": message})).await?["task"].clone();
    ensure!(again["contextId"] == context && again["id"] != task, "context_id is ignored: {again}");
    ensure!(again["history"][0]["messageId"] == "m-2", "message_id is ignored: {again}");

    let got = call("GetTask", json!({"id": task, "history_length": 0})).await?;
    ensure!(got["id"] == task && got["history"].as_array().is_none_or(Vec::is_empty), "{got}");
    let listed =
        call("ListTasks", json!({"context_id": context, "page_size": 1, "include_artifacts": true})).await?;
    ensure!(listed["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1), "{listed}");
    ensure!(listed["totalSize"] == 2 && listed["tasks"][0]["artifacts"][0].is_object(), "{listed}");

    let message = json!({"message_id": "m-3", "role": "ROLE_USER", "parts": [{"text": "forever"}]});
    let configuration = json!({"return_immediately": true});
    let running =
        call("SendMessage", json!({"message": message, "configuration": configuration})).await?["task"]
            .clone();
    ensure!(running["status"]["state"] != "TASK_STATE_COMPLETED", "{running}");
    let canceled = call("CancelTask", json!({"id": running["id"]})).await?;
    ensure!(canceled["status"]["state"] == "TASK_STATE_CANCELED", "{canceled}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_1_0_names_its_task_with_the_original_name() -> Result<()> {
    let field = json!({"field_name": "project", "field_description": "Which project", "required": true});
    let form = json!({"response": "Where?", "metadata": {"user_input": true, "input_fields": [field]}});
    let ask = json!({"calls": [{"name": "CAIPEAgentResponse", "arguments": form}]});
    let scenario = Scenario::new().turn(json!({"turn": 0}), ask).answers("*", "{{ last_result }}");
    let system = in_process(&scenario).await?;
    let Some(mut client) = Client::start(Kind::Requests("1.0"))? else { return Ok(()) };
    let mut send = async |message: Value| {
        let sent = call(&mut client, &system, "1.0", "SendMessage", json!({"message": message})).await?;
        anyhow::Ok(sent["task"].clone())
    };
    let hello = json!({"message_id": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let asked = send(hello).await?;
    ensure!(asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let answer = json!({"message_id": "m-2", "task_id": asked["id"], "context_id": asked["contextId"],
        "role": "ROLE_USER", "parts": [{"text": "project: OPS"}]});
    let ended = send(answer).await?;
    ensure!(ended["id"] == asked["id"], "task_id is ignored: {ended}");
    ensure!(ended["status"]["state"] == "TASK_STATE_COMPLETED", "{ended}");
    ensure!(ended["artifacts"].to_string().contains("project=OPS"), "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_of_1_0_works_with_the_original_names_of_its_fields() -> Result<()> {
    let system = system().await?;
    let Some(mut client) = Client::start(Kind::Requests("REST 1.0"))? else { return Ok(()) };
    let message =
        json!({"message_id": "m-1", "context_id": "thread", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let body = json!({"message": message, "configuration": {"history_length": 0}});
    let (code, sent) = client.post(&system, "/message:send", "1.0", body).await?;
    let task = &sent["task"];
    ensure!(code == 200 && task["contextId"] == "thread", "{code} {sent}");
    ensure!(task["history"].as_array().is_none_or(Vec::is_empty), "{sent}");
    let id = task["id"].as_str().unwrap_or_default();
    for length in [0, 1] {
        let path = format!("/tasks/{id}?history_length={length}");
        let (code, task) = client.get(&system, &path).await?;
        let history = task["history"].as_array().map_or(0, Vec::len);
        ensure!(code == 200 && history == length, "{path}: {code} {task}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_web_ui_finds_cancels_and_follows_a_task_by_its_task_id() -> Result<()> {
    let system = system().await?;
    let Some(mut client) = Client::start(SLACK)? else { return Ok(()) };
    let view = client.ask(&system, json!({"text": "hi"})).await?;
    let by_id = |task: &str| json!({"taskId": task});
    let get = json!({"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": by_id(view.task())});
    let recovery = json!({"path": "", "headers": {"X-Client-Source": "caipe-ui"}, "body": get});
    let (_, got) = client.call(&system, recovery).await?;
    let got = &got["result"];
    ensure!(got["id"] == view.task() && got["status"]["state"] == "completed", "{got}");
    // After a crash the web UI shows the texts of all artifacts in a row.
    let texts =
        got["artifacts"].as_array().into_iter().flatten().map(|artifact| parts_text(&artifact["parts"]));
    ensure!(texts.collect::<String>() == view.result(), "{got}");

    let mut stream = system.supervisor.stream("forever", None).await?;
    let first = Answer::new(stream.read_until(|event| event["kind"] == "artifact-update").await?);
    let follow =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": by_id(first.task())});
    let mut followed = SseReader::new(system.supervisor.post(follow.to_string()).await?)?;
    let known = Answer::new(followed.read_until(|event| event["kind"] == "artifact-update").await?);
    ensure!(known.task() == first.task(), "{}", known.outline());
    let canceled = call(&mut client, &system, "0.3", "tasks/cancel", by_id(first.task())).await?;
    ensure!(canceled["status"]["state"] == "canceled", "{canceled}");
    let rest = Answer::new(followed.rest().await?);
    ensure!(rest.state() == "canceled", "{}", rest.outline());
    Ok(())
}

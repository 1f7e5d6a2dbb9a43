//! Requests from other origins, and lists of tasks.

use anyhow::{Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Supervisor, message};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{greeter, is_well};

fn asked(supervisor: &Supervisor) -> RequestBuilder {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message("hi", None)}});
    reqwest::Client::new().post(supervisor.url()).body(body.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_is_refused() -> Result<()> {
    let supervisor = greeter().await?;
    let json = ("content-type", "application/json");
    let own = supervisor.url().trim_end_matches('/').to_owned();
    let cases: [(&[(&str, &str)], u16); 5] = [
        (&[json], 200),
        (&[json, ("origin", &own)], 200),
        (&[json, ("origin", "https://evil.example.com")], 403),
        (&[json, ("host", "rebound.example.com:8000")], 403),
        // What a page can send without asking the browser first.
        (&[], 415),
    ];
    for (headers, status) in cases {
        let mut request = asked(&supervisor);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        ensure!(request.send().await?.status() == status, "{headers:?}");
    }
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_tasks_ends_early_and_goes_on() -> Result<()> {
    let supervisor = greeter().await?;
    let large = "x".repeat(6 << 20);
    for _ in 0..3 {
        supervisor.ask(&large).await?.result()?;
    }
    let (mut token, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let page = call_1_0(&supervisor, "ListTasks", json!({"pageToken": token})).await?;
        let tasks = page["tasks"].as_array().cloned().unwrap_or_default();
        ensure!(!tasks.is_empty() && tasks.len() < 3, "a page of {} tasks", tasks.len());
        seen.extend(tasks.iter().filter_map(|task| task["id"].as_str().map(str::to_owned)));
        pages += 1;
        token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    ensure!(seen.len() == 3 && pages == 2, "{} tasks on {pages} pages", seen.len());
    Ok(())
}

async fn call_1_0(supervisor: &Supervisor, method: &str, params: Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(supervisor.url()).header("a2a-version", "1.0").json(&body);
    Ok(request.send().await?.json::<Value>().await?["result"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_task_has_the_state_that_the_list_is_filtered_by() -> Result<()> {
    let slow = json!({"text": "one two", "delay_ms": 60_000});
    let supervisor = Scenario::new().turn(json!({}), slow).setup()?.start().await?;
    let mut stream = supervisor.stream("hi", None).await?;
    let events = stream.read_until(|event| event["kind"] == "task").await?;
    let states = async |state: &str| {
        let page = call_1_0(&supervisor, "ListTasks", json!({"status": state})).await?;
        let tasks = page["tasks"].as_array().cloned().unwrap_or_default();
        Ok::<_, anyhow::Error>(tasks.iter().map(|task| task["status"]["state"].clone()).collect::<Vec<_>>())
    };
    supervisor
        .until("the task is working", async || Ok(!states("TASK_STATE_WORKING").await?.is_empty()))
        .await?;
    assert_eq!(states("TASK_STATE_WORKING").await?, ["TASK_STATE_WORKING"]);
    assert!(states("TASK_STATE_SUBMITTED").await?.is_empty());
    let task = call_1_0(&supervisor, "GetTask", json!({"id": events[0]["id"]})).await?;
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{task}");
    Ok(())
}

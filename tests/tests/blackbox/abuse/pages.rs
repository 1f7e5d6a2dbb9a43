//! Web pages of others, and clients that ask for much at once.

use anyhow::{Result, ensure};
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
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageToken": token}});
        let request = reqwest::Client::new().post(supervisor.url()).header("a2a-version", "1.0").json(&body);
        let answer: Value = request.send().await?.json().await?;
        let tasks = answer["result"]["tasks"].as_array().cloned().unwrap_or_default();
        ensure!(!tasks.is_empty() && tasks.len() < 3, "a page of {} tasks", tasks.len());
        seen.extend(tasks.iter().filter_map(|task| task["id"].as_str().map(str::to_owned)));
        pages += 1;
        token = answer["result"]["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    ensure!(seen.len() == 3 && pages == 2, "{} tasks on {pages} pages", seen.len());
    Ok(())
}

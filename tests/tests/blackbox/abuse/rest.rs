//! The same over REST, in both versions.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{greeter, is_well};

/// A method, a path, a body if there is one, and the status.
type Case = (&'static str, String, Option<String>, u16);

fn cases(base: &str) -> Vec<Case> {
    let deep = format!("{{\"metadata\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut cases = vec![
        ("POST", format!("{base}/message:send"), Some("{oops".to_owned()), 400),
        ("POST", format!("{base}/message:stream"), Some("[]".to_owned()), 400),
        ("POST", format!("{base}/message:send"), Some(deep), 400),
        ("POST", format!("{base}/message:send"), Some("{}".to_owned()), 400),
        ("GET", format!("{base}/message:send"), None, 405),
        ("GET", format!("{base}/tasks/no-such-task/frobnicate"), None, 404),
        ("GET", format!("{base}/tasks?pageSize=many"), None, 400),
        ("GET", format!("{base}/tasks/{}", "x".repeat(20_000)), None, 400),
    ];
    let of_no_task = ["", "/pushNotificationConfigs", "/pushNotificationConfigs/c"];
    cases.extend(of_no_task.map(|rest| ("GET", format!("{base}/tasks/no-such-task{rest}"), None, 404)));
    cases.push(("POST", format!("{base}/tasks/no-such-task:cancel"), None, 404));
    cases.push(("GET", format!("{base}/tasks/no-such-task:subscribe"), None, 404));
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_refuses_every_fault_with_its_status() -> Result<()> {
    let supervisor = greeter().await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let mut wrong = Vec::new();
    for (base, version) in [("", "1.0"), ("/v1", "0.3")] {
        for (method, path, body, wanted) in cases(base) {
            let url = format!("{}{path}", supervisor.url());
            let request = http.request(method.parse()?, url).header("content-type", "application/json");
            let request = request.header("a2a-version", version).body(body.unwrap_or_default());
            let response = request.send().await?;
            let (status, text) = (response.status().as_u16(), response.text().await?);
            let is_short_json = serde_json::from_str::<Value>(&text).is_ok() && text.len() < 4000;
            if status != wanted || !is_short_json {
                let shown: String = text.chars().take(300).collect();
                let path: String = path.chars().take(60).collect();
                wrong.push(format!("{version} {method} {path}: wanted {wanted}, got {status} {shown}"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    is_well(&supervisor).await
}

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::call_builtin;

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn knows_only_its_own_tools() {
    let output = call_builtin("rm", &Map::new(), CancellationToken::new()).await;
    assert!(output.is_error, "{}", output.content);
}

#[tokio::test]
async fn returns_the_date() {
    let output = call_builtin("get_current_date", &Map::new(), CancellationToken::new()).await;
    assert!(!output.is_error && output.content.starts_with("UTC: "), "{}", output.content);
    let output =
        call_builtin("get_current_date", &arguments(&json!({"timezone": 7})), CancellationToken::new()).await;
    assert!(output.is_error && output.content.contains("`timezone`"), "{}", output.content);
}

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_asked() {
    let begun = tokio::time::Instant::now();
    let output = call_builtin(
        "wait",
        &arguments(&json!({"seconds": 120, "reason": "deploy"})),
        CancellationToken::new(),
    )
    .await;
    assert_eq!((output.content.as_str(), output.is_error), ("Waited 120 seconds (deploy).", false));
    assert_eq!(begun.elapsed(), Duration::from_mins(2));
}

#[tokio::test(start_paused = true)]
async fn stops_waiting_when_cancelled() {
    let cancel = CancellationToken::new();
    let begun = tokio::time::Instant::now();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stop.cancel();
    });
    let output = call_builtin("wait", &arguments(&json!({"seconds": 300})), cancel).await;
    assert!(output.is_error && output.content.contains("cancelled"), "{}", output.content);
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

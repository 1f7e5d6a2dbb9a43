use caipe_engine::DelegationOutcome;

use super::*;

fn lines(metrics: &Metrics) -> Vec<String> {
    let observed = Observed {
        active_runs: 3,
        queued_pushes: 2,
        log_memory: 5,
        is_store_available: true,
        store_restrictions: 4,
        skills: 7,
        failed_skill_sources: 1,
    };
    metrics.encode(observed).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn everything_that_happens_is_in_the_text() {
    let metrics = Metrics::new();
    let (open, closed) = (metrics.open_stream(), metrics.open_stream());
    drop(closed);
    metrics.model_finished(Usage { input_tokens: 10, output_tokens: 4, ..Usage::default() });
    metrics.model_failed(ModelErrorKind::RateLimited);
    metrics.tool_ended(true);
    metrics
        .delegation_ended(&DelegationEnd::Finished(DelegationOutcome::Completed { text: "secret".into() }));
    metrics.delegation_ended(&DelegationEnd::failed("secret"));
    metrics.committed(async { Ok(()) }).await.unwrap();
    let broken = StoreError::Corrupt { what: "secret".into(), reason: "secret".into() };
    metrics.committed(async { Err::<(), _>(broken) }).await.unwrap_err();
    let mut waiting = std::pin::pin!(metrics.committed(std::future::pending::<Result<(), StoreError>>()));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    let lines = lines(&metrics);
    for line in [
        "active_runs 3",
        "queued_pushes 2",
        "log_memory_bytes 5",
        "open_streams 1",
        "store_available 1",
        "store_restrictions 4",
        "waiting_commits 1",
        "model_calls_total{outcome=\"ok\"} 1",
        "model_calls_total{outcome=\"rate_limited\"} 1",
        "model_tokens_total{type=\"input\"} 10",
        "model_tokens_total{type=\"output\"} 4",
        "tool_calls_total{outcome=\"failed\"} 1",
        "delegations_total{outcome=\"ok\"} 1",
        "delegations_total{outcome=\"failed\"} 1",
        "commit_duration_seconds_count{outcome=\"ok\"} 1",
        "commit_duration_seconds_count{outcome=\"corrupt\"} 1",
    ] {
        assert!(lines.contains(&format!("{PREFIX}_{line}")), "no {line} in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:#?}");
    drop(open);
}

#[cfg(target_os = "linux")]
#[test]
fn the_resident_memory_is_known() {
    assert!(resident_memory().is_some_and(|bytes| bytes > 1 << 20));
}

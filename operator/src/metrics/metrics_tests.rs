use std::collections::BTreeSet;

use kube::core::Status;

use super::*;
use crate::key::Key;

/// Every combination of every label.
fn everything() -> Metrics {
    let metrics = Metrics::new();
    for outcome in Outcome::ALL {
        metrics.start_reconcile().finish(*outcome);
    }
    for step in Step::ALL {
        for outcome in StepOutcome::ALL {
            let measured = metrics.start_reconcile().step(*step);
            match outcome {
                StepOutcome::Ok => measured.done(),
                StepOutcome::Failed => Category::ALL.iter().for_each(|category| {
                    metrics.start_reconcile().step(*step).failed(*category);
                }),
                StepOutcome::Abandoned => drop(measured),
            }
        }
    }
    for kind in Kind::ALL {
        for verb in Verb::ALL {
            metrics.count_write(*kind, *verb);
        }
        metrics.watch_failed(*kind);
    }
    for endpoint in Endpoint::ALL {
        let took = Duration::from_millis(3);
        for outcome in ProbeOutcome::ALL {
            metrics.probed(*endpoint, *outcome, took);
        }
    }
    for (number, phase) in ResourcePhase::ALL.iter().enumerate() {
        let agents = Placement::ALL
            .iter()
            .flat_map(|placement| Phase::ALL.iter().map(move |phase| (*placement, *phase)));
        let key = Key::new("team", &number.to_string());
        metrics.resource_state(&key, ResourceState { phase: *phase, agents: agents.collect() });
    }
    for stage in MigrationStage::ALL {
        metrics.migrated(*stage);
    }
    for state in RolloutState::ALL {
        metrics.rollouts(*state, 1);
    }
    for outcome in EventOutcome::ALL {
        metrics.event(*outcome);
    }
    metrics.namespace_synced("team", true);
    metrics
}

fn series(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, _)| name)
        .collect()
}

fn value(metrics: &Metrics, name: &str) -> Option<i64> {
    let text = metrics.encode().unwrap();
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(series, _)| series == name))?;
    line.rsplit_once(' ').unwrap().1.parse().ok()
}

#[test]
fn the_number_of_series_has_a_bound() {
    let text = everything().encode().unwrap();
    // A histogram has a bucket more than bounds, a sum and a count.
    let (timer, probe) = (RECONCILE_BUCKETS.len() + 3, PROBE_BUCKETS.len() + 3);
    let most = Outcome::ALL.len() * timer
        + Step::ALL.len() * StepOutcome::ALL.len() * timer
        + Step::ALL.len() * Category::ALL.len()
        + Kind::ALL.len() * (Verb::ALL.len() + 1)
        + Endpoint::ALL.len() * (ProbeOutcome::ALL.len() + probe)
        + ResourcePhase::ALL.len()
        + Placement::ALL.len() * Phase::ALL.len()
        + MigrationStage::ALL.len()
        + EventOutcome::ALL.len()
        + RolloutState::ALL.len()
        + ["in_flight", "queue", "is_leader", "crd_missing", "namespace_synced", "build"].len();
    assert_eq!(series(&text).len(), most, "{text}");
    assert!(most < 600, "{most} series are too many for one process");
}

#[test]
fn everything_is_there_by_the_names_that_dashboards_ask_for() {
    let text = everything().encode().unwrap();
    for name in [
        "reconcile_duration_seconds_count{outcome=\"applied\"}",
        "step_duration_seconds_count{step=\"update_status\",outcome=\"ok\"}",
        "failures_total{step=\"apply\",category=\"quota\"}",
        "reconciles_in_flight",
        "queue_length",
        "api_writes_total{kind=\"Deployment\",verb=\"apply\"}",
        "watch_errors_total{kind=\"Pod\"}",
        "is_leader",
        "crd_missing",
        "namespace_synced{watched_namespace=\"team\"}",
        "probes_total{endpoint=\"card\",outcome=\"timeout\"}",
        "probe_duration_seconds_count{endpoint=\"status\"}",
        "resources{phase=\"Stalled\"}",
        "agents{placement=\"Remote\",phase=\"Ready\"}",
        "migrations_total{stage=\"started\"}",
        "rollouts{state=\"waiting\"}",
        "events_total{outcome=\"dropped\"}",
    ] {
        let name = format!("{PREFIX}_{name}");
        assert!(series(&text).contains(name.as_str()), "{name} is not in\n{text}");
    }
    assert!(text.contains(concat!("caipe_operator_build_info{version=\"", env!("CARGO_PKG_VERSION"))));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn what_is_dropped_without_a_word_was_abandoned() {
    let metrics = Metrics::new();
    let timer = metrics.start_reconcile();
    let step = timer.step(Step::Apply);
    assert_eq!(value(&metrics, "caipe_operator_reconciles_in_flight"), Some(1));
    drop((step, timer));
    assert_eq!(value(&metrics, "caipe_operator_reconciles_in_flight"), Some(0));
    let timer = "caipe_operator_reconcile_duration_seconds_count{outcome=\"abandoned\"}";
    assert_eq!(value(&metrics, timer), Some(1));
    let step = "caipe_operator_step_duration_seconds_count{step=\"apply\",outcome=\"abandoned\"}";
    assert_eq!(value(&metrics, step), Some(1));
}

#[test]
fn a_step_is_recorded_by_its_result() {
    let metrics = Metrics::new();
    let timer = metrics.start_reconcile();
    timer.step(Step::Build).record(&Ok::<_, ()>(()), |()| Category::Internal);
    timer.step(Step::Build).record(&Err::<(), _>(()), |()| Category::Invalid);
    timer.finish(Outcome::Failed);
    for (name, count) in [
        ("caipe_operator_step_duration_seconds_count{step=\"build\",outcome=\"ok\"}", 1),
        ("caipe_operator_step_duration_seconds_count{step=\"build\",outcome=\"failed\"}", 1),
        ("caipe_operator_failures_total{step=\"build\",category=\"invalid\"}", 1),
        ("caipe_operator_reconcile_duration_seconds_count{outcome=\"failed\"}", 1),
    ] {
        assert_eq!(value(&metrics, name), Some(count), "{name}");
    }
}

#[test]
fn a_resource_counts_once_with_its_last_state() {
    let metrics = Metrics::new();
    let key = Key::new("team", "platform");
    let agents = vec![(Placement::Remote, Phase::Pending), (Placement::InProcess, Phase::Ready)];
    metrics.resource_state(&key, ResourceState { phase: ResourcePhase::Reconciling, agents });
    metrics.resource_state(
        &key,
        ResourceState { phase: ResourcePhase::Ready, agents: vec![(Placement::Remote, Phase::Ready)] },
    );
    let counts = |metrics: &Metrics| {
        [
            "caipe_operator_resources{phase=\"Ready\"}",
            "caipe_operator_resources{phase=\"Reconciling\"}",
            "caipe_operator_agents{placement=\"Remote\",phase=\"Ready\"}",
            "caipe_operator_agents{placement=\"Remote\",phase=\"Pending\"}",
            "caipe_operator_agents{placement=\"InProcess\",phase=\"Ready\"}",
        ]
        .map(|name| value(metrics, name).unwrap())
    };
    assert_eq!(counts(&metrics), [1, 0, 1, 0, 0]);
    metrics.forget(&key);
    metrics.forget(&key);
    assert_eq!(counts(&metrics), [0; 5]);
    for name in ["a", "b"] {
        let resource_state =
            ResourceState { phase: ResourcePhase::Ready, agents: vec![(Placement::Remote, Phase::Ready)] };
        metrics.resource_state(&Key::new("team", name), resource_state);
    }
    assert_eq!(counts(&metrics), [2, 0, 2, 0, 0]);
    metrics.forget_all();
    assert_eq!(counts(&metrics), [0; 5]);
}

#[test]
fn answers_of_the_api_server_have_categories() {
    for (code, reason, message, category) in [
        (404, "NotFound", "", Category::NotFound),
        (409, "Conflict", "", Category::Conflict),
        (409, "AlreadyExists", "", Category::Conflict),
        (403, "Forbidden", "pods is forbidden: User x cannot", Category::Forbidden),
        (403, "Forbidden", "forbidden: exceeded quota: small, requested: pods=1", Category::Quota),
        (403, "Forbidden", "namespace team because it is being terminated", Category::Terminating),
        (422, "Invalid", "", Category::Rejected),
        (429, "TooManyRequests", "", Category::Throttled),
        (500, "Timeout", "", Category::Timeout),
        (503, "ServiceUnavailable", "", Category::Unavailable),
        (504, "Timeout", "", Category::Timeout),
    ] {
        let status = Status { code, reason: reason.into(), message: message.into(), ..Status::default() };
        assert_eq!(Category::of(&kube::Error::Api(Box::new(status))), category, "{code} {reason} {message}");
    }
}

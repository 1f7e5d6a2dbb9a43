use super::super::failure::Failure;
use super::super::result::CardSummary;
use super::*;

fn ip(last: u8) -> std::net::IpAddr {
    [127, 0, 0, last].into()
}

fn key() -> Key {
    Key::new("team", "platform")
}

fn targets(pods: &[(&str, u8, Endpoints)], token: Option<&str>) -> Targets {
    let pods = pods.iter().map(|(name, last, endpoints)| {
        ((*name).to_owned(), PodTarget { ip: ip(*last), endpoints: *endpoints, agent: None })
    });
    Targets { pods: pods.collect(), token: token.map(Into::into) }
}

fn card() -> CardSummary {
    CardSummary { name: "argocd".into(), protocol_version: "1.0".into(), latency_ms: 1 }
}

fn down() -> Failure {
    Failure { outcome: crate::metrics::labels::ProbeOutcome::Connect, message: "down".into() }
}

fn seen(card: Result<CardSummary, Failure>) -> Answers {
    Answers { status: None, card: Some(card) }
}

fn after(now: Instant, milliseconds: u64) -> Instant {
    now + Duration::from_millis(milliseconds)
}

/// A board that looks at the card of one pod, and when it began.
fn one() -> (ProbeRegistry, Instant) {
    let (mut registry, now) = (ProbeRegistry::default(), Instant::now());
    registry.watch(&key(), targets(&[("a", 1, Endpoints::Card)], None), now);
    (registry, now)
}

#[test]
fn a_new_pod_is_looked_at_at_once_and_then_at_its_pace() {
    let (mut registry, now) = one();
    let job = registry.take(now, true).unwrap();
    assert_eq!((job.request.ip, job.endpoints), (ip(1), Endpoints::Card));
    assert!(registry.take(now, true).is_none(), "one look at a time");
    registry.record(job.pod, seen(Ok(card())), now, 0.0);
    assert_eq!(registry.next_due(true), Some(after(now, 2500)));
    assert!(registry.take(after(now, 2499), true).is_none());
    assert!(registry.take(after(now, 2500), true).is_some());
}

#[test]
fn the_first_failure_changes_nothing_and_the_second_is_reported_once() {
    let (mut registry, now) = one();
    for (probe, notified) in [
        (Ok(card()), true),
        (Ok(card()), false),
        (Err(down()), false),
        (Err(down()), true),
        (Err(down()), false),
    ] {
        let is_up = probe.is_ok();
        let job = registry.take(now + Duration::from_mins(1), true).unwrap();
        registry.record(job.pod, seen(probe), now, 0.0);
        assert_eq!(registry.take_changed(), notified.then(key));
        assert_eq!(registry.take_changed(), None);
        if notified {
            let result = &registry.results(&key())["a"];
            assert_eq!((result.card.is_some(), result.failure.is_some()), (is_up, !is_up));
        }
    }
}

#[test]
fn a_pod_that_never_answered_is_in_no_view_before_that_is_certain() {
    let (mut registry, now) = one();
    assert!(registry.results(&key()).is_empty());
    let job = registry.take(now, true).unwrap();
    registry.record(job.pod, seen(Err(down())), now, 0.0);
    assert!(registry.results(&key()).is_empty());
    let job = registry.take(after(now, 500), true).unwrap();
    registry.record(job.pod, seen(Err(down())), now, 0.0);
    assert_eq!(registry.results(&key())["a"].failure.as_deref(), Some("down"));
}

#[test]
fn nothing_changes_when_the_same_is_watched_again() {
    let (mut registry, now) = one();
    let job = registry.take(now, true).unwrap();
    registry.record(job.pod, seen(Ok(card())), now, 0.0);
    for _ in 0..3 {
        registry.watch(&key(), targets(&[("a", 1, Endpoints::Card)], None), after(now, 10));
    }
    assert_eq!(registry.next_due(true), Some(after(now, 2500)));
    assert_eq!((registry.len(), registry.results(&key()).len(), registry.due.len()), (1, 1, 1));
}

#[test]
fn a_pod_with_another_address_is_another_pod() {
    let (mut registry, now) = one();
    let late = registry.take(now, true).unwrap();
    registry.watch(&key(), targets(&[("a", 2, Endpoints::Card)], None), now);
    registry.record(late.pod, seen(Ok(card())), now, 0.0);
    assert!(registry.results(&key()).is_empty(), "what the old one answered is not the new one's");
    assert_eq!(registry.take(now, true).unwrap().request.ip, ip(2));
}

#[test]
fn pods_that_go_are_forgotten_whole() {
    let (mut registry, now) = one();
    let pods = [("a", 1, Endpoints::Card), ("b", 2, Endpoints::Card)];
    registry.watch(&key(), targets(&pods, None), now);
    registry.watch(&Key::new("team", "other"), targets(&pods, None), now);
    registry.watch(&key(), targets(&pods[1..], None), now);
    assert_eq!(registry.len(), 3);
    registry.forget(&key());
    registry.forget(&key());
    assert_eq!((registry.len(), registry.due.len(), registry.watched.len()), (2, 2, 1));
    registry.watch(&Key::new("team", "other"), Targets::default(), now);
    assert_eq!((registry.len(), registry.due.len(), registry.next_due(true)), (0, 0, None));
}

#[test]
fn nobody_is_asked_for_a_status_without_a_token() {
    let (mut registry, now) = (ProbeRegistry::default(), Instant::now());
    let pods = [("a", 1, Endpoints::Status), ("b", 2, Endpoints::Both)];
    registry.watch(&key(), targets(&pods, None), now);
    let job = registry.take(now, true).unwrap();
    assert_eq!((job.request.ip, job.endpoints), (ip(2), Endpoints::Card));
    assert!(registry.take(now, true).is_none());
    registry.record(job.pod, seen(Ok(card())), now, 0.0);
    registry.watch(&key(), targets(&pods, Some("secret")), now);
    let asked: Vec<_> =
        std::iter::from_fn(|| registry.take(now, true)).map(|job| (job.request.ip, job.endpoints)).collect();
    assert_eq!(asked, [(ip(1), Endpoints::Status), (ip(2), Endpoints::Status)], "its card is known");
}

#[test]
fn what_is_not_asked_any_more_is_not_known_any_more() {
    let (mut registry, now) = (ProbeRegistry::default(), Instant::now());
    registry.watch(&key(), targets(&[("a", 1, Endpoints::Both)], Some("secret")), now);
    for _ in 0..2 {
        let job = registry.take(now + Duration::from_mins(1), true).unwrap();
        let looked = Answers { status: Some(Err(down())), card: Some(Ok(card())) };
        registry.record(job.pod, looked, now, 0.0);
    }
    let result = &registry.results(&key())["a"];
    assert!(result.card.is_some() && result.failure.is_some(), "a card, and no status");
    registry.watch(&key(), targets(&[("a", 1, Endpoints::Card)], Some("secret")), now);
    let result = &registry.results(&key())["a"];
    assert!(result.card.is_some() && result.failure.is_none());
    registry.watch(&key(), targets(&[("a", 1, Endpoints::Status)], Some("secret")), now);
    assert!(registry.results(&key()).is_empty());
}

#[test]
fn probe_now_repeats_a_probe_in_flight() {
    let (mut registry, now) = one();
    let job = registry.take(now, true).unwrap();
    registry.probe_now(&key(), now);
    assert!(registry.take(now, true).is_none(), "one look at a time");
    registry.record(job.pod, seen(Ok(card())), after(now, 5), 0.0);
    let job = registry.take(after(now, 5), true).unwrap();
    registry.record(job.pod, seen(Ok(card())), after(now, 10), 0.0);
    assert!(registry.take(after(now, 10), true).is_none(), "once");
    registry.probe_now(&key(), after(now, 20));
    assert!(registry.take(after(now, 20), true).is_some());
}

#[test]
fn a_lost_probe_is_repeated() {
    let (mut registry, now) = one();
    registry.take(now, true).unwrap();
    assert!(registry.take(now + LOST, true).is_some());
}

#[test]
fn a_pod_that_changes_constantly_is_rate_limited() {
    let (mut registry, begin) = one();
    let (mut probes, mut notified) = (0, 0);
    for tenth in 0..6_000 {
        let now = after(begin, tenth * 100);
        registry.probe_now(&key(), now);
        if let Some(job) = registry.take(now, true) {
            let name = format!("{tenth}");
            registry.record(job.pod, seen(Ok(CardSummary { name, ..card() })), now, 0.0);
            probes += 1;
        }
        registry.release(now);
        notified += usize::from(registry.take_changed().is_some());
    }
    assert!(probes > 3_000 && (600..=660).contains(&notified), "{notified} of {probes} looks");
    registry.forget(&key());
    assert_eq!((registry.delayed.len(), registry.next_due(true)), (0, None));
}

#[test]
fn a_failed_agent_causes_a_probe_of_its_supervisor() {
    let (mut registry, now) = (ProbeRegistry::default(), Instant::now());
    let pods = [("agent", 1, Endpoints::Both), ("supervisor", 2, Endpoints::Status)];
    registry.watch(&key(), targets(&pods, Some("secret")), now);
    let report = serde_json::json!({ "epoch": 1, "runningEpoch": 1, "hash": "h", "agents": [] });
    let report: caipe_crds::internal_status::Report = serde_json::from_value(report).unwrap();
    let well = |job: &Job| Answers {
        status: job.endpoints.status().then(|| Ok(report.clone())),
        card: job.endpoints.card().then(|| Ok(card())),
    };
    while let Some(job) = registry.take(now, true) {
        registry.record(job.pod, well(&job), now, 0.0);
    }
    let later = after(now, 2500);
    let jobs: Vec<_> = std::iter::from_fn(|| registry.take(later, true)).collect();
    for job in jobs {
        let answers = if job.request.ip == ip(1) {
            assert_eq!(job.endpoints, Endpoints::Status, "its report shows that it responds");
            Answers { status: Some(Err(down())), card: None }
        } else {
            well(&job)
        };
        registry.record(job.pod, answers, later, 0.0);
    }
    let supervisor = registry.take(later, false).unwrap();
    assert_eq!((supervisor.request.ip, supervisor.urgency), (ip(2), Urgency::Urgent));
    registry.record(supervisor.pod, well(&supervisor), later, 0.0);
    let agent = registry.take(after(later, 400), true).unwrap();
    assert_eq!(agent.endpoints, Endpoints::Both);
    registry.record(agent.pod, Answers { status: Some(Err(down())), card: Some(Err(down())) }, later, 0.0);
    let result = &registry.results(&key())["agent"];
    assert!(result.card.is_none() && result.report.is_none() && result.failure.is_some(), "{result:?}");
}

#[test]
fn routine_probes_start_together() {
    let (mut registry, now) = one();
    let job = registry.take(now, true).unwrap();
    registry.record(job.pod, seen(Ok(card())), after(now, 37), 0.0);
    assert_eq!(registry.next_due(true), Some(after(now, 2600)));
    let job = registry.take(after(now, 2600), true).unwrap();
    registry.record(job.pod, seen(Err(down())), after(now, 2637), 0.0);
    assert_eq!(registry.next_due(true), Some(after(now, 2937)), "a failure is confirmed without delay");
}

//! The scheduler with pods that follow a script, in paused time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use caipe_crds::internal_status::Report;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::pod_client::Request;
use super::super::result::{CardSummary, Endpoints as Asked, PodTarget, ProbeResult};
use super::*;

/// How a pod behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Up,
    Slow,
    Refusing,
    Mute,
}

#[derive(Debug, Default)]
struct Pods {
    moods: Mutex<HashMap<IpAddr, Mood>>,
    probes: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Pods {
    fn mood(&self, ip: IpAddr, mood: Mood) {
        self.moods.lock().unwrap().insert(ip, mood);
    }

    async fn answer(&self, ip: IpAddr) -> Result<(), Failure> {
        self.probes.fetch_add(1, Ordering::Relaxed);
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        let mood = *self.moods.lock().unwrap().get(&ip).unwrap_or(&Mood::Up);
        sleep(Duration::from_millis(match mood {
            Mood::Mute => 1000,
            Mood::Slow => 500,
            Mood::Up | Mood::Refusing => 3,
        }))
        .await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        match mood {
            Mood::Up | Mood::Slow => Ok(()),
            Mood::Mute => Err(Failure::timeout()),
            Mood::Refusing => Err(Failure { outcome: ProbeOutcome::Connect, message: "refused".into() }),
        }
    }
}

impl PodClient for Arc<Pods> {
    async fn status(&self, request: &Request) -> Result<Report, Failure> {
        self.answer(request.ip).await?;
        Ok(Report {
            epoch: 1,
            running_epoch: 1,
            waiting: Vec::new(),
            warnings: Vec::new(),
            limits: Vec::new(),
            hash: String::new(),
            refused: None,
            agents: Vec::new(),
            draining: Vec::new(),
        })
    }

    async fn card(&self, request: &Request) -> Result<CardSummary, Failure> {
        self.answer(request.ip).await?;
        Ok(CardSummary { name: "argocd".into(), protocol_version: "1.0".into(), latency_ms: 3 })
    }
}

struct Running {
    pods: Arc<Pods>,
    prober: Arc<Prober<Arc<Pods>>>,
    notified: mpsc::Receiver<Key>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    metrics: Arc<Metrics>,
}

fn start(max_concurrent: usize) -> Running {
    start_with(ProberOptions { max_concurrent, ..ProberOptions::default() })
}

fn start_with(options: ProberOptions) -> Running {
    let (notify, notified) = mpsc::channel(1);
    let (pods, metrics, stop) =
        (Arc::new(Pods::default()), Arc::new(Metrics::new()), CancellationToken::new());
    let prober = Prober::with(Arc::clone(&pods), options, Arc::clone(&metrics), notify);
    let task = tokio::spawn(Arc::clone(&prober).run(stop.clone()));
    Running { pods, prober, notified, stop, task, metrics }
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        timeout(Duration::from_secs(1), self.task).await.expect("it ends").unwrap();
    }

    /// The time until a change is reported.
    async fn notified(&mut self) -> (Key, Duration) {
        let begun = Instant::now();
        let notified =
            timeout(Duration::from_secs(30), self.notified.recv()).await.expect("somebody is told");
        (notified.unwrap(), begun.elapsed())
    }

    fn probes(&self) -> usize {
        self.pods.probes.load(Ordering::Relaxed)
    }
}

fn ip(number: usize) -> IpAddr {
    let [.., high, low] = number.to_be_bytes();
    [10, 0, high, low].into()
}

fn key(number: usize) -> Key {
    Key::new("team", &format!("supervisor-{number}"))
}

fn targets(number: usize, endpoints: Asked) -> Targets {
    let pods = [("pod".to_owned(), PodTarget { ip: ip(number), endpoints, agent: None })].into();
    Targets { pods, token: Some("secret".into()) }
}

fn result<L: PodClient>(prober: &Prober<L>, number: usize) -> ProbeResult {
    prober.results(&key(number)).remove("pod").unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_truth_is_shown_within_five_seconds() {
    let limit = Duration::from_secs(5);
    for mood in [Mood::Refusing, Mood::Mute] {
        let mut running = start(8);
        running.prober.watch(&key(1), targets(1, Asked::Both));
        let (notified, took) = running.notified().await;
        assert_eq!(notified, key(1));
        assert!(took < Duration::from_millis(10), "a new pod is looked at at once: {took:?}");
        for round in 0..20 {
            // At any moment between two looks.
            sleep(Duration::from_millis(3000 + 73 * round)).await;
            running.pods.mood(ip(1), mood);
            let (_, took) = running.notified().await;
            assert!(took <= limit, "{mood:?}, round {round}: {took:?}");
            let seen = result(&running.prober, 1);
            assert!(seen.report.is_none() && seen.card.is_none() && seen.failure.is_some(), "{seen:?}");
            sleep(Duration::from_millis(20_000 + 73 * round)).await;
            running.pods.mood(ip(1), Mood::Up);
            let (_, took) = running.notified().await;
            assert!(took <= limit, "{mood:?}, round {round}, back: {took:?}");
            assert_eq!(result(&running.prober, 1).failure, None);
        }
        running.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_while_nothing_matters() {
    let mut running = start(8);
    running.prober.watch(&key(1), targets(1, Asked::Both));
    running.notified().await;
    let before = running.probes();
    assert!(timeout(Duration::from_mins(1), running.notified.recv()).await.is_err());
    let probes = running.probes() - before;
    // Of the status every 2 to 2.5 s, and of the card every 10 to 12.5 s.
    assert!((28..=37).contains(&probes), "{probes} looks a minute");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_failure_between_successes_is_told_to_nobody() {
    let mut running = start(8);
    running.prober.watch(&key(1), targets(1, Asked::Card));
    running.notified().await;
    for _ in 0..20 {
        running.pods.mood(ip(1), Mood::Refusing);
        let before = running.probes();
        while running.probes() == before {
            sleep(Duration::from_millis(1)).await;
        }
        running.pods.mood(ip(1), Mood::Up);
        assert!(timeout(Duration::from_secs(4), running.notified.recv()).await.is_err());
        assert_eq!(result(&running.prober, 1).failure, None);
    }
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_pods_are_probed_within_bounds_and_each_change_is_reported() {
    let mut running = start(64);
    let all = 3000;
    for number in 0..all {
        running.prober.watch(&key(number), targets(number, Asked::Card));
    }
    assert_eq!(running.prober.registry().len(), all);
    let mut notified = std::collections::BTreeSet::new();
    // The reader is slow and its channel holds one.
    while notified.len() < all {
        notified.insert(running.notified().await.0);
    }
    for number in (0..all).step_by(100) {
        running.pods.mood(ip(number), Mood::Refusing);
    }
    let mut down = std::collections::BTreeSet::new();
    while down.len() < all / 100 {
        let (key, took) = running.notified().await;
        assert!(took < Duration::from_secs(5), "{took:?}");
        down.insert(key);
    }
    let expected: std::collections::BTreeSet<_> = (0..all).step_by(100).map(key).collect();
    assert_eq!(down, expected);
    assert_eq!(running.pods.most.load(Ordering::Relaxed), 64);
    running.end().await;
}

/// Probes this many pods until each has a result.
async fn all_known(running: &mut Running, pods: usize, mood: Mood) {
    for number in 0..pods {
        running.pods.mood(ip(number), mood);
        running.prober.watch(&key(number), targets(number, Asked::Card));
    }
    let mut notified = std::collections::BTreeSet::new();
    while notified.len() < pods {
        notified.insert(running.notified().await.0);
    }
}

#[tokio::test(start_paused = true)]
async fn few_looks_at_pods_that_answer_are_under_way_and_a_new_pod_need_not_wait_for_them() {
    let mut running = start_with(ProberOptions { max_routine: 2, ..ProberOptions::default() });
    all_known(&mut running, 1300, Mood::Up).await;
    running.pods.most.store(0, Ordering::Relaxed);
    let before = running.probes();
    sleep(Duration::from_secs(15)).await;
    assert_eq!(running.pods.most.load(Ordering::Relaxed), 2);
    // Two at a time, of 3 ms each, are as many as are due.
    let probes = running.probes() - before;
    assert!((7_000..=10_000).contains(&probes), "{probes} looks");
    running.prober.watch(&key(2000), targets(2000, Asked::Card));
    let (notified, took) = running.notified().await;
    assert_eq!(notified, key(2000));
    assert!(took < Duration::from_millis(10), "{took:?}");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_take_their_time_are_looked_at_as_often() {
    let mut running =
        start_with(ProberOptions { max_concurrent: 1024, max_routine: 32, ..ProberOptions::default() });
    all_known(&mut running, 1000, Mood::Slow).await;
    let before = running.probes();
    sleep(Duration::from_mins(1)).await;
    // Each takes half a second and 2 to 2.5 s until the next one.
    let probes = (running.probes() - before) / 1000;
    assert!((19..=25).contains(&probes), "{probes} looks at each in a minute");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_answer_hold_nobody_up() {
    let mut running = start(64);
    for number in 0..100 {
        running.pods.mood(ip(number), Mood::Mute);
        running.prober.watch(&key(number), targets(number, Asked::Card));
    }
    sleep(Duration::from_secs(20)).await;
    while running.notified.try_recv().is_ok() {
        tokio::task::yield_now().await;
    }
    running.prober.watch(&key(500), targets(500, Asked::Card));
    let (notified, took) = running.notified().await;
    assert_eq!(notified, key(500));
    assert!(took < Duration::from_secs(1), "{took:?}");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn probe_now_does_not_wait_for_the_schedule() {
    let mut running = start(8);
    running.prober.watch(&key(1), targets(1, Asked::Card));
    running.notified().await;
    sleep(Duration::from_millis(100)).await;
    let before = running.probes();
    running.prober.probe_now(&key(1));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(running.probes(), before + 1);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_looked_at_no_more() {
    let mut running = start(8);
    running.prober.watch(&key(1), targets(1, Asked::Card));
    running.notified().await;
    running.prober.forget(&key(1));
    let before = running.probes();
    sleep(Duration::from_secs(30)).await;
    assert_eq!((running.probes(), running.prober.registry().len()), (before, 0));
    assert!(running.prober.results(&key(1)).is_empty());
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_leads_no_more_looks_at_nothing() {
    let mut running = start(8);
    for number in 0..10 {
        running.prober.watch(&key(number), targets(number, Asked::Card));
        running.notified().await;
    }
    running.prober.probe_now(&key(1));
    running.prober.forget_all();
    let before = running.probes();
    sleep(Duration::from_secs(30)).await;
    assert!(running.probes() <= before + 1, "but for what was under way");
    assert_eq!(running.prober.registry().len(), 0);
    assert!(running.prober.results(&key(1)).is_empty());
    running.prober.watch(&key(1), targets(1, Asked::Card));
    assert_eq!(running.notified().await.0, key(1));
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn looks_are_counted() {
    let mut running = start(8);
    running.prober.watch(&key(1), targets(1, Asked::Both));
    running.notified().await;
    let text = running.metrics.encode().unwrap();
    assert!(text.contains("caipe_operator_probes_total{endpoint=\"card\",outcome=\"ok\"} 1\n"), "{text}");
    assert!(text.contains("caipe_operator_probe_duration_seconds_count{endpoint=\"status\"} 1\n"), "{text}");
    running.end().await;
}

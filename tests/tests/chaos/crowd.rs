//! People who ask, one question after the other, and look closely at what comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_tests::numbered::{Connection, Version};
use caipe_tests::stream::parts_text;
use serde_json::Value;

/// Whatever happens, an answer is there by then.
const DEADLINE: Duration = Duration::from_mins(1);

/// What they ask for; the number tells jobs apart.
pub(crate) const JOB: &str = "do job";

/// What came of all questions.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Jobs that were done, as the answer says.
    pub(crate) done: Vec<usize>,
    /// Jobs whose agent failed, with what the answer says instead.
    pub(crate) told: BTreeMap<usize, String>,
    /// The longest that anybody waited.
    pub(crate) longest: Duration,
}

impl Tally {
    /// What the answers said instead, and how many said so.
    pub(crate) fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for answer in self.told.values() {
            *reasons.entry(answer.as_str()).or_default() += 1;
        }
        reasons
    }
}

/// A crowd that is asking.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    people: Vec<tokio::task::JoinHandle<Result<Tally>>>,
}

impl Crowd {
    /// So many people begin to ask the supervisor at this base URL.
    pub(crate) fn gather(people: usize, url: &str) -> Self {
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(1)));
        let person = |_| tokio::spawn(ask_on(url.to_owned(), Arc::clone(&next), Arc::clone(&stop)));
        Self { people: (0..people).map(person).collect(), stop }
    }

    /// Lets everybody finish their question, and counts.
    pub(crate) async fn disperse(self) -> Result<Tally> {
        self.stop.store(true, Ordering::Relaxed);
        let mut whole = Tally::default();
        for person in self.people {
            let tally = person.await.context("somebody panicked")??;
            whole.done.extend(tally.done);
            whole.told.extend(tally.told);
            whole.longest = whole.longest.max(tally.longest);
        }
        Ok(whole)
    }
}

async fn ask_on(url: String, next: Arc<AtomicUsize>, stop: Arc<AtomicBool>) -> Result<Tally> {
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        let job = next.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let asked = tokio::time::timeout(DEADLINE, ask(&url, job)).await;
        let answer =
            asked.with_context(|| format!("job {job} hung"))?.with_context(|| format!("job {job}"))?;
        tally.longest = tally.longest.max(begin.elapsed());
        if answer.contains(&noted(job)) {
            tally.done.push(job);
        } else {
            ensure!(!answer.contains("noted "), "job {job} was answered with another: {answer}");
            tally.told.insert(job, answer);
        }
    }
    Ok(tally)
}

/// What the tool server notes of a job. The stop tells 1 from 10.
pub(crate) fn noted(job: usize) -> String {
    format!("{JOB} {job}.")
}

/// The answer to one question: a stream without gaps and repeats that ends well.
async fn ask(url: &str, job: usize) -> Result<String> {
    let mut connection = Connection::ask(url, Version::V0_3, &noted(job)).await?;
    let (mut expected, mut events) = (1, Vec::new());
    while let Some((number, event)) = connection.next().await {
        ensure!(number == Some(expected), "event {number:?} came where {expected} was due: {event}");
        expected += 1;
        events.push(event);
    }
    let last = events.last().context("nothing came")?;
    ensure!(last["final"] == true, "the stream was cut after {last}");
    ensure!(last["status"]["state"] == "completed", "the task ended as {}", last["status"]);
    notifications_are_paired(&events)?;
    Ok(result_of(&events))
}

/// What begins ends, once.
fn notifications_are_paired(events: &[Value]) -> Result<()> {
    const ACTIVITY: &str = "https://caipe.io/a2a/extensions/activity/v1";
    let mut calls: BTreeMap<String, i32> = BTreeMap::new();
    for event in events {
        let activity = &event["artifact"]["metadata"][ACTIVITY];
        let change = match activity["event"].as_str() {
            Some("agent_start" | "tool_start") => 1,
            Some("agent_end" | "tool_end") => -1,
            _ => continue,
        };
        let call = format!("{} {}", activity["agent"], activity["callId"]);
        let open = calls.entry(call.clone()).or_default();
        *open += change;
        ensure!(matches!(*open, 0 | 1), "{call} began or ended twice: {event}");
    }
    let open: Vec<_> = calls.iter().filter(|(_, open)| **open != 0).collect();
    ensure!(open.is_empty(), "never ended: {open:?}");
    Ok(())
}

fn result_of(events: &[Value]) -> String {
    let results = events.iter().filter(|event| event["artifact"]["name"] == "final_result");
    results.map(|event| parts_text(&event["artifact"]["parts"])).collect()
}

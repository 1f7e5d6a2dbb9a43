//! Lets the board and the pods meet: one scheduler for all supervisors.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::pod::Answers;
use super::pod_client::{HttpPodClient, Limits, PodClient};
use super::registry::{Job, ProbeRegistry};
use super::result::{ProbeResults, Targets};
use super::schedule::Urgency;
use crate::key::Key;
use crate::metrics::Metrics;
use crate::metrics::labels::{Endpoint, ProbeOutcome};

/// How long a look takes that is as much the operator's work as the pod's.
const BRIEF: Duration = Duration::from_millis(20);

/// How pods are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProberOptions {
    /// Looks at a time, over all supervisors.
    pub max_concurrent: usize,
    /// Of these, looks at pods that answered the last one, but for those that take long.
    pub max_routine: usize,
    /// What one look may take up.
    pub limits: Limits,
}

impl Default for ProberOptions {
    /// 256 looks at a time: a thousand pods that do not answer, each a second every four, keep 250 busy. Looks at pods
    /// that answer are short; more of them would only share the processor with the passes.
    fn default() -> Self {
        Self { max_concurrent: 256, max_routine: 16, limits: Limits::default() }
    }
}

/// Looks at the pods of all supervisors.
#[derive(Debug)]
pub struct Prober<L = HttpPodClient> {
    probe: L,
    max_concurrent: usize,
    /// Room for looks at pods that answered the last one.
    routine: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    notify: mpsc::Sender<Key>,
    registry: Mutex<ProbeRegistry>,
    /// There is something to look at earlier than was known.
    sooner: Notify,
    /// There is somebody to be told.
    notified: Notify,
}

impl Prober {
    /// Asks over HTTP. Whoever reads `notify` is sent each supervisor of which something changed that a status or a
    /// decision depends on; however slow the reader is, nothing is lost, and nobody waits. Nothing is looked at before
    /// [`Self::run`].
    ///
    /// # Errors
    /// When the system has no TLS to offer.
    pub fn new(
        options: ProberOptions,
        metrics: Arc<Metrics>,
        notify: mpsc::Sender<Key>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        Ok(Self::with(HttpPodClient::new(options.limits)?, options, metrics, notify))
    }
}

impl<L: PodClient> Prober<L> {
    /// Asks in another way.
    pub fn with(
        probe: L,
        options: ProberOptions,
        metrics: Arc<Metrics>,
        notify: mpsc::Sender<Key>,
    ) -> Arc<Self> {
        Arc::new(Self {
            probe,
            max_concurrent: options.max_concurrent.max(1),
            routine: Arc::new(Semaphore::new(options.max_routine.max(1))),
            metrics,
            notify,
            registry: Mutex::default(),
            sooner: Notify::new(),
            notified: Notify::new(),
        })
    }

    /// Looks at these pods of a supervisor, in place of those before. New ones are looked at at once; nothing happens to
    /// those that stay.
    pub fn watch(&self, key: &Key, targets: Targets) {
        self.registry().watch(key, targets, Instant::now());
        self.sooner.notify_one();
    }

    /// Looks at none of a supervisor's pods any more.
    pub fn forget(&self, key: &Key) {
        self.registry().forget(key);
    }

    /// Looks at nothing any more: another operator does.
    pub fn forget_all(&self) {
        self.registry().forget_all();
    }

    /// What is known of a supervisor's pods.
    pub fn results(&self, key: &Key) -> ProbeResults {
        self.registry().results(key)
    }

    /// Looks at all pods of a supervisor at once, for example after a new epoch was rendered.
    pub fn probe_now(&self, key: &Key) {
        self.registry().probe_now(key, Instant::now());
        self.sooner.notify_one();
    }

    /// How many pods are looked at.
    pub fn pods(&self) -> usize {
        self.registry().len()
    }

    /// Looks, until `stop`. Looks under way are given up then.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let telling = tokio::spawn(Arc::clone(&self).tell(stop.clone()));
        let mut probes = JoinSet::new();
        while let Some(job) = stop.run_until_cancelled(self.next_job(&mut probes)).await {
            let room = match job.urgency {
                Urgency::Routine => Arc::clone(&self.routine).try_acquire_owned().ok(),
                Urgency::Urgent => None,
            };
            probes.spawn(Arc::clone(&self).probe_with_permit(room, job));
        }
        probes.shutdown().await;
        // It ends by itself at `stop`.
        let _ = telling.await;
    }

    /// Looks. A look that takes its time takes no processor: it makes room for others meanwhile.
    async fn probe_with_permit(self: Arc<Self>, room: Option<OwnedSemaphorePermit>, job: Job) {
        let mut probe = pin!(Arc::clone(&self).probe(job));
        if timeout(BRIEF, probe.as_mut()).await.is_err() {
            drop(room);
            self.sooner.notify_one();
            probe.await;
        }
    }

    async fn next_job(&self, probes: &mut JoinSet<()>) -> Job {
        loop {
            while probes.try_join_next().is_some() {}
            if probes.len() >= self.max_concurrent {
                probes.join_next().await;
                continue;
            }
            let (job, due) = {
                let (mut registry, now) = (self.registry(), Instant::now());
                if registry.release(now) {
                    self.notified.notify_one();
                }
                let room = self.routine.available_permits() > 0;
                (registry.take(now, room), registry.next_due(room))
            };
            if let Some(job) = job {
                return job;
            }
            tokio::select! {
                () = at(due) => {}
                () = self.sooner.notified() => {}
                Some(_) = probes.join_next() => {}
            }
        }
    }

    async fn probe(self: Arc<Self>, job: Job) {
        let status = async {
            let begun = Instant::now();
            let seen = self.probe.status(&job.request).await;
            self.count(Endpoint::Status, begun, &seen);
            seen
        };
        let card = async {
            let begun = Instant::now();
            let seen = self.probe.card(&job.request).await;
            self.count(Endpoint::Card, begun, &seen);
            seen
        };
        let looked = match (job.endpoints.status(), job.endpoints.card()) {
            (true, true) => {
                let (status, card) = tokio::join!(status, card);
                Answers { status: Some(status), card: Some(card) }
            }
            (true, false) => Answers { status: Some(status.await), card: None },
            _ => Answers { status: None, card: Some(card.await) },
        };
        self.registry().learn(job.pod, looked, Instant::now(), fastrand::f64());
        self.notified.notify_one();
    }

    fn count<T>(&self, endpoints: Endpoint, begun: Instant, seen: &Result<T, Failure>) {
        let outcome = seen.as_ref().err().map_or(ProbeOutcome::Ok, |failure| failure.outcome);
        self.metrics.probed(endpoints, outcome, begun.elapsed());
    }

    /// Sends who has changed, as fast as they are taken.
    async fn tell(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let changed = self.registry().take_changed();
            let done = match changed {
                Some(key) => {
                    stop.run_until_cancelled(self.notify.send(key)).await.is_none_or(|sent| sent.is_err())
                }
                None => stop.run_until_cancelled(self.notified.notified()).await.is_none(),
            };
            if done {
                return;
            }
        }
    }

    /// Nothing panics while it is held.
    fn registry(&self) -> MutexGuard<'_, ProbeRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until then; for ever without a time.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;

//! One scheduler that probes the pods of all supervisors.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::OptionFuture;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::interval::Interval;
use super::pod::Answers;
use super::pod_client::{HttpPodClient, Limits, PodClient};
use super::probes::Probes;
use super::registry::{Job, ProbeRegistry};
use super::result::{ProbeResults, Targets};
use super::schedule::Urgency;
use crate::key::Key;
use crate::metrics::Metrics;
use crate::metrics::labels::{Endpoint, ProbeOutcome};

/// After this time a routine probe frees its slot: it waits for the pod and uses no processor.
const BRIEF: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProberOptions {
    /// The interval of probes of a responding pod.
    pub interval: Interval,
    /// Maximum number of concurrent probes.
    pub max_concurrent: usize,
    /// Maximum number of concurrent routine probes, except slow ones.
    pub max_routine: usize,
    /// Bounds of one probe.
    pub limits: Limits,
}

impl Default for ProberOptions {
    /// 256 concurrent probes: a thousand pods that do not respond, each probed for one second every four, keep 250
    /// busy. Probes of responding pods are short; more of them would only compete with reconciles.
    fn default() -> Self {
        Self {
            interval: Interval::default(),
            max_concurrent: 256,
            max_routine: 16,
            limits: Limits::default(),
        }
    }
}

/// Probes the pods of all supervisors.
#[derive(Debug)]
pub struct Prober<L = HttpPodClient> {
    probe: L,
    max_concurrent: usize,
    /// Slots of routine probes.
    routine: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    notify: mpsc::Sender<Key>,
    registry: Mutex<ProbeRegistry>,
    /// Wakes the scheduler: a probe may be due earlier.
    sooner: Notify,
    /// Wakes the notifier: results have changed.
    notified: Notify,
}

impl Prober {
    /// A prober over HTTP. It sends each supervisor with significant changes to `notify`; a slow reader loses nothing
    /// and blocks no probe. Probing starts with [`Self::run`].
    ///
    /// # Errors
    /// If no TLS provider is available.
    pub fn new(
        options: ProberOptions,
        metrics: Arc<Metrics>,
        notify: mpsc::Sender<Key>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        Ok(Self::with(HttpPodClient::new(options.limits)?, options, metrics, notify))
    }
}

impl<L: PodClient> Prober<L> {
    /// A prober with another client.
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
            registry: Mutex::new(ProbeRegistry::new(options.interval)),
            sooner: Notify::new(),
            notified: Notify::new(),
        })
    }

    /// Probes until `stop`. Probes in flight are dropped then.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let notifier = tokio::spawn(Arc::clone(&self).send_changes(stop.clone()));
        let mut probes = JoinSet::new();
        while let Some(job) = stop.run_until_cancelled(self.next_job(&mut probes)).await {
            let room = match job.urgency {
                Urgency::Routine => Arc::clone(&self.routine).try_acquire_owned().ok(),
                Urgency::Urgent => None,
            };
            probes.spawn(Arc::clone(&self).probe_with_permit(room, job));
        }
        probes.shutdown().await;
        // The notifier also ends at `stop`.
        let _ = notifier.await;
    }

    /// Probes. A slow probe frees its slot for others.
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
        let Job { pod, request, endpoints, .. } = job;
        let status = endpoints.status().then(|| self.counted(Endpoint::Status, self.probe.status(&request)));
        let card = endpoints.card().then(|| self.counted(Endpoint::Card, self.probe.card(&request)));
        let (status, card) = tokio::join!(OptionFuture::from(status), OptionFuture::from(card));
        self.registry().record(pod, Answers { status, card }, Instant::now(), fastrand::f64());
        self.notified.notify_one();
    }

    /// Counts a probe, with its latency.
    async fn counted<T>(
        &self,
        endpoint: Endpoint,
        probe: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let answer = probe.await;
        let outcome = answer.as_ref().err().map_or(ProbeOutcome::Ok, |failure| failure.outcome);
        self.metrics.probed(endpoint, outcome, begun.elapsed());
        answer
    }

    /// Sends changed supervisors as fast as the reader takes them.
    async fn send_changes(self: Arc<Self>, stop: CancellationToken) {
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

    fn registry(&self) -> MutexGuard<'_, ProbeRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: PodClient> Probes for Prober<L> {
    fn watch(&self, key: &Key, targets: Targets) {
        self.registry().watch(key, targets, Instant::now());
        self.sooner.notify_one();
    }

    fn forget(&self, key: &Key) {
        self.registry().forget(key);
    }

    fn forget_all(&self) {
        self.registry().forget_all();
    }

    fn results(&self, key: &Key) -> ProbeResults {
        self.registry().results(key)
    }

    fn probe_now(&self, key: &Key) {
        self.registry().probe_now(key, Instant::now());
        self.sooner.notify_one();
    }
}

/// Waits until `due`; forever without one.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;

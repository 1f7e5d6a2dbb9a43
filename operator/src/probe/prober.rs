//! Lets the board and the pods meet: one scheduler for all supervisors.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::board::{Board, Job};
use super::failure::Failure;
use super::look::{HttpLook, Limits, Look};
use super::pod::Looked;
use super::timetable::Urgency;
use super::view::{Targets, Views};
use crate::metrics::Metrics;
use crate::metrics::labels::{Ask, ProbeOutcome};
use crate::supervisor::key::Key;

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
pub struct Prober<L = HttpLook> {
    look: L,
    max_concurrent: usize,
    /// Room for looks at pods that answered the last one.
    routine: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    notify: mpsc::Sender<Key>,
    board: Mutex<Board>,
    /// There is something to look at earlier than was known.
    sooner: Notify,
    /// There is somebody to be told.
    told: Notify,
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
        Ok(Self::with(HttpLook::new(options.limits)?, options, metrics, notify))
    }
}

impl<L: Look> Prober<L> {
    /// Asks in another way.
    pub fn with(
        look: L,
        options: ProberOptions,
        metrics: Arc<Metrics>,
        notify: mpsc::Sender<Key>,
    ) -> Arc<Self> {
        Arc::new(Self {
            look,
            max_concurrent: options.max_concurrent.max(1),
            routine: Arc::new(Semaphore::new(options.max_routine.max(1))),
            metrics,
            notify,
            board: Mutex::default(),
            sooner: Notify::new(),
            told: Notify::new(),
        })
    }

    /// Looks at these pods of a supervisor, in place of those before. New ones are looked at at once; nothing happens to
    /// those that stay.
    pub fn watch(&self, key: &Key, targets: Targets) {
        self.board().watch(key, targets, Instant::now());
        self.sooner.notify_one();
    }

    /// Looks at none of a supervisor's pods any more.
    pub fn forget(&self, key: &Key) {
        self.board().forget(key);
    }

    /// Looks at nothing any more: another operator does.
    pub fn forget_all(&self) {
        self.board().forget_all();
    }

    /// What is known of a supervisor's pods.
    pub fn views(&self, key: &Key) -> Views {
        self.board().views(key)
    }

    /// Looks at all pods of a supervisor at once, for example after a new epoch was rendered.
    pub fn hurry(&self, key: &Key) {
        self.board().hurry(key, Instant::now());
        self.sooner.notify_one();
    }

    /// How many pods are looked at.
    pub fn pods(&self) -> usize {
        self.board().len()
    }

    /// Looks, until `stop`. Looks under way are given up then.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let telling = tokio::spawn(Arc::clone(&self).tell(stop.clone()));
        let mut looks = JoinSet::new();
        while let Some(job) = stop.run_until_cancelled(self.next_job(&mut looks)).await {
            let room = match job.urgency {
                Urgency::Routine => Arc::clone(&self.routine).try_acquire_owned().ok(),
                Urgency::Urgent => None,
            };
            looks.spawn(Arc::clone(&self).look_in(room, job));
        }
        looks.shutdown().await;
        // It ends by itself at `stop`.
        let _ = telling.await;
    }

    /// Looks. A look that takes its time takes no processor: it makes room for others meanwhile.
    async fn look_in(self: Arc<Self>, room: Option<OwnedSemaphorePermit>, job: Job) {
        let mut look = pin!(Arc::clone(&self).look(job));
        if timeout(BRIEF, look.as_mut()).await.is_err() {
            drop(room);
            self.sooner.notify_one();
            look.await;
        }
    }

    async fn next_job(&self, looks: &mut JoinSet<()>) -> Job {
        loop {
            while looks.try_join_next().is_some() {}
            if looks.len() >= self.max_concurrent {
                looks.join_next().await;
                continue;
            }
            let (job, due) = {
                let (mut board, now) = (self.board(), Instant::now());
                if board.release(now) {
                    self.told.notify_one();
                }
                let room = self.routine.available_permits() > 0;
                (board.take(now, room), board.next_due(room))
            };
            if let Some(job) = job {
                return job;
            }
            tokio::select! {
                () = at(due) => {}
                () = self.sooner.notified() => {}
                Some(_) = looks.join_next() => {}
            }
        }
    }

    async fn look(self: Arc<Self>, job: Job) {
        let status = async {
            let begun = Instant::now();
            let seen = self.look.status(&job.request).await;
            self.count(Ask::Status, begun, &seen);
            seen
        };
        let card = async {
            let begun = Instant::now();
            let seen = self.look.card(&job.request).await;
            self.count(Ask::Card, begun, &seen);
            seen
        };
        let looked = match (job.ask.status(), job.ask.card()) {
            (true, true) => {
                let (status, card) = tokio::join!(status, card);
                Looked { status: Some(status), card: Some(card) }
            }
            (true, false) => Looked { status: Some(status.await), card: None },
            _ => Looked { status: None, card: Some(card.await) },
        };
        self.board().learn(job.number, looked, Instant::now(), crate::chance::fraction());
        self.told.notify_one();
    }

    fn count<T>(&self, ask: Ask, begun: Instant, seen: &Result<T, Failure>) {
        let outcome = seen.as_ref().err().map_or(ProbeOutcome::Ok, |failure| failure.outcome);
        self.metrics.probed(ask, outcome, begun.elapsed());
    }

    /// Sends who has changed, as fast as they are taken.
    async fn tell(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let changed = self.board().take_changed();
            let done = match changed {
                Some(key) => {
                    stop.run_until_cancelled(self.notify.send(key)).await.is_none_or(|sent| sent.is_err())
                }
                None => stop.run_until_cancelled(self.told.notified()).await.is_none(),
            };
            if done {
                return;
            }
        }
    }

    /// Nothing panics while it is held.
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
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

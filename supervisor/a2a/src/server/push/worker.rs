//! Delivers one configuration's notifications, in order, from a task's log.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use caipe_net::Client;
use tokio::time::{Instant, sleep, sleep_until};
use url::{Position, Url};

use super::attempt::{headers, post};
use super::concurrency::Permits;
use super::jobs::{Job, Jobs};
use super::payload::{Payload, payloads};
use super::retry::{Backoff, Verdict};
use super::store::{PushStore, Registration};
use crate::model::TaskState;
use crate::server::log_entry::LoggedEvent;
use crate::server::task_log::TaskLog;

/// The time between two attempts to ask the store whether to deliver.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Most events that are read at once.
const MAX_EVENTS: usize = 8 * 1024;

/// The state that all workers share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn PushStore>,
    pub(super) jobs: Jobs,
    pub(super) client: Client,
    pub(super) permits: Permits,
    pub(super) backoff: Backoff,
    /// The time between notifications. A notification that the task ended or waits is sent at once.
    pub(super) pace: Duration,
    pub(super) attempt_timeout: Duration,
}

/// Delivers one configuration's notifications.
pub(super) struct Worker {
    shared: Arc<Shared>,
    job: Job,
    url: Url,
    headers: HeaderMap,
}

#[derive(Debug, PartialEq, Eq)]
enum Flow {
    /// The log is read to its end, but the task may continue in another one.
    Drained,
    /// Nothing is left to deliver, or the receiver is gone.
    Ended,
    /// Another process delivers, or the configuration is gone or another one.
    Left,
}

impl Worker {
    /// Delivers the events of `log` and of the logs that follow it, until the task ends.
    pub(super) async fn run(shared: Arc<Shared>, job: Job, mut log: Arc<TaskLog>) {
        let Ok(url) = job.registration.config.url.parse() else {
            tracing::warn!(task = job.registration.task, "a push configuration has no address");
            return finish(&shared, &job).await;
        };
        let headers = headers(&job.registration.config, job.registration.version);
        let mut worker = Self { shared, job, url, headers };
        loop {
            match worker.serve(&log).await {
                Flow::Ended => return finish(&worker.shared, &worker.job).await,
                Flow::Left => return worker.shared.jobs.finish(&worker.job),
                Flow::Drained => {}
            }
            match worker.shared.jobs.next_log(&worker.job, &log) {
                Some(next) => log = next,
                None => return release(&worker.shared, &worker.job).await,
            }
        }
    }

    async fn serve(&mut self, log: &Arc<TaskLog>) -> Flow {
        let mut not_before = Instant::now();
        if !self.is_admitted().await {
            return Flow::Left;
        }
        loop {
            if log.state().is_terminal() && self.registration().delivered >= log.last_seq() {
                return Flow::Ended;
            }
            let events = gather(log, self.registration().delivered, not_before).await;
            let Some(newest) = events.last().map(|event| event.seq()) else { return Flow::Drained };
            let read_after = self.registration().delivered;
            // This process may have been paused, or the configuration changed, while it waited.
            if !self.is_admitted().await {
                return Flow::Left;
            }
            if self.registration().delivered > read_after {
                continue;
            }
            let payloads = payloads(self.registration().version, log, &events).unwrap_or_else(|error| {
                tracing::error!(task = self.registration().task, %error, "failed to encode a notification");
                Vec::new()
            });
            for payload in payloads {
                match self.deliver(&payload).await {
                    Flow::Drained => {}
                    flow => return flow,
                }
                self.mark_delivered(payload.last);
            }
            self.mark_delivered(newest);
            if events.iter().any(|event| event.state().is_some_and(TaskState::is_terminal)) {
                return Flow::Ended;
            }
            save_progress(&self.shared, &self.job, self.registration().delivered).await;
            not_before = Instant::now() + self.shared.pace;
        }
    }

    /// Tries until the notification is delivered or refused. Gives up the configuration of a receiver that fails too long.
    async fn deliver(&mut self, payload: &Payload) -> Flow {
        let mut begun = None;
        let mut failed = 0_u32;
        loop {
            let result = {
                let _permit = self.shared.permits.acquire(self.host()).await;
                // The wait for a permit does not count.
                begun.get_or_insert_with(Instant::now);
                let (body, deadline) = (payload.body.clone(), self.shared.attempt_timeout);
                post(&self.shared.client, &self.url, self.headers.clone(), body, deadline).await
            };
            let asked = match result.verdict() {
                Verdict::Delivered => return Flow::Drained,
                verdict @ (Verdict::Skip | Verdict::Stop) => {
                    self.log_undelivered(payload, &result.to_string());
                    return if verdict == Verdict::Stop { Flow::Ended } else { Flow::Drained };
                }
                Verdict::Retry(asked) => asked,
            };
            failed = failed.saturating_add(1);
            let elapsed = begun.map(|begun| begun.elapsed()).unwrap_or_default();
            let Some(wait) = self.shared.backoff.wait(failed, elapsed, asked, fastrand::f64()) else {
                self.log_undelivered(payload, &format!("{result}; nothing more is sent there for this task"));
                return Flow::Ended;
            };
            tracing::debug!(task = self.registration().task, receiver = self.receiver(), %result, ?wait, "trying again");
            sleep(wait).await;
            if !self.is_admitted().await {
                return Flow::Left;
            }
        }
    }

    /// Whether this process is the one that delivers. Waits while the store is not available.
    async fn is_admitted(&mut self) -> bool {
        loop {
            match self.shared.store.admit(self.registration()).await {
                Ok(Some(delivered)) => {
                    self.mark_delivered(delivered);
                    return true;
                }
                Ok(None) => return false,
                Err(error) => {
                    tracing::warn!(task = self.registration().task, %error, "push notifications wait for the store");
                    sleep(STORE_PAUSE).await;
                }
            }
        }
    }

    const fn registration(&self) -> &Registration {
        &self.job.registration
    }

    /// The limits are per host: a receiver with several ports does not get more.
    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Scheme, host and port: the rest of a URL may be a secret.
    fn receiver(&self) -> &str {
        &self.url[..Position::BeforePath]
    }

    fn log_undelivered(&self, payload: &Payload, reason: &str) {
        let (task, receiver) = (&self.registration().task, self.receiver());
        tracing::warn!(task, receiver, event = payload.last, reason, "a push notification was not delivered");
    }

    fn mark_delivered(&mut self, seq: u64) {
        let delivered = &mut self.job.registration.delivered;
        *delivered = seq.max(*delivered);
    }
}

async fn finish(shared: &Shared, job: &Job) {
    save_progress(shared, job, Registration::DONE).await;
    release(shared, job).await;
    shared.jobs.finish(job);
}

async fn release(shared: &Shared, job: &Job) {
    let Registration { task, id, .. } = &job.registration;
    if let Err(error) = shared.store.release(task, id).await {
        tracing::debug!(task, %error, "another process delivers push notifications a little later");
    }
}

/// Saves the progress, unless the configuration was replaced: an aborted worker may still run for a moment. If saving
/// fails, a restart delivers some notifications twice.
async fn save_progress(shared: &Shared, job: &Job, seq: u64) {
    let Registration { task, id, .. } = &job.registration;
    // Another process may have replaced it, too.
    if !shared.jobs.is_current(job) || matches!(shared.store.admit(&job.registration).await, Ok(None)) {
        return;
    }
    if let Err(error) = shared.store.delivered(task, id, seq).await {
        tracing::warn!(task, seq, %error, "failed to save the progress of a push configuration");
    }
}

/// The next events after `after`, up to `not_before` or until the task ends or waits. Empty once the log is closed and
/// read to its end.
async fn gather(log: &Arc<TaskLog>, after: u64, not_before: Instant) -> Vec<Arc<LoggedEvent>> {
    let mut cursor = log.cursor(after);
    let mut events: Vec<_> = cursor.next().await.into_iter().collect();
    let mut urgent = events.iter().any(is_urgent);
    while !events.is_empty() && events.len() < MAX_EVENTS {
        if let Some(event) = cursor.ready() {
            urgent |= is_urgent(&event);
            events.push(event);
            continue;
        }
        if urgent || Instant::now() >= not_before {
            break;
        }
        let next = tokio::select! {
            next = cursor.next() => next,
            () = sleep_until(not_before) => continue,
        };
        let Some(event) = next else { break };
        urgent |= is_urgent(&event);
        events.push(event);
    }
    events
}

fn is_urgent(event: &Arc<LoggedEvent>) -> bool {
    event.state().is_some_and(TaskState::ends_stream)
}

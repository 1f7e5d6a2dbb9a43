//! Delivers one configuration's notifications, in order, from a task's log.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use caipe_net::Client;
use tokio::time::{Instant, sleep, sleep_until};
use url::{Position, Url};
use uuid::Uuid;

use super::counts::Counts;
use super::desk::{Desk, Job};
use super::lanes::Lanes;
use super::payload::{Payload, payloads};
use super::policy::{Backoff, Verdict};
use super::post::{headers, post};
use super::store::{PushStore, Registration};
use crate::model::TaskState;
use crate::server::log::TaskLog;
use crate::server::logged::LoggedEvent;

/// Most events that are told of at once.
const MOST_EVENTS: usize = 8 * 1024;

/// What all workers share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn PushStore>,
    pub(super) desk: Desk,
    pub(super) client: Client,
    pub(super) lanes: Lanes,
    pub(super) counts: Counts,
    pub(super) backoff: Backoff,
    /// How long to wait after a notification before the next, unless it tells that the task ended or waits.
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

/// Whether anything may come yet.
#[derive(Debug, PartialEq, Eq)]
enum Flow {
    /// The log is read to its end, but the task may go on.
    Drained,
    /// Nothing is left to be told, or nobody to tell it to.
    Ended,
}

impl Worker {
    /// Delivers what comes in `log`, and in those that follow it, until the task has ended or its log has.
    pub(super) async fn run(shared: Arc<Shared>, job: Job, mut log: Arc<TaskLog>) {
        let Ok(url) = job.registration.config.url.parse() else {
            tracing::warn!(task = job.registration.task, "a push configuration has no address");
            return finish(&shared, &job).await;
        };
        let headers = headers(&job.registration.config, job.registration.version);
        let mut worker = Self { shared, job, url, headers };
        loop {
            if worker.serve(&log).await == Flow::Ended {
                return finish(&worker.shared, &worker.job).await;
            }
            match worker.shared.desk.next_log(&worker.job, &log) {
                Some(next) => log = next,
                None => return,
            }
        }
    }

    async fn serve(&mut self, log: &Arc<TaskLog>) -> Flow {
        let mut not_before = Instant::now();
        loop {
            if log.state().is_terminal() && self.registration().delivered >= log.last_seq() {
                return Flow::Ended;
            }
            let events = gather(log, self.registration().delivered, not_before).await;
            let Some(newest) = events.last().map(|event| event.seq()) else { return Flow::Drained };
            let told = payloads(self.registration().version, log, &events).unwrap_or_else(|error| {
                tracing::error!(task = self.registration().task, %error, "failed to encode a notification");
                Vec::new()
            });
            for payload in told {
                if self.deliver(&payload).await == Flow::Ended {
                    return Flow::Ended;
                }
                self.passed(payload.last);
            }
            self.passed(newest);
            if events.iter().any(|event| event.event().state().is_some_and(TaskState::is_terminal)) {
                return Flow::Ended;
            }
            self.note().await;
            not_before = Instant::now() + self.shared.pace;
        }
    }

    /// Tries until it arrived, or will not. Whoever takes nothing until the time is over is given up altogether.
    async fn deliver(&self, payload: &Payload) -> Flow {
        let mut begun = None;
        let mut failed = 0_u32;
        loop {
            let answer = {
                let _lane = self.shared.lanes.enter(self.host()).await;
                // The wait for a lane is not the receiver's fault.
                begun.get_or_insert_with(Instant::now);
                let (body, deadline) = (payload.body.clone(), self.shared.attempt_timeout);
                post(&self.shared.client, &self.url, self.headers.clone(), body, deadline).await
            };
            let verdict = answer.verdict();
            self.shared.counts.attempt(&verdict);
            let asked = match verdict {
                Verdict::Delivered => return Flow::Drained,
                Verdict::Skip => {
                    self.gives_up(payload, &answer.to_string());
                    return Flow::Drained;
                }
                Verdict::Stop => {
                    self.gives_up(payload, &answer.to_string());
                    return Flow::Ended;
                }
                Verdict::Again(asked) => asked,
            };
            failed = failed.saturating_add(1);
            let elapsed = begun.map(|begun| begun.elapsed()).unwrap_or_default();
            let Some(wait) = self.shared.backoff.wait(failed, elapsed, asked, jitter()) else {
                // To try each later notification as long would hold on to the log for days.
                self.shared.counts.gave_up();
                self.gives_up(payload, &format!("{answer}; nothing more is sent there for this task"));
                return Flow::Ended;
            };
            tracing::debug!(task = self.registration().task, receiver = self.receiver(), %answer, ?wait, "trying again");
            sleep(wait).await;
        }
    }

    const fn registration(&self) -> &Registration {
        &self.job.registration
    }

    /// What bounds on deliveries go by: a receiver cannot have more of them by having more ports.
    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Scheme, host and port: the rest of an address may be a secret.
    fn receiver(&self) -> &str {
        &self.url[..Position::BeforePath]
    }

    fn gives_up(&self, payload: &Payload, reason: &str) {
        let (task, receiver) = (&self.registration().task, self.receiver());
        tracing::warn!(task, receiver, event = payload.last, reason, "a push notification was not delivered");
    }

    fn passed(&mut self, seq: u64) {
        let delivered = &mut self.job.registration.delivered;
        *delivered = seq.max(*delivered);
    }

    /// Notes how far this is. Where that fails, a restart tells some things twice.
    async fn note(&self) {
        note(&self.shared, &self.job, self.registration().delivered).await;
    }
}

async fn finish(shared: &Shared, job: &Job) {
    note(shared, job, Registration::DONE).await;
    shared.desk.done(job);
}

/// A worker that is to stop may still be at it for a moment: it must not speak for the configuration that replaces
/// its own.
async fn note(shared: &Shared, job: &Job, seq: u64) {
    let Registration { task, id, .. } = &job.registration;
    if !shared.desk.has(job) {
        return;
    }
    if let Err(error) = shared.store.delivered(task, id, seq).await {
        tracing::warn!(task, seq, %error, "failed to note how far a push configuration was served");
    }
}

/// The next events after `after`: what has come by `not_before`, or by the moment that the task ends or waits. Empty
/// once the log is closed and read to its end.
async fn gather(log: &Arc<TaskLog>, after: u64, not_before: Instant) -> Vec<Arc<LoggedEvent>> {
    let mut cursor = log.cursor(after);
    let mut events: Vec<_> = cursor.next().await.into_iter().collect();
    let mut urgent = events.iter().any(is_urgent);
    while !events.is_empty() && events.len() < MOST_EVENTS {
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
    event.event().state().is_some_and(TaskState::ends_stream)
}

/// A number in `0..1`.
fn jitter() -> f64 {
    let [a, b, c, d, ..] = *Uuid::new_v4().as_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
}

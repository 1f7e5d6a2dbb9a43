//! Runs leader election against the API server.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::contender::{Act, Answer, Contender, Moment, Seen, Spans};
use super::leadership::{Leadership, LeadershipState, Until};
use super::{LeaseOptions, record};
use crate::kind::Kind;
use crate::labels;
use crate::metrics::Metrics;
use crate::metrics::labels::{Category, Verb};

/// Runs leader election until `stop`, then releases the lease so that the next leader starts at once. Cancel `stop`
/// after the last write.
///
/// No error ends the task.
pub fn elect(
    client: Client,
    options: LeaseOptions,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> (Leadership, JoinHandle<()>) {
    let (state, seen) = watch::channel(LeadershipState::default());
    let spans = Spans::of(options.duration);
    let elector = LeaderElector {
        api: Api::namespaced(client, &options.namespace),
        contender: Contender::new(&options.identity, spans),
        spans,
        options,
        metrics,
        state,
        start: Instant::now(),
        newest: None,
        waits_for: None,
    };
    (Leadership::new(seen), tokio::spawn(elector.run(stop)))
}

struct LeaderElector {
    api: Api<Lease>,
    contender: Contender,
    spans: Spans,
    options: LeaseOptions,
    metrics: Arc<Metrics>,
    state: watch::Sender<LeadershipState>,
    start: Instant,
    /// The last read or written object.
    newest: Option<Lease>,
    /// The holder that was logged last.
    waits_for: Option<String>,
}

impl LeaderElector {
    async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.step(&stop).await;
        }
        self.release().await;
    }

    fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// Only waiting is interrupted: an interrupted write would leave a version that the release does not know.
    async fn step(&mut self, stop: &CancellationToken) {
        let sent = self.now();
        let answer = match self.contender.act(sent) {
            Act::Wait(time) => {
                stop.run_until_cancelled(self.rest(time)).await;
                return self.publish_and_log();
            }
            Act::Read => self.read().await,
            Act::Create => self.create().await,
            Act::Take(version) => self.take(version).await,
        };
        let now = self.now();
        tracing::debug!(?answer, took_ms = now.saturating_sub(sent).as_millis(), "handled the lease");
        self.contender.learn(sent, now, answer, fastrand::f64());
        self.publish_and_log();
    }

    /// Sleeps, at most until leadership ends.
    async fn rest(&self, time: Duration) {
        let left = self.contender.until().map(|until| until.saturating_sub(self.now()));
        match left.filter(|left| !left.is_zero() && *left < time) {
            Some(left) => tokio::time::sleep(left).await,
            None => tokio::time::sleep(time).await,
        }
    }

    fn publish_and_log(&mut self) {
        let (before, after) = self.publish();
        match (before, after) {
            (false, true) => tracing::info!(identity = self.options.identity, "became the leader"),
            (true, false) => tracing::warn!(identity = self.options.identity, "is no longer the leader"),
            _ => {}
        }
        if after {
            self.waits_for = None;
        } else if let Some(holder) = self.another_holder() {
            let LeaseOptions { namespace, name, .. } = &self.options;
            tracing::info!(lease = %format_args!("{namespace}/{name}"), holder, "waits for the lease, which another operator holds");
            self.waits_for = Some(holder);
        }
    }

    /// The holder, if it is another operator and was not logged yet.
    fn another_holder(&self) -> Option<String> {
        let holder = record::seen(self.newest.as_ref()?)?.holder?;
        let is_known = holder == self.options.identity || self.waits_for.as_ref() == Some(&holder);
        (!is_known).then_some(holder)
    }

    /// Publishes the state. Returns whether this process led before and leads now.
    fn publish(&self) -> (bool, bool) {
        let now = self.now();
        let until = self.contender.until().filter(|until| now < *until);
        let state = LeadershipState {
            known: self.contender.answered(),
            until: until.map(|until| Until::Time(self.start + until)),
        };
        let before = self.state.send_replace(state);
        self.metrics.leads(until.is_some());
        (before.until.is_some(), until.is_some())
    }

    async fn read(&mut self) -> Answer {
        let name = self.options.name.clone();
        match self.within(self.api.get_opt(&name)).await {
            Some(Ok(Some(lease))) => self.record_answer(lease, Answer::Found),
            Some(Ok(None)) => {
                self.newest = None;
                Answer::Absent
            }
            other => failed(other),
        }
    }

    async fn create(&mut self) -> Answer {
        let lease = record::held(None, &self.options, Timestamp::now());
        self.metrics.count_write(Kind::Lease, Verb::Create);
        let created = self.within(self.api.create(&params(), &lease)).await;
        self.written(created)
    }

    async fn take(&mut self, version: String) -> Answer {
        let lease = record::held(self.newest.as_ref(), &self.options, Timestamp::now());
        let replaced = self.replace(lease, version).await;
        self.written(replaced)
    }

    async fn replace(&self, mut lease: Lease, version: String) -> Option<kube::Result<Lease>> {
        lease.metadata.resource_version = Some(version);
        self.metrics.count_write(Kind::Lease, Verb::Replace);
        self.within(self.api.replace(&self.options.name, &params(), &lease)).await
    }

    fn written(&mut self, result: Option<kube::Result<Lease>>) -> Answer {
        match result {
            Some(Ok(lease)) => self.record_answer(lease, Answer::Written),
            other => failed(other),
        }
    }

    fn record_answer(&mut self, lease: Lease, answer: impl FnOnce(Seen) -> Answer) -> Answer {
        let Some(seen) = record::seen(&lease) else { return Answer::Failed };
        self.newest = Some(lease);
        answer(seen)
    }

    /// Bounds a call by the renewal interval, and a leader's call by its leadership.
    async fn within<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Option<kube::Result<T>> {
        let left = self.contender.until().map(|until| until.saturating_sub(self.now()));
        let left = left.filter(|left| !left.is_zero()).unwrap_or(self.spans.renew);
        timeout(left.min(self.spans.renew), call).await.ok()
    }

    async fn release(mut self) {
        let version = self.contender.resign(self.now());
        self.publish();
        let (Some(version), Some(newest)) = (version, &self.newest) else { return };
        let lease = record::released(newest, &self.options, Timestamp::now());
        match self.replace(lease, version).await {
            Some(Ok(_)) => tracing::info!("released the lease"),
            Some(Err(error)) => {
                tracing::warn!(%error, "failed to release the lease; the next leader waits until it expires");
            }
            None => {
                tracing::warn!("failed to release the lease in time; the next leader waits until it expires");
            }
        }
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some(labels::MANAGER.to_owned()), ..PostParams::default() }
}

/// Classifies a failure. Replacing a deleted lease is a conflict.
fn failed<T>(result: Option<kube::Result<T>>) -> Answer {
    match result {
        Some(Err(error)) => match Category::of(&error) {
            Category::Conflict => Answer::Conflict,
            category => {
                tracing::warn!(category = category.as_str(), %error, "failed to renew the lease");
                if category == Category::NotFound { Answer::Conflict } else { Answer::Failed }
            }
        },
        Some(Ok(_)) => Answer::Failed,
        None => {
            tracing::warn!("failed to renew the lease: the API server did not answer in time");
            Answer::Failed
        }
    }
}

#[cfg(test)]
#[path = "elector_tests.rs"]
mod tests;

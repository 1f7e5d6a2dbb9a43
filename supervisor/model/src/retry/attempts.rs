//! The decorators: one loop over attempts, in which the decorator chooses the next attempt.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::{RetryPolicy, is_providers_fault};
use crate::chat::{ChatModel, ChatRequest, ModelError, ModelErrorKind, ModelEvent, ModelStream};

/// Tries a model again while its failure is transient and nothing was shown yet.
#[derive(Debug)]
pub struct Retrying {
    policy: RetryPolicy,
    model: Arc<dyn ChatModel>,
}

impl Retrying {
    pub fn new(model: Arc<dyn ChatModel>, policy: RetryPolicy) -> Self {
        Self { policy, model }
    }
}

impl ChatModel for Retrying {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        let model = Arc::clone(&self.model);
        relay(Again { model, policy: self.policy, began: Instant::now(), failed: 0 }, request, cancel)
    }
}

struct Again {
    model: Arc<dyn ChatModel>,
    policy: RetryPolicy,
    began: Instant,
    failed: u32,
}

impl Plan for Again {
    fn model(&self) -> &dyn ChatModel {
        self.model.as_ref()
    }

    fn after(&mut self, error: &ModelError) -> Option<Duration> {
        self.failed += 1;
        let wait = self.policy.next(self.failed, self.began.elapsed(), error, fastrand::f64())?;
        tracing::warn!(model = %error.model, category = error.kind.category(), failed = self.failed,
            wait = ?wait, "a model turn is tried again: {}", error.message);
        Some(wait)
    }
}

/// Several models, of which the first that works answers.
#[derive(Debug)]
pub struct Fallback {
    others: Arc<[Arc<dyn ChatModel>]>,
    first: Arc<dyn ChatModel>,
}

impl Fallback {
    /// Asks `first`, and if its provider fails, the others in order.
    pub fn new(first: Arc<dyn ChatModel>, others: impl IntoIterator<Item = Arc<dyn ChatModel>>) -> Self {
        Self { others: others.into_iter().collect(), first }
    }
}

impl ChatModel for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        let plan = Onward { current: Arc::clone(&self.first), others: Arc::clone(&self.others), next: 0 };
        relay(plan, request, cancel)
    }
}

struct Onward {
    current: Arc<dyn ChatModel>,
    others: Arc<[Arc<dyn ChatModel>]>,
    next: usize,
}

impl Plan for Onward {
    fn model(&self) -> &dyn ChatModel {
        self.current.as_ref()
    }

    fn after(&mut self, error: &ModelError) -> Option<Duration> {
        let other = self.others.get(self.next).filter(|_| is_providers_fault(error.kind))?;
        tracing::warn!(model = %error.model, category = error.kind.category(), next = other.name(),
            "a model failed, the next one is asked: {}", error.message);
        self.current = Arc::clone(other);
        self.next += 1;
        Some(Duration::ZERO)
    }
}

/// Chooses the model of each attempt, and what follows a failure before anything was shown.
trait Plan: Send + Sync + 'static {
    /// The model of the next attempt.
    fn model(&self) -> &dyn ChatModel;
    /// How long to wait for the next attempt, or `None` to give up.
    fn after(&mut self, error: &ModelError) -> Option<Duration>;
}

struct Relay<P> {
    plan: P,
    request: ChatRequest,
    cancel: CancellationToken,
    attempt: Option<ModelStream>,
    shown: bool,
    over: bool,
}

/// The events of the attempts of a plan, as one stream.
fn relay(plan: impl Plan, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
    let relay = Relay { plan, request, cancel, attempt: None, shown: false, over: false };
    stream::unfold(Box::new(relay), |mut relay| async move { relay.step().await.map(|item| (item, relay)) })
        .boxed()
}

impl<P: Plan> Relay<P> {
    async fn step(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        while !self.over {
            let (plan, request, cancel) = (&self.plan, &self.request, &self.cancel);
            let attempt =
                self.attempt.get_or_insert_with(|| plan.model().stream(request.clone(), cancel.clone()));
            match attempt.next().await? {
                Ok(event) => {
                    self.shown |= is_visible(&event);
                    return Some(Ok(event));
                }
                Err(error) => {
                    if let Err(error) = self.recover(error).await {
                        self.over = true;
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }

    async fn recover(&mut self, error: ModelError) -> Result<(), ModelError> {
        // Closes the connection of the failed attempt before the wait.
        self.attempt = None;
        let wait = if self.shown { None } else { self.plan.after(&error) };
        let Some(wait) = wait else { return Err(error) };
        tokio::select! {
            () = self.cancel.cancelled() => {
                Err(ModelError { kind: ModelErrorKind::Cancelled, message: "cancelled".into(), retry_after: None, ..error })
            }
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }
}

fn is_visible(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::TextDelta(text) => !text.is_empty(),
        ModelEvent::ToolCallStart { .. } | ModelEvent::ToolArgsDelta { .. } | ModelEvent::Finish(_) => true,
        ModelEvent::ReasoningDelta(_) => false,
    }
}

#[cfg(test)]
#[path = "attempts_tests.rs"]
mod tests;

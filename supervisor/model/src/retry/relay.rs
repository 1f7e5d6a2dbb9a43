//! The decorators: one loop over attempts, with the choice of the next attempt left to the decorator.

use std::hash::{BuildHasher, RandomState};
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
pub struct Retrying<M: ?Sized> {
    policy: RetryPolicy,
    model: Arc<M>,
}

impl<M: ChatModel + ?Sized> Retrying<M> {
    /// The model with the policy around it.
    pub fn new(model: Arc<M>, policy: RetryPolicy) -> Self {
        Self { policy, model }
    }
}

impl<M: ChatModel + ?Sized + 'static> ChatModel for Retrying<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        let (model, policy, began) = (Arc::clone(&self.model), self.policy, Instant::now());
        let mut failed = 0;
        relay(cancel.clone(), model.stream(request.clone(), cancel.clone()), move |error| {
            failed += 1;
            let wait = policy.next(failed, began.elapsed(), error, jitter())?;
            tracing::warn!(model = %error.model, category = error.kind.category(), failed,
                wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), "a model turn is tried again: {}", error.message);
            Some((wait, model.stream(request.clone(), cancel.clone())))
        })
    }
}

/// Several models, of which the first that works answers.
#[derive(Debug)]
pub struct Fallback {
    models: Arc<[Arc<dyn ChatModel>]>,
    first: Arc<dyn ChatModel>,
}

impl Fallback {
    /// `first`, and the others to turn to in order when it fails for the provider's own fault.
    pub fn new(first: Arc<dyn ChatModel>, others: impl IntoIterator<Item = Arc<dyn ChatModel>>) -> Self {
        Self { models: others.into_iter().collect(), first }
    }
}

impl ChatModel for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        let models = Arc::clone(&self.models);
        let mut next = 0;
        relay(cancel.clone(), self.first.stream(request.clone(), cancel.clone()), move |error| {
            let model = models.get(next).filter(|_| is_providers_fault(error.kind))?;
            next += 1;
            tracing::warn!(model = %error.model, category = error.kind.category(), next = model.name(),
                "a model failed, the next one is asked: {}", error.message);
            Some((Duration::ZERO, model.stream(request.clone(), cancel.clone())))
        })
    }
}

struct Relay<F> {
    cancel: CancellationToken,
    attempt: ModelStream,
    shown: bool,
    over: bool,
    next: F,
}

/// Passes an attempt's events on. Should it fail with nothing shown, `next` says how long to wait and which
/// attempt comes then.
fn relay<F>(cancel: CancellationToken, first: ModelStream, next: F) -> ModelStream
where
    F: FnMut(&ModelError) -> Option<(Duration, ModelStream)> + Send + 'static,
{
    let relay = Relay { cancel, attempt: first, shown: false, over: false, next };
    stream::unfold(relay, |mut relay| async move { relay.step().await.map(|item| (item, relay)) }).boxed()
}

impl<F: FnMut(&ModelError) -> Option<(Duration, ModelStream)>> Relay<F> {
    async fn step(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        while !self.over {
            match self.attempt.next().await? {
                Ok(event) => {
                    self.shown |= is_visible(&event);
                    return Some(Ok(event));
                }
                Err(error) => {
                    if let Err(error) = self.recover(error).await {
                        return Some(Err(error));
                    }
                }
            }
        }
        None
    }

    async fn recover(&mut self, error: ModelError) -> Result<(), ModelError> {
        let next = if self.shown { None } else { (self.next)(&error) };
        let Some((wait, attempt)) = next else {
            self.end();
            return Err(error);
        };
        // The broken attempt's connection is let go before the wait, not after it.
        self.attempt = attempt;
        tokio::select! {
            () = self.cancel.cancelled() => {
                self.end();
                Err(ModelError { kind: ModelErrorKind::Cancelled, message: "cancelled".into(), retry_after: None, ..error })
            }
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    fn end(&mut self) {
        self.over = true;
        self.attempt = stream::empty().boxed();
    }
}

fn is_visible(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::TextDelta(text) => !text.is_empty(),
        ModelEvent::ToolCallStart { .. } | ModelEvent::ToolArgsDelta { .. } | ModelEvent::Finish(_) => true,
        ModelEvent::ReasoningDelta(_) => false,
    }
}

/// A number in `0..1`, good enough to spread retries.
fn jitter() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;

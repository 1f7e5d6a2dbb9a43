//! Counts the calls of a model, their outcomes and their tokens.

use std::sync::Arc;

use caipe_model::{ChatModel, ChatRequest, ModelError, ModelEvent, ModelStream};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{Metrics, metrics};

/// A model whose calls are counted.
#[derive(Debug)]
pub(crate) struct CountedModel(pub(crate) Arc<dyn ChatModel>);

impl ChatModel for CountedModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        self.0.stream(request, cancel).inspect(|item| count(metrics(), item)).boxed()
    }
}

/// The end of a turn is its only event that counts.
fn count(metrics: &Metrics, item: &Result<ModelEvent, ModelError>) {
    match item {
        Ok(ModelEvent::Finish(completion)) => metrics.model_finished(completion.usage),
        Err(error) => metrics.model_failed(error.kind),
        Ok(_) => {}
    }
}

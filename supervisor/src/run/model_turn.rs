//! One turn of the model, as inputs of a run.

use std::panic::AssertUnwindSafe;

use caipe_engine::{Input, ModelDelta, ModelFailure};
use caipe_model::{ChatRequest, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use futures::{FutureExt, StreamExt};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, Span};

use crate::agent::Agent;

/// The turn under way, if there is one. Dropping it cancels the call of the model.
#[derive(Default)]
pub(super) struct ModelTurn(Option<Turn>);

struct Turn {
    number: u32,
    stream: ModelStream,
    /// Whether pieces are passed on; if not, only the complete turn is.
    streaming: bool,
    span: Span,
    _cancel: DropGuard,
}

impl ModelTurn {
    /// Asks the agent's model.
    pub(super) fn start(agent: &Agent, number: u32, request: ChatRequest, cancel: CancellationToken) -> Self {
        let (model, guard) = (&agent.model, cancel.clone().drop_guard());
        let span = tracing::debug_span!("model", agent = %agent.name, turn = number, model = model.name());
        let stream = span.in_scope(|| model.stream(request, cancel));
        Self(Some(Turn { number, stream, streaming: agent.streaming, span, _cancel: guard }))
    }

    /// The next input; never completes without a turn. The last input of a turn ends it. Cancel-safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let Some(turn) = &mut self.0 else { return std::future::pending().await };
            let next = AssertUnwindSafe(turn.stream.next()).catch_unwind();
            let input = match next.instrument(turn.span.clone()).await {
                Ok(Some(item)) => model_input(turn.number, item),
                Ok(None) => Some(failed(turn.number, "the model's stream ended without an answer")),
                Err(_) => {
                    tracing::error!("the model client panicked");
                    Some(failed(turn.number, "the model client broke down"))
                }
            };
            match input {
                Some(Input::ModelDelta { .. }) if !turn.streaming => {}
                Some(delta @ Input::ModelDelta { .. }) => return delta,
                Some(last) => {
                    self.0 = None;
                    return last;
                }
                None => {}
            }
        }
    }
}

fn failed(turn: u32, message: &str) -> Input {
    Input::ModelFailed { turn, error: failed_turn(message) }
}

fn failed_turn(message: &str) -> ModelFailure {
    ModelFailure { kind: ModelErrorKind::Truncated, message: message.to_owned() }
}

fn model_input(turn: u32, item: Result<ModelEvent, ModelError>) -> Option<Input> {
    let delta = match item {
        Ok(ModelEvent::TextDelta(text)) => ModelDelta::Text { text },
        Ok(ModelEvent::ToolCallStart { id, name }) => ModelDelta::CallStart { id, name },
        Ok(ModelEvent::ToolArgsDelta { id, delta }) => ModelDelta::CallArguments { id, text: delta },
        Ok(ModelEvent::ReasoningDelta(_)) => return None,
        Ok(ModelEvent::Finish(completion)) => return Some(Input::ModelFinished { turn, completion }),
        Err(error) if error.kind == ModelErrorKind::Cancelled => {
            return Some(Input::ModelFailed { turn, error: ModelFailure::from(&error) });
        }
        Err(error) => {
            tracing::warn!(kind = error.kind.category(), %error, "model turn failed");
            return Some(Input::ModelFailed { turn, error: ModelFailure::from(&error) });
        }
    };
    Some(Input::ModelDelta { turn, delta })
}

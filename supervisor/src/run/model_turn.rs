//! One turn of the model, as inputs of a run.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use caipe_engine::{Input, ModelDelta, ModelFailure, RunState};
use caipe_model::{ChatRequest, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, Span};

use crate::agent::Agent;

/// How long the pieces of a fast model are gathered, so that each does not wake the client's connection.
const GATHER: Duration = Duration::from_millis(2);

/// A piece that comes sooner after the last one is that of a fast model; any other is passed on at once. It is longer than a
/// pause to gather.
const FAST: Duration = Duration::from_millis(5);

/// The turn under way, if there is one. Dropping it cancels the call of the model.
#[derive(Default)]
pub(super) struct ModelTurn(Option<Turn>);

struct Turn {
    number: u32,
    stream: ModelStream,
    /// Whether pieces are passed on; if not, only the complete turn is.
    streaming: bool,
    pace: Pace,
    span: Span,
    _cancel: DropGuard,
}

impl ModelTurn {
    /// Asks the model of the agent's next turn.
    pub(super) fn start(
        agent: &Agent,
        state: &RunState,
        (number, request): (u32, ChatRequest),
        cancel: CancellationToken,
    ) -> Self {
        let (model, guard) = (agent.next_model(state), cancel.clone().drop_guard());
        let span = tracing::debug_span!("model", agent = %agent.name, turn = number, model = model.name());
        let stream = span.in_scope(|| model.stream(request, cancel));
        let (streaming, pace) = (agent.streaming, Pace::default());
        Self(Some(Turn { number, stream, streaming, pace, span, _cancel: guard }))
    }

    /// The next input; never completes without a turn. The last input of a turn ends it. Cancel-safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            let Some(turn) = &mut self.0 else { return std::future::pending().await };
            turn.pace.gathered().await;
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

    /// Notes that an input came, and returns whether the model is fast, so that others may be ready.
    pub(super) fn is_fast(&mut self) -> bool {
        self.0.as_mut().is_some_and(|turn| turn.pace.is_fast(Instant::now()))
    }

    /// Notes that no other input is ready. The turn is not read for a while.
    pub(super) fn gather(&mut self) {
        if let Some(turn) = &mut self.0 {
            turn.pace.gather(Instant::now());
        }
    }
}

/// How fast the pieces of a turn come.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    /// The pause under way, or the last one.
    pause: Option<Pin<Box<Sleep>>>,
    is_gathering: bool,
}

impl Pace {
    fn is_fast(&mut self, now: Instant) -> bool {
        self.last.replace(now).is_some_and(|last| now < last + FAST)
    }

    fn gather(&mut self, now: Instant) {
        self.last = Some(now);
        match &mut self.pause {
            Some(pause) => pause.as_mut().reset(now + GATHER),
            none => *none = Some(Box::pin(sleep_until(now + GATHER))),
        }
        self.is_gathering = true;
    }

    /// Waits until the turn may be read. Cancel-safe.
    async fn gathered(&mut self) {
        if self.is_gathering
            && let Some(pause) = &mut self.pause
        {
            pause.await;
            self.is_gathering = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_pieces_of_a_fast_model_are_gathered() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            assert!(!pace.is_fast(Instant::now()), "the pieces of a slow model wait for nothing");
            tokio::time::advance(FAST).await;
        }
        assert!(!pace.is_fast(Instant::now()));
        assert!(pace.is_fast(Instant::now()), "two pieces came at once");
        pace.gather(Instant::now());
        pace.gathered().await;
        assert!(pace.is_fast(Instant::now()), "the model is still fast after the pause");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_is_interrupted_goes_on() {
        let (mut pace, began) = (Pace::default(), Instant::now());
        pace.gather(began);
        assert!(futures::poll!(std::pin::pin!(pace.gathered())).is_pending());
        pace.gathered().await;
        assert_eq!(began.elapsed(), GATHER);
    }
}

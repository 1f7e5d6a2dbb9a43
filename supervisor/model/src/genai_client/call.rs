//! One call: its connection, its deadlines and its end.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt;
use genai::chat::{ChatOptions, ChatStream};
use jiff::Timestamp;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::event_mapping::{Turn, TurnFault};
use super::response_limits::{LineTime, Meter};
use super::{Inner, convert, error_mapping, provider_conventions};
use crate::chat::{ChatRequest, ModelError, ModelErrorKind, ModelEvent};

pub(super) struct Call {
    model: Arc<Inner>,
    /// Completes when the call is cancelled. One future for the whole call, because one for each piece costs too much.
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    meter: Arc<Meter>,
    state: State,
    ready: VecDeque<ModelEvent>,
}

enum State {
    /// Nothing was sent. The deadline counts from the first poll of the stream.
    New(ChatRequest),
    Streaming(Box<Answer>),
    Over,
}

/// The answer under way.
struct Answer {
    stream: ChatStream,
    turn: Turn,
    /// Fires when the call takes too long. One timer for the whole call, for the same reason.
    alarm: Pin<Box<Sleep>>,
}

impl Call {
    pub(super) fn new(model: Arc<Inner>, request: ChatRequest, cancel: CancellationToken) -> Self {
        let cancelled = Box::pin(cancel.cancelled_owned());
        Self { model, cancelled, meter: Arc::default(), state: State::New(request), ready: VecDeque::new() }
    }

    /// The next event. A finish or an error closes the connection and is the last.
    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.state, State::Over) {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.state = State::Over;
                return Some(Err(error));
            }
        }
    }

    async fn advance(&mut self) -> Result<(), ModelError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::New(request) => self.open(&request).await,
            State::Streaming(answer) => self.read(answer).await,
            State::Over => Ok(()),
        }
    }

    async fn open(&mut self, request: &ChatRequest) -> Result<(), ModelError> {
        let Inner { connection, client, options } = self.model.as_ref();
        let kind = provider_conventions::of(&connection.target.model);
        let deadline = Instant::now() + connection.timeouts.total;
        let asked = convert::request(request, kind);
        let options = with_request(options.clone(), request, self.meter.clone());
        let response = client.exec_chat_stream(connection.target.clone(), asked, Some(&options));
        let response = tokio::select! {
            biased;
            () = &mut self.cancelled => return Err(self.cancelled()),
            response = timeout_at(deadline, response) => response,
        };
        let response = response
            .map_err(|_| self.too_slow())?
            .map_err(|error| error_mapping::of(&error, &connection.subject, Timestamp::now()))?;
        let turn = Turn::new(connection.subject.model.clone(), kind, convert::calls_in(request));
        let alarm = Box::pin(sleep_until(deadline));
        self.state = State::Streaming(Box::new(Answer { stream: response.stream, turn, alarm }));
        Ok(())
    }

    async fn read(&mut self, mut answer: Box<Answer>) -> Result<(), ModelError> {
        let Answer { stream, turn, alarm } = answer.as_mut();
        let mut line = LineTime::default();
        let item =
            poll_fn(|context| line.poll(&self.meter, context, |context| stream.poll_next_unpin(context)));
        let item = tokio::select! {
            biased;
            () = &mut self.cancelled => return Err(self.cancelled()),
            item = item => item,
            () = alarm => return Err(self.too_slow()),
        };
        let item = item.map_err(|too_long| self.error(ModelErrorKind::Protocol, &too_long.to_string()))?;
        let Some(item) = item else { return Err(self.no_end()) };
        let event = item
            .map_err(|error| error_mapping::of(&error, &self.model.connection.subject, Timestamp::now()))?;
        let over = turn
            .accept(event, &mut self.ready)
            .map_err(|fault| self.error(ModelErrorKind::Truncated, &fault.to_string()))?;
        if !over {
            self.state = State::Streaming(answer);
        }
        Ok(())
    }

    fn no_end(&self) -> ModelError {
        if self.meter.is_not_sse() {
            let message =
                "the server answered something that is not the provider's protocol: check the base URL";
            return self.error(ModelErrorKind::Protocol, message);
        }
        self.error(ModelErrorKind::Truncated, &TurnFault::NoStopReason.to_string())
    }

    fn cancelled(&self) -> ModelError {
        self.error(ModelErrorKind::Cancelled, "cancelled")
    }

    fn too_slow(&self) -> ModelError {
        let seconds = self.model.connection.timeouts.total.as_secs_f64();
        self.error(
            ModelErrorKind::Deadline,
            &format!(
                "the answer took longer than {seconds} s (limits.modelTimeoutSeconds or LLM_TIMEOUT_SECONDS)"
            ),
        )
    }

    fn error(&self, kind: ModelErrorKind, message: &str) -> ModelError {
        self.model.connection.subject.error(kind, message)
    }
}

fn with_request(mut options: ChatOptions, request: &ChatRequest, meter: Arc<Meter>) -> ChatOptions {
    options.temperature = request.temperature.or(options.temperature);
    options.max_tokens = request.max_output_tokens.or(options.max_tokens);
    options.raw_frame_sink = Some(meter);
    options
}

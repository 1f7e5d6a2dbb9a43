//! How a run ends, and with which words.

use std::sync::Arc;

use caipe_model::{Message, ModelErrorKind, ToolCall, ToolResult};

use crate::abilities::AnswerMode;
use crate::conversation;
use crate::effects::Effects;
use crate::event::{AnswerOrigin, Emit, EventKind, Outcome, TextRole};
use crate::io::Effect;
use crate::state::{Phase, RunState};
use crate::text::after_marker;
use crate::tools::response::Response;

use super::{endings, route};

/// The answer of a run whose model returned only empty answers: an answer is never empty.
const NO_ANSWER: &str = "I have no answer: the language model returned an empty one. Please ask again, or put the \
                         question in other words.";

/// What follows an answer that the model could not finish.
pub(super) const CUT_OFF: &str =
    "\n\n[The answer is cut off: it reached the output limit of the language model.]";

/// Ends a run that has nothing to show though nothing failed.
pub(super) fn empty_handed(state: &mut RunState, out: &mut Effects) {
    state.text.conclude(NO_ANSWER, out);
    complete(state, NO_ANSWER.to_owned(), AnswerOrigin::Partial, out);
}

/// The model's turn has text and no calls: that is the answer.
pub(super) fn answered(state: &mut RunState, content: &str, out: &mut Effects) {
    let marked = match state.abilities.answer {
        AnswerMode::Marker => after_marker(content).filter(|answer| !answer.trim().is_empty()),
        _ => None,
    };
    match marked {
        Some(answer) => complete(state, answer.to_owned(), AnswerOrigin::Marked, out),
        None => complete(state, content.to_owned(), spoken(state), out),
    }
}

/// The last turn is over: whatever it said is the answer.
pub(super) fn last_answer(state: &mut RunState, requests: &[ToolCall], content: &str, out: &mut Effects) {
    refuse(state, requests);
    let response = requests.iter().find(|call| route::responds(&state.abilities, &call.name));
    let response = response
        .and_then(|call| route::parse(call).ok())
        .map(|arguments| Response::parse(&arguments).content);
    match response.filter(|content| !content.trim().is_empty()) {
        Some(content) => {
            state.text.conclude(&content, out);
            complete(state, content, AnswerOrigin::Structured, out);
        }
        None if content.trim().is_empty() => cut_short(state, Cause::NoAnswer, out),
        None => answered(state, content, out),
    }
}

/// The calls of a turn that was offered no tools get their results nevertheless.
fn refuse(state: &mut RunState, requests: &[ToolCall]) {
    let result = |call: &ToolCall| ToolResult {
        call_id: call.id.clone(),
        content: "Not run: the run was at its end.".to_owned(),
        is_error: true,
    };
    if !requests.is_empty() {
        state.messages.push(Arc::new(Message::results(requests.iter().map(result))));
    }
}

/// What people read of a failed turn. The words of the provider, which may name hosts, models and accounts, are in the log.
const fn model_reason(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::Auth => {
            "the language model does not accept the supervisor's credentials, or there are none"
        }
        ModelErrorKind::RateLimited => "the language model gets too many requests; try again in a while",
        ModelErrorKind::Overloaded => {
            "the language model is overloaded or out of order; try again in a while"
        }
        ModelErrorKind::ContextOverflow => {
            "the conversation is too long for the language model; begin a new one"
        }
        ModelErrorKind::InvalidRequest => "the language model does not accept the request",
        ModelErrorKind::ContentFilter => "the content filter of the language model refused the request",
        ModelErrorKind::Transport => "the language model cannot be reached, or the connection broke",
        ModelErrorKind::Truncated => "the answer of the language model broke off",
        ModelErrorKind::Protocol => "the language model's response could not be read",
        ModelErrorKind::Deadline => "the language model did not answer in time",
        ModelErrorKind::Cancelled => "the call of the language model was stopped",
    }
}

/// Why nothing more can be had from the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Model(ModelErrorKind),
    /// The model returned an empty last answer.
    NoAnswer,
    /// The time of the run is up.
    Time,
    /// The run has no step left.
    Steps,
}

impl Cause {
    /// The reason for people, without the words of a provider or the name of a model: those are in the log.
    const fn reason(self) -> &'static str {
        match self {
            Self::Model(kind) => model_reason(kind),
            Self::NoAnswer => "the language model gave no answer",
            Self::Time => "the time for this request is up",
            Self::Steps => "the limit of steps is reached",
        }
    }

    const fn origin(self) -> AnswerOrigin {
        match self {
            Self::Model(_) => AnswerOrigin::Recovered,
            Self::NoAnswer | Self::Time | Self::Steps => AnswerOrigin::Partial,
        }
    }
}

/// Nothing more can be had from the model: the run ends with what there is, and says so.
pub(super) fn cut_short(state: &mut RunState, cause: Cause, out: &mut Effects) {
    state.text.release(out);
    let spoken = state.text.so_far();
    let role = if state.abilities.answer == AnswerMode::Plain { TextRole::Plain } else { TextRole::Answer };
    let apology = format!(
        "I ran into an issue while processing your request: {}. Please ask me to continue or try your question again.",
        cause.reason()
    );
    if !spoken.is_empty() {
        let text = format!("{}\n\n{apology}", after_marker(spoken).unwrap_or(spoken));
        out.text(role, format!("\n\n{apology}"));
        complete(state, text, cause.origin(), out);
    } else if let Some(gathered) = gathered(state) {
        let text = format!("{apology}\n\nThis is what was gathered so far:\n\n{gathered}");
        out.text(role, text.clone());
        complete(state, text, cause.origin(), out);
    } else if cause == Cause::NoAnswer && state.abilities.answer != AnswerMode::Plain {
        empty_handed(state, out);
    } else {
        failed(state, cause, out);
    }
}

/// The run has nothing to show.
pub(super) fn failed(state: &mut RunState, cause: Cause, out: &mut Effects) {
    end(state, Outcome::Failed { reason: format!("Agent execution failed: {}", cause.reason()) }, out);
}

/// Ends the run; calls that are still open must have been stopped.
pub(super) fn end(state: &mut RunState, outcome: Outcome, out: &mut Effects) {
    endings::conclude_round(state);
    conversation::withdraw_last_word(&mut state.messages);
    conversation::repair(&mut state.messages);
    state.phase = Phase::Idle;
    let is_cut_off = cut_off(&outcome);
    if (is_cut_off || state.guards.last_turn)
        && let Some(plan) = state.plan.give_up(!is_cut_off)
    {
        out.emit(plan);
    }
    out.emit(EventKind::Finished { outcome });
    out.push(Effect::Finish);
}

/// Whether the run ended before its plan was carried out.
const fn cut_off(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { .. }
            | Outcome::Canceled
            | Outcome::Completed { origin: AnswerOrigin::Partial | AnswerOrigin::Recovered, .. }
    )
}

pub(super) fn complete(state: &mut RunState, text: String, origin: AnswerOrigin, out: &mut Effects) {
    // A run that was cut short, or needed a last turn, has not carried out its plan.
    if !state.guards.last_turn
        && !matches!(origin, AnswerOrigin::Partial | AnswerOrigin::Recovered)
        && state.abilities.answer != AnswerMode::Plain
        && let Some(plan) = state.plan.close()
    {
        out.emit(plan);
    }
    end(state, Outcome::Completed { text, origin }, out);
}

/// The origin of what the model just said.
fn spoken(state: &RunState) -> AnswerOrigin {
    if state.answers.len() > 1 { AnswerOrigin::Synthesis } else { AnswerOrigin::Model }
}

/// The words of the agents that were asked. What the model said on the way is no result, and was shown already.
pub(super) fn gathered(state: &RunState) -> Option<String> {
    let text = match state.answers.as_slice() {
        [] => return None,
        [only] => after_marker(&only.text).unwrap_or(&only.text).to_owned(),
        several => several
            .iter()
            .map(|answer| {
                format!("**{}**\n\n{}", answer.agent, after_marker(&answer.text).unwrap_or(&answer.text))
            })
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    (!text.trim().is_empty()).then_some(text)
}

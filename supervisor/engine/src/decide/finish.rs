//! The end of a run, and its answer.

use std::sync::Arc;

use caipe_model::{Message, ModelErrorKind, ToolCall, ToolResult};

use crate::abilities::AnswerMode;
use crate::conversation;
use crate::effects::Effects;
use crate::event::{AnswerOrigin, Emit, EventKind, Outcome, TextRole};
use crate::io::Effect;
use crate::scratchpad;
use crate::source;
use crate::state::{Phase, RunState};
use crate::text::after_marker;
use crate::tools::response::Response;

use super::{call_results, route};

/// The answer of a run whose model returned only empty answers.
const NO_ANSWER: &str = "I have no answer: the language model returned an empty one. Please ask again, or put the \
                         question in other words.";

/// The end of an answer that the model could not finish.
pub(super) const CUT_OFF: &str =
    "\n\n[The answer is cut off: it reached the output limit of the language model.]";

/// Ends a run in which nothing failed, but the model gave no answer.
pub(super) fn without_answer(state: &mut RunState, out: &mut Effects) {
    state.text.conclude(NO_ANSWER, out);
    complete(state, NO_ANSWER.to_owned(), AnswerOrigin::Partial, out);
}

/// Ends the run with the text of a turn without calls.
pub(super) fn answered(state: &mut RunState, content: &str, out: &mut Effects) {
    let marked = after_marker(content).filter(|answer| !answer.trim().is_empty());
    let (answer, origin) = match marked.filter(|_| state.abilities.answer == AnswerMode::Marker) {
        Some(answer) => (answer, AnswerOrigin::Marked),
        None if state.answers.len() > 1 => (content, AnswerOrigin::Synthesis),
        None => (content, AnswerOrigin::Model),
    };
    complete(state, answer.to_owned(), origin, out);
}

/// Ends the run with the answer or the text of its last turn.
pub(super) fn last_answer(state: &mut RunState, requests: &[ToolCall], content: &str, out: &mut Effects) {
    refuse(state, requests);
    let response = requests.iter().find(|call| route::responds(&state.abilities, &call.name));
    let response =
        response.and_then(|call| route::parse(call).ok()).map(|arguments| Response::content(&arguments));
    match response.filter(|content| !content.trim().is_empty()) {
        Some(content) => {
            state.text.conclude(&content, out);
            complete(state, content, AnswerOrigin::Structured, out);
        }
        None if content.trim().is_empty() => cut_short(state, Cause::NoAnswer, out),
        None => answered(state, content, out),
    }
}

/// Gives results to the calls of a turn that must not have any.
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

/// The reason of a failed turn, for people. The provider's message, which may name hosts, models and accounts, is in the log.
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

/// Why the model gets no further turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Model(ModelErrorKind),
    /// The model returned an empty last answer.
    NoAnswer,
    /// The run reached its deadline.
    Time,
    /// The run reached its limit of steps.
    Steps,
    /// A budget is used up, or a guard stopped the run.
    Limit,
}

impl Cause {
    /// The reason, for people.
    const fn reason(self) -> &'static str {
        match self {
            Self::Model(kind) => model_reason(kind),
            Self::NoAnswer => "the language model gave no answer",
            Self::Time => "the time for this request is up",
            Self::Steps => "the limit of steps is reached",
            Self::Limit => "a limit of this request is reached",
        }
    }

    const fn origin(self) -> AnswerOrigin {
        match self {
            Self::Model(_) => AnswerOrigin::Recovered,
            Self::NoAnswer | Self::Time | Self::Steps | Self::Limit => AnswerOrigin::Partial,
        }
    }
}

/// Ends the run with the text so far or the answers of its delegations, and with the reason.
pub(super) fn cut_short(state: &mut RunState, cause: Cause, out: &mut Effects) {
    state.text.release(out);
    let spoken = state.text.so_far();
    let role = answer_role(state);
    let reason = state.guards.stopped.clone().unwrap_or_else(|| cause.reason().to_owned());
    let apology = format!(
        "I ran into an issue while processing your request: {reason}. Please ask me to continue or try your question again."
    );
    if !spoken.is_empty() {
        let text = format!("{}\n\n{apology}", without_narration(spoken));
        out.text(role, format!("\n\n{apology}"));
        complete(state, text, cause.origin(), out);
    } else if let Some(gathered) = gathered(state) {
        let text = format!("{apology}\n\nThis is what was gathered so far:\n\n{gathered}");
        out.text(role, text.clone());
        complete(state, text, cause.origin(), out);
    } else if cause == Cause::NoAnswer && state.abilities.answer != AnswerMode::Plain {
        without_answer(state, out);
    } else {
        failed(state, cause, out);
    }
}

/// The role of text that the run adds to its answer.
fn answer_role(state: &RunState) -> TextRole {
    if state.abilities.answer == AnswerMode::Plain { TextRole::Plain } else { TextRole::Answer }
}

pub(super) fn failed(state: &mut RunState, cause: Cause, out: &mut Effects) {
    end(state, Outcome::Failed { reason: format!("Agent execution failed: {}", cause.reason()) }, out);
}

/// Ends the run. The caller must have cancelled open calls.
pub(super) fn end(state: &mut RunState, outcome: Outcome, out: &mut Effects) {
    call_results::conclude_round(state);
    conversation::remove_last_answer_note(&mut state.messages);
    conversation::repair(&mut state.messages);
    state.phase = Phase::Idle;
    let is_cut_off = is_cut_off(&outcome);
    if (is_cut_off || state.guards.last_turn)
        && let Some(plan) = state.plan.give_up(!is_cut_off)
    {
        out.emit(plan);
    }
    scratchpad::report(state, out);
    out.emit(EventKind::Finished { outcome });
    out.push(Effect::Finish);
}

/// Whether the run ended before its plan was carried out.
const fn is_cut_off(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { .. }
            | Outcome::Canceled
            | Outcome::Completed { origin: AnswerOrigin::Partial | AnswerOrigin::Recovered, .. }
    )
}

/// Ends the run with an answer, and lists the documents that it is based on.
pub(super) fn complete(state: &mut RunState, mut text: String, origin: AnswerOrigin, out: &mut Effects) {
    let is_whole = !matches!(origin, AnswerOrigin::Partial | AnswerOrigin::Recovered);
    let stopped = state.guards.stopped.as_ref().filter(|_| is_whole);
    let note = stopped.map(|reason| format!("\n\n[This answer may be incomplete: {reason}.]"));
    let open = state.unverified.open().map(|open| format!("\n\n[Not verified: {open}.]"));
    for added in note.into_iter().chain(open).chain(source::list(&state.sources, &text)) {
        text.push_str(&added);
        out.text(answer_role(state), added);
    }
    // A run that was cut short, or needed a last turn, has not carried out its plan.
    if !state.guards.last_turn
        && is_whole
        && state.abilities.answer != AnswerMode::Plain
        && let Some(plan) = state.plan.close()
    {
        out.emit(plan);
    }
    end(state, Outcome::Completed { text, origin }, out);
}

/// The answers of the delegations, as one text. The model's narration is no result, and was shown already.
pub(super) fn gathered(state: &RunState) -> Option<String> {
    let text = match state.answers.as_slice() {
        [only] => without_narration(&only.text).to_owned(),
        answers => answers
            .iter()
            .map(|answer| format!("**{}**\n\n{}", answer.agent, without_narration(&answer.text)))
            .collect::<Vec<_>>()
            .join("\n\n"),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn without_narration(text: &str) -> &str {
    after_marker(text).unwrap_or(text)
}

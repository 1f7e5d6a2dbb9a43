//! The calls of one model turn: each is answered at once, started, refused, or put before a human.

use caipe_model::ToolCall;
use serde_json::{Map, Value};

use crate::abilities::AnswerMode;
use crate::effects::Effects;
use crate::event::{AnswerOrigin, Emit, EventKind};
use crate::form::Form;
use crate::plan::TodoChange;
use crate::plan_step::PlanCause;
use crate::state::{CallKind, CallStatus, PendingCall, Phase, RunState};
use crate::tools::response::Response;
use crate::tools::{TODO_TOOL, run_file_tool, todos};

use super::endings::{self, close, ending, finish_call};
use super::route::{self, Route};
use super::{calls, finish, turn};

/// Most calls of one turn; more are a model gone wild.
const MOST_CALLS: usize = 64;

/// What the model reads of an empty answer.
const EMPTY_ANSWER: &str = "The answer is empty. Give the whole answer in `content`.";

/// Begins the calls of a turn; `cut` if the model was stopped at its output limit.
pub(super) fn begin(state: &mut RunState, requests: Vec<ToolCall>, cut: bool, out: &mut Effects) {
    state.phase = Phase::Calls;
    let alone = requests.iter().all(|call| route::is_immediate(&state.abilities, &call.name));
    let allowed = turn::steps_left(state);
    state.counters.steps = state.counters.steps.saturating_add(1);
    let mut answer = None;
    for (index, request) in requests.into_iter().enumerate() {
        let response = route::responds(&state.abilities, &request.name) && answer.is_none();
        let refusal = match () {
            () if index >= MOST_CALLS => {
                Some(format!("Not run: one turn may have at most {MOST_CALLS} calls."))
            }
            () if response && !alone => {
                Some("Not taken: give the final answer alone, after reading the other results.".to_owned())
            }
            () if !allowed && !response => Some("Not run: the limit of steps is reached.".to_owned()),
            () => None,
        };
        let call = match refusal {
            Some(refusal) => closed(&request, Err(refusal)),
            None if response => respond(state, &request, cut, &mut answer),
            None => accept(state, &request, out),
        };
        state.calls.push(call);
    }
    if let Some(answer) = answer {
        return responded(state, answer, out);
    }
    state.text.retract_answer(out);
    calls::start_ready(state, out);
    calls::settle(state, out);
}

/// Reads the final answer out of a call.
fn respond(state: &RunState, request: &ToolCall, cut: bool, answer: &mut Option<Response>) -> PendingCall {
    match route::parse(request) {
        Ok(arguments) => {
            let response = Response::parse(&arguments);
            let call = match &response.question {
                Some(form) => waiting(request, arguments, CallKind::Ask, form.clone()),
                None if response.content.trim().is_empty() => closed(request, Err(EMPTY_ANSWER.to_owned())),
                None => closed(request, Ok("The answer was given to the user.".to_owned())),
            };
            *answer = Some(response);
            call
        }
        // The answer is too long for the model, and would be again: what has arrived of it is the answer.
        Err(_) if cut && !state.text.answer.trim().is_empty() => {
            let content = format!("{}{}", state.text.answer, finish::CUT_OFF);
            *answer = Some(Response { content, question: None });
            closed(request, Ok("The answer was given to the user, as far as it was written.".to_owned()))
        }
        Err(error) => closed(request, Err(error)),
    }
}

/// Answers a call at once, or gets it ready to be started.
fn accept(state: &mut RunState, request: &ToolCall, out: &mut Effects) -> PendingCall {
    match route::route(&state.abilities, request) {
        Route::Start { kind, arguments, approval: None } => PendingCall {
            id: request.id.clone(),
            name: request.name.clone(),
            arguments: Value::Object(arguments),
            kind,
            status: CallStatus::Ready,
        },
        Route::Start { kind, arguments, approval: Some(form) } => waiting(request, arguments, kind, form),
        Route::Ask { arguments, form } => waiting(request, arguments, CallKind::Ask, form),
        Route::Todos(arguments) => closed(request, write_todos(state, &arguments, out)),
        Route::Files(arguments) => {
            count(state, &request.name);
            out.emit(EventKind::ToolStarted { call: request.id.clone(), tool: request.name.clone() });
            let result = run_file_tool(state, &request.name, &arguments);
            let mut call = closed(request, Ok(String::new()));
            finish_call(&mut call, ending(&result), result, state.abilities.limits.tool_output_chars, out);
            call
        }
        // A second answer of the same turn: the first one counts.
        Route::Respond(_) => closed(request, Err("Not taken: the answer was given already.".to_owned())),
        Route::Refuse(error) => closed(request, Err(error)),
    }
}

fn write_todos(
    state: &mut RunState,
    arguments: &Map<String, Value>,
    out: &mut Effects,
) -> Result<String, String> {
    count(state, TODO_TOOL);
    let todos = todos::parse(arguments)?;
    let summary = todos::summary(&todos);
    let cause = if state.plan.todos.is_empty() { PlanCause::Todos } else { PlanCause::Progress };
    let changes = state.plan.write(todos);
    if state.abilities.answer != AnswerMode::Plain {
        for change in changes {
            out.emit(match change {
                TodoChange::Started(content) => EventKind::TodoStarted { content },
                TodoChange::Finished(content) => EventKind::TodoFinished { content },
            });
        }
        calls::emit_plan(state, cause, out);
    }
    Ok(summary)
}

/// A call that has its result already.
fn closed(request: &ToolCall, result: Result<String, String>) -> PendingCall {
    let mut call = PendingCall {
        id: request.id.clone(),
        name: request.name.clone(),
        arguments: Value::Object(Map::new()),
        kind: CallKind::Tool,
        status: CallStatus::Ready,
    };
    close(&mut call, result, usize::MAX);
    call
}

/// A call that a human must answer first.
fn waiting(request: &ToolCall, arguments: Map<String, Value>, kind: CallKind, form: Form) -> PendingCall {
    let status = CallStatus::Waiting { form, then: Box::new(CallStatus::Ready) };
    PendingCall {
        id: request.id.clone(),
        name: request.name.clone(),
        arguments: Value::Object(arguments),
        kind,
        status,
    }
}

fn count(state: &mut RunState, tool: &str) {
    *state.counters.calls.entry(tool.to_owned()).or_default() += 1;
}

/// The model gave its final answer by the response tool; a round of calls is under way. An empty answer is replaced by
/// what was gathered. Where nothing was, the model gets one more turn.
fn responded(state: &mut RunState, response: Response, out: &mut Effects) {
    let content = Some(response.content).filter(|content| !content.trim().is_empty());
    let text = content.or_else(|| finish::gathered(state));
    if response.question.is_some() {
        state.text.conclude(&text.unwrap_or_default(), out);
        return calls::settle(state, out);
    }
    match text {
        Some(text) => {
            state.text.conclude(&text, out);
            endings::conclude_round(state);
            finish::complete(state, text, AnswerOrigin::Structured, out);
        }
        None if !state.guards.empty_answer => {
            state.guards.empty_answer = true;
            state.text.retract_answer(out);
            endings::conclude_round(state);
            turn::ask(state, out);
        }
        None => {
            endings::conclude_round(state);
            finish::empty_handed(state, out);
        }
    }
}

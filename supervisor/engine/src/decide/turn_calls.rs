//! The calls of one model turn: each is answered at once, started, rejected, or waits for a person.

use caipe_model::ToolCall;
use serde_json::{Map, Value};

use crate::abilities::AnswerMode;
use crate::effects::Effects;
use crate::event::{AnswerOrigin, Emit, EventKind};
use crate::form::Form;
use crate::plan_step::PlanCause;
use crate::state::{CallKind, CallStatus, PendingCall, Phase, RunState};
use crate::tools::response::Response;
use crate::tools::{
    RESULT_TOOL, TODO_TOOL, offers_file_tool, run_file_tool, search, todos, with_result, workflow_tools,
};

use super::call_results;
use super::finish::Cause;
use super::route::{self, Route};
use super::{calls, finish, guards, limits, model_request};

/// Most calls of one turn.
const MOST_CALLS: usize = 64;

/// The result of an empty answer.
const EMPTY_ANSWER: &str = "The answer is empty. Give the whole answer in `content`.";

/// Begins the calls of a turn; `cut` if the turn reached the output limit of the model.
pub(super) fn begin(state: &mut RunState, requests: Vec<ToolCall>, cut: bool, out: &mut Effects) {
    state.phase = Phase::Calls;
    let alone = requests.iter().all(|call| route::is_immediate(&state.abilities, call));
    let allowed = model_request::steps_left(state);
    state.counters.steps = state.counters.steps.saturating_add(1);
    if limits::must_answer(state, &requests) {
        limits::refuse_all(state, &requests);
        state.text.retract_answer(out);
        return model_request::ask_for_last_answer(state, None, Cause::Limit, out);
    }
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
fn respond(
    state: &mut RunState,
    request: &ToolCall,
    cut: bool,
    answer: &mut Option<Response>,
) -> PendingCall {
    let parsed = route::parse(request)
        .and_then(|arguments| Response::parse(&arguments).map(|response| (arguments, response)));
    match parsed {
        Ok((arguments, response)) => {
            let call = match &response.question {
                Some(form) => {
                    let form = state.identified(form.clone());
                    pending(request, CallKind::Ask, arguments, Some(form))
                }
                None if response.content.trim().is_empty() => closed(request, Err(EMPTY_ANSWER.to_owned())),
                None if let Some(reminder) = state.unverified.reminder() => {
                    return closed(request, Err(reminder));
                }
                None => closed(request, Ok("The answer was given to the user.".to_owned())),
            };
            *answer = Some(response);
            call
        }
        // The answer is too long for the model, and would be again: the part that arrived is the answer.
        Err(_) if cut && !state.text.answer.trim().is_empty() => {
            let content = format!("{}{}", state.text.answer, finish::CUT_OFF);
            *answer = Some(Response { content, question: None });
            closed(request, Ok("The answer was given to the user, as far as it was written.".to_owned()))
        }
        Err(error) => closed(request, Err(error)),
    }
}

/// Answers a call at once, or prepares its start.
fn accept(state: &mut RunState, request: &ToolCall, out: &mut Effects) -> PendingCall {
    if let Some(text) = guards::refusal(state, request) {
        return not_run(request, text);
    }
    match route::route(&state.abilities, request) {
        Route::Start { kind, mut arguments, mut question } => {
            state.note_found(&request.name);
            if let Some(text) = limits::spend(state, &request.name, out) {
                return not_run(request, text);
            }
            limits::bound_results(&state.abilities, &request.name, &mut arguments);
            if request.name == RESULT_TOOL && offers_file_tool(&state.abilities, RESULT_TOOL) {
                match with_result(state, &request.name, &arguments) {
                    Ok(complete) => arguments = complete,
                    Err(fault) => return closed(request, Err(fault)),
                }
                // A person reads what is written, and may edit it.
                if let Some(form) = &mut question {
                    form.arguments = Value::Object(arguments.clone());
                }
            }
            let question = question.filter(|form| !state.is_always_allowed(&form.action));
            let question = question
                .filter(|form| kind != CallKind::Tool || !state.take_approved(&form.action, &form.arguments));
            let question = question.map(|form| state.identified(*form));
            pending(request, kind, arguments, question)
        }
        Route::Todos(arguments) => closed(request, write_todos(state, &arguments, out)),
        Route::Files(arguments) => {
            let result = run_file_tool(state, &request.name, &arguments);
            answered_at_once(state, request, result, out)
        }
        Route::Workflows(arguments) => {
            let result = workflow_tools::answer(&state.abilities, &request.name, &arguments);
            answered_at_once(state, request, result, out)
        }
        Route::Find(arguments) => {
            let result = search::find(state, &arguments);
            answered_at_once(state, request, result, out)
        }
        // A second answer of the same turn: the first one counts.
        Route::Respond => closed(request, Err("Not taken: the answer was given already.".to_owned())),
        Route::Refuse(error) => closed(request, Err(error)),
    }
}

/// A tool call that the engine has run, with its events.
fn answered_at_once(
    state: &mut RunState,
    request: &ToolCall,
    result: Result<String, String>,
    out: &mut Effects,
) -> PendingCall {
    count(state, &request.name);
    out.emit(EventKind::ToolStarted { call: request.id.clone(), tool: request.name.clone() });
    let mut call = pending(request, CallKind::Tool, Map::new(), None);
    call_results::finish_call(&mut call, result, &state.abilities, out);
    call
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
            out.emit(change);
        }
        calls::emit_plan(state, cause, out);
    }
    Ok(summary)
}

/// A call that has its result.
fn closed(request: &ToolCall, result: Result<String, String>) -> PendingCall {
    let mut call = pending(request, CallKind::Tool, Map::new(), None);
    call_results::close(&mut call, result, usize::MAX);
    call
}

/// A call that a limit or a guard does not let run. The text reads as a success, because a model tries again after an error.
fn not_run(request: &ToolCall, text: String) -> PendingCall {
    let mut call = closed(request, Ok(text));
    if let CallStatus::Done { not_run, .. } = &mut call.status {
        *not_run = true;
    }
    call
}

/// A call that is ready, or waits for the answer to a question.
fn pending(
    request: &ToolCall,
    kind: CallKind,
    arguments: Map<String, Value>,
    question: Option<Form>,
) -> PendingCall {
    let waiting = |form| CallStatus::Waiting { form, then: Box::new(CallStatus::Ready) };
    PendingCall {
        id: request.id.clone(),
        name: request.name.clone(),
        arguments: Value::Object(arguments),
        kind,
        status: question.map_or(CallStatus::Ready, waiting),
        answered: None,
        step_of: None,
        approved: Vec::new(),
    }
}

fn count(state: &mut RunState, tool: &str) {
    *state.counters.calls.entry(tool.to_owned()).or_default() += 1;
}

/// Ends the run with the model's answer. The answers of the delegations replace an empty answer. If there are none, the
/// model gets one more turn.
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
            call_results::conclude_round(state);
            finish::complete(state, text, AnswerOrigin::Structured, out);
        }
        None if !state.guards.empty_answer => {
            state.guards.empty_answer = true;
            state.text.retract_answer(out);
            call_results::conclude_round(state);
            model_request::ask(state, out);
        }
        None => {
            call_results::conclude_round(state);
            finish::without_answer(state, out);
        }
    }
}

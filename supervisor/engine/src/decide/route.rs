//! Decides how a call of the model is answered, or why it is rejected.

use caipe_model::ToolCall;
use serde_json::{Map, Value};

use crate::abilities::{Abilities, AnswerMode};
use crate::budget::RefusedValues;
use crate::form::{ASK_TOOL, Form, REQUEST_INPUT_TOOL};
use crate::names::AgentName;
use crate::state::CallKind;
use crate::tools::glob::name_matches;
use crate::tools::workflow_tools::{self, DEFINITION_TOOL, INVOKE_TOOL, LIST_TOOL};
use crate::tools::{
    ApprovalPattern, FIND_TOOL, TASK_TOOL, TODO_TOOL, builtin_tools, form_tool, is_response,
    offers_file_tool, permit,
};
use crate::volume;

/// Most names that an error lists.
const MOST_LISTED: usize = 50;

/// Most characters of a name that the model made up, in an error.
const NAME_CHARS: usize = 80;

/// How a call is answered.
pub(super) enum Route {
    /// The call is the final answer.
    Respond,
    /// The call is a new to-do list.
    Todos(Map<String, Value>),
    /// The engine runs the call on the virtual files.
    Files(Map<String, Value>),
    /// The engine answers the call from the definitions of the workflows.
    Workflows(Map<String, Value>),
    /// The engine searches for tools.
    Find(Map<String, Value>),
    /// The edge, an agent or a person answers the call, once a person has answered the question, if there is one.
    Start { kind: CallKind, arguments: Map<String, Value>, question: Option<Box<Form>> },
    /// The call is rejected with this message to the model.
    Refuse(String),
}

pub(super) fn route(abilities: &Abilities, call: &ToolCall) -> Route {
    parse(call).and_then(|arguments| choose(abilities, &call.name, arguments)).unwrap_or_else(Route::Refuse)
}

fn choose(abilities: &Abilities, name: &str, arguments: Map<String, Value>) -> Result<Route, String> {
    Ok(match name {
        _ if responds(abilities, name) => Route::Respond,
        TODO_TOOL => Route::Todos(arguments),
        TASK_TOOL if !abilities.agents.is_empty() => {
            let kind = CallKind::Delegation { agent: delegate(abilities, &arguments)? };
            start(abilities, name, kind, arguments)
        }
        INVOKE_TOOL if !abilities.workflows.is_empty() => {
            let kind = workflow(abilities, &arguments)?;
            start(abilities, name, kind, arguments)
        }
        _ if reads_workflows(abilities, name) => Route::Workflows(arguments),
        FIND_TOOL if abilities.searched.is_some() => Route::Find(arguments),
        ASK_TOOL | REQUEST_INPUT_TOOL if abilities.forms => Route::Start {
            kind: CallKind::Ask,
            question: Some(form_tool::form(name, &arguments)?.into()),
            arguments,
        },
        _ if abilities.tools.contains(name) => {
            permitted(abilities, name, &arguments)?;
            start(abilities, name, CallKind::Tool, arguments)
        }
        _ if offers_file_tool(abilities, name)
            && abilities.volume
            && volume::is_on_volume(name, &arguments) =>
        {
            permit(abilities.writes, name, &arguments)?;
            start(abilities, name, CallKind::Tool, arguments)
        }
        _ if offers_file_tool(abilities, name) => Route::Files(arguments),
        _ => return Err(unknown_tool(abilities, name)),
    })
}

/// Fails if the tool is never called with such arguments.
pub(super) fn permitted(
    abilities: &Abilities,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let is_refused = |refused: &&RefusedValues| {
        let matches = |text: &str| refused.values.iter().any(|pattern| name_matches(pattern, text.trim()));
        arguments.get(&refused.argument).is_some_and(|value| value.as_str().is_none_or(matches))
    };
    let refused = abilities.traits_of(name).refuse.iter().find(is_refused);
    match refused {
        None => Ok(()),
        Some(refused) => Err(format!(
            "The call of `{name}` was not made: this value of `{}` is never permitted, and no approval changes that. Do not try \
             another way; go on without it, and tell the user.",
            refused.argument
        )),
    }
}

fn start(abilities: &Abilities, name: &str, kind: CallKind, arguments: Map<String, Value>) -> Route {
    let question = approval(abilities, name, &Value::Object(arguments.clone())).map(Box::new);
    Route::Start { kind, arguments, question }
}

/// The question whether a call may run, if the call needs approval.
pub(super) fn approval(abilities: &Abilities, name: &str, arguments: &Value) -> Option<Form> {
    let needs_approval =
        abilities.require_approval.iter().any(|pattern| ApprovalPattern::new(pattern).covers(name));
    let always = abilities.allow_always.contains(name);
    needs_approval.then(|| Form { always, ..Form::approval(name, arguments.clone()) })
}

/// Whether a call only reads the definitions of the workflows.
fn reads_workflows(abilities: &Abilities, name: &str) -> bool {
    !abilities.workflows.is_empty() && [LIST_TOOL, DEFINITION_TOOL].contains(&name)
}

/// Whether a call is the final answer.
pub(super) fn responds(abilities: &Abilities, name: &str) -> bool {
    abilities.answer == AnswerMode::Structured && is_response(name)
}

/// Whether the engine answers a call at once, from the state alone.
pub(super) fn is_immediate(abilities: &Abilities, call: &ToolCall) -> bool {
    let name = &*call.name;
    let is_on_volume =
        || abilities.volume && parse(call).is_ok_and(|arguments| volume::is_on_volume(name, &arguments));
    responds(abilities, name)
        || name == TODO_TOOL
        || reads_workflows(abilities, name)
        || (name == FIND_TOOL && abilities.searched.is_some())
        || (!abilities.tools.contains(name) && offers_file_tool(abilities, name) && !is_on_volume())
}

/// The arguments as an object; a call without any has an empty one.
pub(super) fn parse(call: &ToolCall) -> Result<Map<String, Value>, String> {
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let problem = match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => return Ok(arguments),
        Ok(_) => "they are not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let name = short(&call.name);
    Err(format!("failed to read the arguments of {name}: {problem}. Call it again with one JSON object."))
}

/// The agent that a delegation names. Fails also if the delegation has no prompt.
pub(super) fn delegate(abilities: &Abilities, arguments: &Map<String, Value>) -> Result<AgentName, String> {
    let known = || listed(abilities.agents.iter().map(AgentName::as_str));
    let Some(name) = arguments.get("subagent_type").and_then(Value::as_str) else {
        return Err(format!("failed to hand over the task: give \"subagent_type\", one of: {}.", known()));
    };
    let agent = AgentName::new(name);
    if !abilities.agents.contains(&agent) {
        return Err(format!(
            "failed to hand over the task: there is no agent {}. There are: {}.",
            short(name),
            known()
        ));
    }
    if prompt(arguments).is_empty() {
        return Err("failed to hand over the task: give \"description\", what the agent shall do.".to_owned());
    }
    Ok(agent)
}

/// The workflow that a call starts. The error is for the model.
pub(super) fn workflow(abilities: &Abilities, arguments: &Map<String, Value>) -> Result<CallKind, String> {
    let workflow = workflow_tools::named(abilities, arguments)?;
    match workflow.agents().find(|agent| !abilities.agents.contains(agent)) {
        Some(missing) => Err(format!(
            "failed to start the workflow {:?}: it needs the agent {missing}, which is not enabled. There are: {}.",
            workflow.name,
            listed(abilities.agents.iter().map(AgentName::as_str))
        )),
        None => Ok(CallKind::Workflow { workflow: workflow.clone().into() }),
    }
}

/// The prompt of a delegation.
pub(super) fn prompt(arguments: &Map<String, Value>) -> &str {
    ["description", "prompt"].iter().find_map(|key| arguments.get(*key)?.as_str()).unwrap_or_default().trim()
}

fn unknown_tool(abilities: &Abilities, name: &str) -> String {
    let builtin = builtin_tools(abilities);
    let names =
        abilities.tools.iter().map(String::as_str).chain(builtin.iter().map(|spec| spec.name.as_str()));
    format!("failed to call {}: there is no such tool. There are: {}.", short(name), listed(names))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST_LISTED => format!("{shown} and {} more", count - MOST_LISTED),
        _ => shown,
    }
}

fn short(name: &str) -> String {
    format!("{:?}", name.chars().take(NAME_CHARS).collect::<String>())
}

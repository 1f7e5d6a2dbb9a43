//! Messages to an agent: stable ids, so that a repeated message is recognized, and metadata for upstream's agents. Pure.

use caipe_a2a::client::CallOptions;
use caipe_a2a::model::{Message, Metadata, Part, Role, SendMessageRequest};
use caipe_engine::{AgentName, Answered, ToolOutput};
use serde_json::{Value, json};
use uuid::Uuid;

use super::form;
use crate::binding::{
    ALWAYS_ALLOWED, APPROVED_CALLS, CLIENT_TOOL_RESULT, CLIENT_TOOLS, ClientToolResult, DELEGATION_PATH,
    REQUIRE_APPROVAL, SCRATCHPAD,
};
use crate::delegation::{Delegation, RunInfo};

/// The namespace of all ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x9b1d_5a36_7f0e_5c6b_8d52_40c1_9e7a_2b64);

/// The ids of one delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids {
    /// The user's conversation with this agent: `context_id` in the metadata, by which upstream's agents store their
    /// memory. It is different for each user, even in the same conversation.
    pub(super) memory: String,
    /// The delegation's own conversation. An agent starts each delegation without earlier messages, in either placement,
    /// and concurrent delegations do not wait for each other.
    pub(super) context: String,
    /// The message that starts the task.
    pub(super) message: String,
}

impl Ids {
    /// The ids of a delegation. The same call has the same ids in every process.
    pub(super) fn of(delegation: &Delegation) -> Self {
        let RunInfo { context, task, user, .. } = &delegation.run;
        let memory = memory(context, user.as_deref(), &delegation.agent);
        // The calls on the way distinguish delegations of agents that work for the same task.
        let parents = delegation.run.parents.iter().map(|parent| parent.call.as_bytes());
        let scope: Vec<&[u8]> = [memory.as_bytes(), task.as_bytes()].into_iter().chain(parents).collect();
        let context = id(&[scope.as_slice(), &[delegation.call.as_bytes()]].concat());
        Self::within(memory.to_string(), context)
    }

    /// The ids for starting the delegation again, the n-th time: of another conversation, so that the agent takes neither the
    /// message for the lost one, nor the lost task for the new one.
    pub(super) fn again(&self, nth: u32) -> Self {
        let nth = nth.to_le_bytes();
        Self::within(self.memory.clone(), id(&[self.context.as_bytes(), b"again", &nth]))
    }

    fn within(memory: String, context: Uuid) -> Self {
        let message = id(&[context.as_bytes(), b"message"]);
        Self { memory, context: context.to_string(), message: message.to_string() }
    }
}

/// The conversation of a delegation, the same in either placement.
pub(crate) fn conversation(delegation: &Delegation) -> String {
    Ids::of(delegation).context
}

fn memory(context: &str, user: Option<&str>, agent: &AgentName) -> Uuid {
    let user = user.map(|user| user.trim().to_lowercase()).unwrap_or_default();
    id(&[context.as_bytes(), user.as_bytes(), agent.as_str().as_bytes()])
}

/// The id of a list of parts. The hashed text contains the length of each part, so that different lists differ.
fn id(parts: &[&[u8]]) -> Uuid {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    Uuid::new_v5(&NAMESPACE, &bytes)
}

/// The message that starts the task. The user is in the metadata only, although upstream's supervisor adds "by user: …" to
/// the text: the agent's model reads the same text in either placement, and no model provider receives an email address.
pub(super) fn opening(delegation: &Delegation, ids: &Ids, require_approval: &[String]) -> Message {
    let mut message = Message::user(&ids.message, &delegation.prompt);
    message.context_id = Some(ids.context.clone());
    let mut metadata = metadata(delegation, &ids.memory, require_approval);
    // The agent keeps them with its task.
    let approved = &delegation.run.approved;
    metadata.extend((!approved.is_empty()).then(|| (APPROVED_CALLS.to_owned(), json!(approved))));
    let shared = delegation.run.scratchpad.as_ref();
    metadata.extend(shared.map(|shared| (SCRATCHPAD.to_owned(), json!(shared.files))));
    let path = delegation.path();
    let agents: Vec<&AgentName> = path.iter().map(|parent| &parent.agent).collect();
    metadata.insert(DELEGATION_PATH.to_owned(), json!(agents));
    message.metadata = Some(metadata);
    message
}

/// The same message, which names the tools that this process answers.
pub(super) fn with_client_tools(mut message: Message, tools: &[String]) -> Message {
    if !tools.is_empty() {
        message.metadata.get_or_insert_default().insert(CLIENT_TOOLS.to_owned(), json!(tools));
    }
    message
}

/// The message with the result of a call that this process answers.
pub(super) fn client_result(
    ids: &Ids,
    (task, context): (&str, &str),
    call: &str,
    output: &ToolOutput,
) -> SendMessageRequest {
    let id = id(&[ids.message.as_bytes(), call.as_bytes()]);
    let mut message = Message::new(Role::User, id, vec![Part::text(&output.content)]).within(task, context);
    let result = ClientToolResult { call: call.to_owned(), is_error: output.is_error };
    message.metadata.get_or_insert_default().insert(CLIENT_TOOL_RESULT.to_owned(), json!(result));
    let mut request = SendMessageRequest::new(message);
    let configuration = request.configuration.get_or_insert_default();
    (configuration.return_immediately, configuration.history_length) = (true, Some(0));
    request
}

/// The message that answers the question of a waiting task. The same answer to the same interactions has the same id in every
/// process, because an agent of this program acts once on each message.
pub(super) fn answer(
    delegation: &Delegation,
    ids: &Ids,
    task: &str,
    context: &str,
    answered: &Answered,
    require_approval: &[String],
) -> Message {
    let parts: Vec<Part> = form::answer(answered);
    let mut message = Message::new(Role::User, answer_id(ids, answered), parts).within(task, context);
    message.context_id = Some(context.to_owned()).filter(|context| !context.is_empty());
    message.metadata = Some(metadata(delegation, &ids.memory, require_approval));
    message
}

fn answer_id(ids: &Ids, answered: &Answered) -> Uuid {
    let calls = answered.form.calls();
    if calls.iter().any(|call| call.id.is_empty()) {
        return Uuid::now_v7();
    }
    let decisions = json!(answered.decisions).to_string();
    let asked = calls.iter().map(|call| call.id.as_bytes());
    let parts: Vec<&[u8]> =
        [ids.message.as_bytes()].into_iter().chain(asked).chain([decisions.as_bytes()]).collect();
    id(&parts)
}

fn metadata(delegation: &Delegation, memory: &str, require_approval: &[String]) -> Metadata {
    let Delegation { run, agent, .. } = delegation;
    let members = [
        ("trace_id", Some(&*run.trace_id)),
        ("context_id", Some(memory)),
        ("user_email", run.user.as_deref()),
    ];
    let members =
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let mut demanded: Vec<&String> = require_approval.iter().chain(run.require_approval.iter()).collect();
    demanded.sort_unstable();
    demanded.dedup();
    let demanded = (!demanded.is_empty()).then(|| (REQUIRE_APPROVAL.to_owned(), json!(demanded)));
    let allowed = run.always_allowed.get(agent).filter(|tools| !tools.is_empty());
    let allowed = allowed.map(|tools| (ALWAYS_ALLOWED.to_owned(), json!(tools)));
    members.chain(demanded).chain(allowed).collect()
}

/// Call options with W3C Trace Context, so that the agent's spans belong to the same trace.
pub(super) fn traced(run: &RunInfo, span: &str) -> CallOptions {
    let options = CallOptions::default();
    let Some(header) = traceparent(&run.trace_id, span) else { return options };
    options.clone().header("traceparent", &header).unwrap_or(options)
}

/// The `traceparent` of a trace; `None` if the header does not allow the trace id.
fn traceparent(trace_id: &str, span: &str) -> Option<String> {
    let is_id =
        trace_id.len() == 32 && trace_id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_none = trace_id.bytes().all(|byte| byte == b'0');
    let span = Uuid::new_v5(&NAMESPACE, span.as_bytes()).simple().to_string();
    let span = span.get(..16)?;
    (is_id && !is_none).then(|| format!("00-{trace_id}-{span}-01"))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "request_properties.rs"]
mod properties;

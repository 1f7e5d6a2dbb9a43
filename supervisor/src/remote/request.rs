//! What is sent to the agent: ids that are the same however often it is sent, and metadata that upstream's agents
//! read. Pure.

use caipe_a2a::client::CallOptions;
use caipe_a2a::model::{Message, Metadata, Part, Role};
use caipe_engine::{AgentName, Answered};
use serde_json::{Value, json};
use uuid::Uuid;

use super::form;
use crate::binding::REQUIRE_APPROVAL;
use crate::delegation::{Delegation, RunInfo};

/// Under which all ids are made.
const NAMESPACE: Uuid = Uuid::from_u128(0x9b1d_5a36_7f0e_5c6b_8d52_40c1_9e7a_2b64);

/// The ids of one delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids {
    /// The user's conversation with this agent: `context_id` in the metadata, which upstream's agents keep their
    /// memory by. Two users never have the same one, also where they write in the same conversation.
    pub(super) memory: String,
    /// The delegation's own conversation. Agents in this process begin each delegation with a clean sheet; so do
    /// those of this program elsewhere, and two delegations at once do not wait for each other.
    pub(super) context: String,
    /// The message that begins it.
    pub(super) message: String,
}

impl Ids {
    /// The ids of the delegation that a call asks for. The same call has the same ids in every process.
    pub(super) fn of(delegation: &Delegation) -> Self {
        let RunInfo { context, task, user, .. } = &delegation.run;
        let memory = memory(context, user.as_deref(), &delegation.agent);
        let context = id(&[memory.as_bytes(), task.as_bytes(), delegation.call.as_bytes()]);
        let message = id(&[context.as_bytes(), b"message"]);
        Self { memory: memory.to_string(), context: context.to_string(), message: message.to_string() }
    }
}

fn memory(context: &str, user: Option<&str>, agent: &AgentName) -> Uuid {
    let user = user.map(|user| user.trim().to_lowercase()).unwrap_or_default();
    id(&[context.as_bytes(), user.as_bytes(), agent.as_str().as_bytes()])
}

/// An id of these parts. Each is written with its length, so that no two lists of parts are the same text.
fn id(parts: &[&[u8]]) -> Uuid {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    Uuid::new_v5(&NAMESPACE, &bytes)
}

/// The message that begins the task. The user is in the metadata only; upstream.s supervisor has it in the text
/// ("by user: …"): the agent's model then reads the same as in this process, and no address goes to a model's provider.
pub(super) fn opening(delegation: &Delegation, ids: &Ids, require_approval: &[String]) -> Message {
    let mut message = Message::user(&ids.message, &delegation.prompt);
    message.context_id = Some(ids.context.clone());
    message.metadata = Some(metadata(&delegation.run, &ids.memory, require_approval));
    message
}

/// The message that answers what the task waits for.
pub(super) fn answer(
    delegation: &Delegation,
    ids: &Ids,
    task: &str,
    context: &str,
    answered: &Answered,
    require_approval: &[String],
) -> Message {
    let parts: Vec<Part> = form::answer(answered);
    let mut message = Message::new(Role::User, Uuid::now_v7(), parts).within(task, context);
    message.context_id = Some(context.to_owned()).filter(|context| !context.is_empty());
    message.metadata = Some(metadata(&delegation.run, &ids.memory, require_approval));
    message
}

fn metadata(run: &RunInfo, memory: &str, require_approval: &[String]) -> Metadata {
    let members = [
        ("trace_id", Some(&*run.trace_id)),
        ("context_id", Some(memory)),
        ("user_email", run.user.as_deref()),
    ];
    let members =
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let demanded: Vec<&String> = require_approval.iter().chain(run.require_approval.iter()).collect();
    let demanded = (!demanded.is_empty()).then(|| (REQUIRE_APPROVAL.to_owned(), json!(demanded)));
    members.chain(demanded).collect()
}

/// The options of the calls: W3C Trace Context, so that the agent's spans belong to the same trace.
pub(super) fn options(run: &RunInfo, ids: &Ids) -> CallOptions {
    traced(run, &ids.message)
}

/// The same for a call that belongs to no delegation.
pub(super) fn traced(run: &RunInfo, span: &str) -> CallOptions {
    let options = CallOptions::default();
    let Some(header) = traceparent(&run.trace_id, span) else { return options };
    options.clone().header("traceparent", &header).unwrap_or(options)
}

/// `traceparent` of a trace; nothing if its id is none that the header can carry.
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

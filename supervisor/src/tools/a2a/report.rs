//! Results as text for the model.

use std::collections::{BTreeMap, BTreeSet};

use caipe_a2a::model::AgentCard;
use caipe_engine::DelegationOutcome;
use serde_json::{Value, json};

use super::registry::Registered;
use crate::remote::RemoteTaskStatus;

/// The limits of what is reported of a card.
const MAX_SKILLS: usize = 100;
const MAX_INTERFACES: usize = 16;
const MAX_CHARS: usize = 2000;

pub(super) fn list(agents: &BTreeMap<String, Registered>) -> String {
    let agents = agents
        .iter()
        .map(|(name, agent)| json!({ "name": name, "url": agent.url, "description": agent.description }));
    Value::Array(agents.collect()).to_string()
}

pub(super) fn card(card: &AgentCard) -> String {
    let skills = card.skills.iter().take(MAX_SKILLS).map(|skill| {
        json!({ "id": short(&skill.id), "name": short(&skill.name), "description": short(&skill.description) })
    });
    let versions = card
        .supported_interfaces
        .iter()
        .take(MAX_INTERFACES)
        .map(|interface| short(&interface.protocol_version));
    let versions: BTreeSet<String> = versions.collect();
    let can = &card.capabilities;
    let extensions: Vec<String> =
        can.extensions.iter().take(MAX_INTERFACES).map(|known| short(&known.uri)).collect();
    json!({
        "name": short(&card.name),
        "description": short(&card.description),
        "version": short(&card.version),
        "protocolVersions": versions,
        "capabilities": {
            "streaming": can.streaming,
            "pushNotifications": can.push_notifications,
            "extendedAgentCard": can.extended_agent_card,
            "extensions": extensions,
        },
        "skills": skills.collect::<Vec<_>>(),
    })
    .to_string()
}

pub(super) fn outcome(agent: &str, outcome: DelegationOutcome) -> Result<String, String> {
    match outcome {
        DelegationOutcome::Completed { text } if text.trim().is_empty() => {
            Ok(format!("The agent {agent} is done and returned no text."))
        }
        DelegationOutcome::Completed { text } => Ok(text),
        DelegationOutcome::Failed { reason } => Err(format!("ERROR: agent {agent}: {reason}")),
        DelegationOutcome::Canceled => Err(format!("The agent {agent} was stopped before it had an answer.")),
    }
}

pub(super) fn task_status(agent: &str, task_status: RemoteTaskStatus) -> Result<String, String> {
    match task_status {
        RemoteTaskStatus::UnderWay { task, state } => Ok(format!(
            "The agent {agent} is at work: task {task} is {state}. Call again with task_id {task} for its answer."
        )),
        RemoteTaskStatus::Asks { task, question, is_for_a_person: true } => {
            Ok(for_a_person(agent, &task, &question))
        }
        RemoteTaskStatus::Asks { task, question, .. } => Ok(self::question(agent, Some(&task), &question)),
        RemoteTaskStatus::Ended(ended) => outcome(agent, ended),
    }
}

pub(super) fn question(agent: &str, task: Option<&str>, question: &str) -> String {
    let how = task.map_or_else(
        || "Call again with the answer in the message.".to_owned(),
        |task| format!("Call again with task_id {task} and the answer as message."),
    );
    let asks = format!("The agent {agent} asks: ");
    format!("{asks}{}\n{how}", question.trim().trim_start_matches(&asks))
}

/// A question that no model may answer.
pub(super) fn for_a_person(agent: &str, task: &str, question: &str) -> String {
    format!(
        "The agent {agent} waits in task {task} for a person: {}\nOnly a person may answer that, at the agent. Tell the \
         user, and call again with task_id {task}, without a message, for the result.",
        question.trim()
    )
}

/// The refusal of a second answer.
pub(super) fn is_being_answered(task: &str) -> String {
    format!("Another call is answering task {task}. Wait for its result, which says what the task asks then.")
}

fn short(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use caipe_a2a::model::{AgentCard, AgentInterface};

    use super::{MAX_CHARS, MAX_INTERFACES, card};

    #[test]
    fn a_card_of_any_size_becomes_a_bounded_text() {
        let mut huge = AgentCard::default();
        let long = || "x".repeat(10 * MAX_CHARS);
        (huge.name, huge.description, huge.version) = (long(), long(), long());
        huge.supported_interfaces = (0..10 * MAX_INTERFACES)
            .map(|n| AgentInterface::new("http://a", "JSONRPC", format!("{n}{}", long())))
            .collect();
        let text = card(&huge);
        assert!(text.len() < (MAX_INTERFACES + 4) * MAX_CHARS, "{} bytes", text.len());
        assert!(text.contains("\"streaming\":"), "what it can is text");
    }
}

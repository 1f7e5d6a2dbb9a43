//! System prompts, put together from what is known when a model turn begins. Pure.

use std::fmt::Write as _;

use caipe_crds::RenderedSpec;
use caipe_crds::prompt::AgentLine;

use crate::mcp::{ServerPhase, ServerStatus};

/// The supervisor's prompt, with the agents that it can ask right now.
pub(super) fn supervisor_prompt(
    spec: &RenderedSpec,
    agents: &[AgentLine<'_>],
    servers: &[ServerStatus],
) -> String {
    let mut prompt = headed("supervisor", &caipe_crds::prompt::system_prompt(spec, agents));
    push_tool_faults(&mut prompt, servers);
    prompt
}

/// An in-process agent's prompt.
pub(super) fn worker_prompt(name: &str, own: &str, servers: &[ServerStatus]) -> String {
    let mut prompt = headed(name, own.trim_end());
    push_tool_faults(&mut prompt, servers);
    prompt
}

/// A prompt that says first whose it is; scripted models tell agents apart by this line.
fn headed(name: &str, prompt: &str) -> String {
    format!("Agent: {name}\n\n{prompt}")
}

/// Tells the model which of its tools are missing, so that it says so instead of guessing (edge case of the
/// unification seed: "the LLM will be informed the subagent has no domain tools").
fn push_tool_faults(prompt: &mut String, servers: &[ServerStatus]) {
    for server in servers.iter().filter(|server| server.phase != ServerPhase::Ready) {
        let what = if server.tools == 0 { "are not available" } else { "may be out of date" };
        let _ = write!(prompt, "\n\nThe tools of the server \"{}\" {what} right now", server.name);
        if let Some(message) = &server.message {
            let _ = write!(prompt, ": {}", message.trim_end_matches('.'));
        }
        prompt.push_str(
            ". If a request needs them, say that they are not available; never make up their results.",
        );
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;

//! System prompts. Pure.

use std::fmt::Write as _;

use caipe_crds::RenderedSpec;
use caipe_crds::prompt::{AgentLine, agent_lines};

use super::tool_policy::ToolPolicy;
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

/// An in-process agent's prompt, with the agents that it may delegate to. `policy` says which of its tools it may call.
pub(super) fn worker_prompt(
    name: &str,
    own: &str,
    agents: &[AgentLine<'_>],
    policy: Option<&str>,
    servers: &[ServerStatus],
) -> String {
    let mut prompt = worker_text(name, own, agents, policy);
    push_tool_faults(&mut prompt, servers);
    prompt
}

/// The same while all tool servers are available.
fn worker_text(name: &str, own: &str, agents: &[AgentLine<'_>], policy: Option<&str>) -> String {
    let mut prompt = headed(name, own.trim_end());
    if !agents.is_empty() {
        prompt.push_str("\n\nYou can hand tasks to these agents with the tool `task`:");
        for agent in agents {
            let _ = write!(prompt, "\n- `{}`: {}", agent.name, agent.routing_hint.trim());
        }
    }
    if let Some(policy) = policy {
        prompt.extend(["\n\n", policy]);
    }
    prompt
}

/// The prompt of `supervisor` or of an agent that this program runs, while all its tool servers are available.
pub fn whole_prompt(spec: &RenderedSpec, name: &str) -> Option<String> {
    match spec.agent(name) {
        Some(agent) if agent.is_foreign() => None,
        Some(agent) => {
            let policy = ToolPolicy::from(agent);
            let policy = Some(policy.explained()).filter(|_| !agent.mcp.is_empty() || agent.a2a.is_some());
            let delegates = |line: &AgentLine<'_>| agent.delegates.iter().any(|name| name == line.name);
            let agents: Vec<AgentLine<'_>> = agent_lines(spec).into_iter().filter(delegates).collect();
            Some(worker_text(&agent.name, &agent.system_prompt, &agents, policy))
        }
        None => (name == "supervisor").then(|| supervisor_prompt(spec, &agent_lines(spec), &[])),
    }
}

/// The prompt after a line that names the agent, by which scripted models distinguish agents.
fn headed(name: &str, prompt: &str) -> String {
    format!("Agent: {name}\n\n{prompt}")
}

/// Names the tools that are unavailable, so that the model says so instead of guessing.
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

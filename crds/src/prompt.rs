//! The supervisor's system prompt: a template with three placeholders, filled from the rendered spec. The sections of any prompt.

use crate::names::normal;
use crate::rendered::{AnswerMode, RenderedSpec};
use crate::resource::settings::PromptSection;

/// The built-in template.
pub const DEFAULT_TEMPLATE: &str = include_str!("../prompts/supervisor.md");
const STRUCTURED_ANSWER: &str = include_str!("../prompts/answer_structured.md");
const MARKER_ANSWER: &str = include_str!("../prompts/answer_marker.md");
const RAG: &str = include_str!("../prompts/rag.md");
const NO_RAG: &str = "No knowledge base is connected. Do not claim to have searched one.";

/// The placeholders of a template.
pub const PLACEHOLDERS: [&str; 3] =
    ["{tool_instructions}", "{rag_instructions}", "{final_answer_instructions}"];

/// The supervisor's system prompt for a spec: its own template or the built-in one, filled in.
///
/// `agents` are the usable agents; [`agent_lines`] returns those of a spec.
pub fn system_prompt(spec: &RenderedSpec, agents: &[AgentLine<'_>]) -> String {
    let template = spec.supervisor.system_prompt.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    let rag = if spec.rag.is_some() { RAG } else { NO_RAG };
    fill(template, &tool_instructions(agents), rag, answer_instructions(spec.answer_mode))
}

/// A template with other sections: each replaces the section of the same title (`# Title`), removes it if its text is empty, or
/// is added before the last section, and at the end of a template without sections.
pub fn with_sections(template: &str, sections: &[PromptSection]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for line in template.split_inclusive('\n') {
        match parts.last_mut().filter(|_| !line.starts_with("# ")) {
            Some(part) => part.push_str(line),
            None => parts.push(line.to_owned()),
        }
    }
    for PromptSection { title, text } in sections {
        let is_same = |part: &String| {
            part.lines()
                .next()
                .and_then(|line| line.strip_prefix("# "))
                .is_some_and(|own| normal(own) == normal(title))
        };
        let (known, new) =
            (parts.iter().position(is_same), format!("# {}\n\n{}\n\n", title.trim(), text.trim()));
        match (known, text.trim().is_empty()) {
            (Some(at), true) => drop(parts.remove(at)),
            (Some(at), false) => parts[at] = new,
            (None, true) => {}
            (None, false) => add(&mut parts, new),
        }
    }
    parts.concat()
}

/// Adds a section before the last one. A text without sections comes first.
fn add(parts: &mut Vec<String>, section: String) {
    let at = if parts.len() > 1 { parts.len() - 1 } else { parts.len() };
    if let Some(before) = at.checked_sub(1).and_then(|at| parts.get_mut(at)) {
        before.truncate(before.trim_end().len());
        before.push_str("\n\n");
    }
    parts.insert(at, section);
}

/// One agent in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLine<'a> {
    /// The name, for calls of `task`.
    pub name: &'a str,
    /// The title, for plan steps.
    pub title: &'a str,
    /// When to use it.
    pub routing_hint: &'a str,
    /// Whether it shares files with an agent that delegates to it.
    pub shares_files: bool,
}

/// The lines of all agents of a spec.
pub fn agent_lines(spec: &RenderedSpec) -> Vec<AgentLine<'_>> {
    spec.agents
        .iter()
        .map(|agent| AgentLine {
            name: &agent.name,
            title: &agent.title,
            routing_hint: &agent.routing_hint,
            shares_files: agent.workspace.is_some(),
        })
        .collect()
}

/// Fills a template in one pass, so that placeholders in inserted texts stay as they are.
pub fn fill(template: &str, tools: &str, rag: &str, answer: &str) -> String {
    let values = PLACEHOLDERS.into_iter().zip([tools, rag, answer]);
    let values: Vec<(&str, &str)> = values.map(|(name, text)| (name, text.trim_end())).collect();
    let mut out = String::with_capacity(template.len() + tools.len() + rag.len() + answer.len());
    let mut rest = template;
    let next = |rest: &str| {
        let found = values.iter().filter_map(|(name, text)| Some((rest.find(name)?, *name, *text)));
        found.min_by_key(|(at, ..)| *at)
    };
    while let Some((at, name, text)) = next(rest) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        out.push_str(text);
        rest = after.strip_prefix(name).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn tool_instructions(agents: &[AgentLine<'_>]) -> String {
    if agents.is_empty() {
        return "No agent is available. Say so when a request needs one.".to_owned();
    }
    let line = |agent: &AgentLine<'_>| {
        format!("- `{}` (plan prefix `[{}]`): {}", agent.name, agent.title, agent.routing_hint.trim())
    };
    agents.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The instructions for the final answer.
pub const fn answer_instructions(mode: AnswerMode) -> &'static str {
    match mode {
        AnswerMode::Structured => STRUCTURED_ANSWER,
        AnswerMode::Marker => MARKER_ANSWER,
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;

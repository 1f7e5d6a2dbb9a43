//! The settings of a spec other than models and agents.

use crate::names::normal;
use crate::prompt;
use crate::rendered::{
    self, A2aTools, AnswerMode, Connectivity, Limits, Rag, RenderedAgent, SupervisorIdentity,
};
use crate::resource::common::TextSource;
use crate::resource::settings as declared;

use super::{Context, RAG_SECRETS, agents, servers};

/// The RAG server of a local installation.
const RAG_SERVER: &str = "http://localhost:9446";

const MONTH_SECONDS: u32 = 2_592_000;

pub(super) fn identity(cx: &mut Context<'_>) -> SupervisorIdentity {
    let card = cx.resource.spec.card.clone().unwrap_or_default();
    let external = cx.vars.url("EXTERNAL_URL");
    let external = cx.read(external).map(str::to_owned);
    let prompt = cx.resource.spec.prompts.system_prompt.as_ref();
    SupervisorIdentity {
        name: card.name.unwrap_or_else(|| "AI Platform Engineer".to_owned()),
        description: card.description.unwrap_or_else(|| {
            "Answers questions about your platform and operates it with the help of specialised agents."
                .to_owned()
        }),
        system_prompt: with_sections(cx, prompt),
        skill_examples: card.skill_examples,
        external_url: external.or(card.external_url),
    }
}

/// The template of the supervisor's prompt; `None` for the built-in one.
fn with_sections(cx: &mut Context<'_>, prompt: Option<&TextSource>) -> Option<String> {
    let own = prompt.and_then(|text| source(cx, "spec.prompts.systemPrompt", text));
    let sections = &cx.resource.spec.prompts.sections;
    if sections.is_empty() {
        return own;
    }
    let template = prompt::with_sections(own.as_deref().unwrap_or(prompt::DEFAULT_TEMPLATE), sections);
    for placeholder in prompt::PLACEHOLDERS.into_iter().filter(|name| !template.contains(name)) {
        cx.warn(
            "spec.prompts.sections",
            format!("the prompt has no `{placeholder}`: write it into the section"),
        );
    }
    Some(template)
}

fn source(cx: &mut Context<'_>, path: &str, text: &TextSource) -> Option<String> {
    let Some(reference) = &text.config_map_ref else { return text.inline.clone() };
    cx.config_map_key(&format!("{path}.configMapRef"), &reference.name, &reference.key).map(str::to_owned)
}

pub(super) fn answer_mode(cx: &mut Context<'_>) -> AnswerMode {
    let structured = cx.vars.switch("USE_STRUCTURED_RESPONSE");
    let declared = cx.resource.spec.prompts.answer_mode == declared::AnswerMode::Structured;
    if cx.read(structured).unwrap_or(declared) { AnswerMode::Structured } else { AnswerMode::Marker }
}

pub(super) fn streaming(cx: &mut Context<'_>) -> bool {
    let streaming = cx.vars.switch("ENABLE_STREAMING");
    cx.read(streaming).unwrap_or(cx.resource.spec.prompts.streaming)
}

pub(super) fn limits(cx: &mut Context<'_>) -> Limits {
    let declared = cx.resource.spec.limits.clone();
    let mut number = |name: &str, bounds, otherwise| {
        let value = cx.vars.number(name, bounds);
        cx.read(value).unwrap_or(otherwise)
    };
    Limits {
        recursion: number("LANGGRAPH_RECURSION_LIMIT", 1..=100_000, declared.recursion),
        max_context_tokens: number("MAX_CONTEXT_TOKENS", 1000..=10_000_000, declared.max_context_tokens),
        min_messages_to_keep: number("MIN_MESSAGES_TO_KEEP", 1..=1000, declared.min_messages_to_keep),
        max_tool_output_chars: number(
            "MAX_TOOL_OUTPUT_CHARS",
            100..=10_000_000,
            declared.max_tool_output_chars,
        ),
        compact_output_lines: number(
            "CAIPE_COMPACT_OUTPUT_LINES",
            0..=100_000,
            declared.compact_output_lines,
        ),
        model_timeout_ms: millis(declared.model_timeout_seconds),
        tool_timeout_ms: millis(declared.tool_timeout_seconds),
        agent_timeout_ms: seconds(cx, "A2A_TIMEOUT", 86_400)
            .unwrap_or(millis(declared.agent_timeout_seconds)),
        mcp_start_timeout_ms: millis(declared.mcp_start_timeout_seconds),
        guards: declared.guards,
    }
}

fn millis(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

fn seconds(cx: &mut Context<'_>, name: &str, most: u32) -> Option<u64> {
    let value = cx.vars.seconds(name, most);
    cx.read(value)
}

/// The knowledge base: enabled by `ENABLE_RAG`, or by the resource if that variable is unset.
pub(super) fn rag(cx: &mut Context<'_>) -> Option<Rag> {
    let (enabled, url) = (cx.vars.switch("ENABLE_RAG"), cx.vars.url("RAG_SERVER_URL"));
    let (enabled, url) = (cx.read(enabled), cx.read(url));
    let declared = cx.resource.spec.rag.clone();
    if !enabled.unwrap_or(declared.is_some()) {
        return None;
    }
    let declared = declared.unwrap_or_else(|| declared::Rag::at(RAG_SERVER));
    let secrets_dir = cx.secrets_dir(RAG_SECRETS, !declared.headers_from.is_empty());
    let mut number = |name: &str, bounds, otherwise| {
        let value = cx.vars.number(name, bounds);
        cx.read(value).unwrap_or(otherwise)
    };
    Some(Rag {
        url: mcp_endpoint(url.unwrap_or(&declared.url)),
        headers: servers::headers(&declared.headers_from),
        secrets_dir,
        search_max_calls: number("SEARCH_MAX_CALLS", 1..=1000, declared.search_max_calls),
        fetch_document_max_calls: number(
            "FETCH_DOCUMENT_MAX_CALLS",
            1..=1000,
            declared.fetch_document_max_calls,
        ),
        max_output_chars: number("RAG_MAX_OUTPUT_CHARS", 100..=1_000_000, declared.max_output_chars),
        max_search_results: number("RAG_MAX_SEARCH_RESULTS", 1..=100, declared.max_search_results),
        tool_names: cx.vars.text("RAG_TOOL_NAMES").map_or(declared.tool_names, list),
    })
}

/// The URL of the MCP endpoint of a RAG server.
fn mcp_endpoint(url: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with("/mcp") { url.to_owned() } else { format!("{url}/mcp") }
}

/// The entries of a list that commas separate.
fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// The supervisor's tools that call other A2A agents: enabled by `CAIPE_A2A_TOOLS`, or by the resource if that variable is unset.
/// The agents that the resource names get them too.
pub(super) fn a2a(cx: &mut Context<'_>, agents: &mut [RenderedAgent]) -> Option<A2aTools> {
    let enabled = cx.vars.switch("CAIPE_A2A_TOOLS");
    let declared = cx.resource.spec.a2a.clone();
    if !cx.read(enabled).unwrap_or(declared.is_some()) {
        return None;
    }
    let declared = declared.unwrap_or_default();
    let allow = cx.vars.text("CAIPE_A2A_ALLOW").map_or(declared.allow, list);
    let external = |agent: &&RenderedAgent| {
        let declared = cx.resource.spec.agents().iter().find(|it| it.name == agent.name);
        declared.is_some_and(|it| it.external.is_some())
    };
    let external: Vec<String> = agents.iter().filter(external).map(|agent| agent.name.clone()).collect();
    for (at, name) in declared.agents.iter().enumerate() {
        let name = normal(name);
        match agents.iter_mut().find(|agent| agent.name == name) {
            Some(agent) if !agent.is_foreign() => {
                let known = external.iter().filter(|known| agent.delegates.contains(known)).cloned();
                agent.a2a = Some(A2aTools { agents: known.collect(), allow: allow.clone() });
            }
            found => report_without_tools(cx, at, &name, found.is_some()),
        }
    }
    Some(A2aTools { agents: external, allow })
}

/// Reports an agent of `spec.a2a.agents` that cannot have the tools.
fn report_without_tools(cx: &mut Context<'_>, at: usize, name: &str, is_enabled: bool) {
    let path = format!("spec.a2a.agents[{at}]");
    if is_enabled {
        cx.fault(path, format!("`{name}` is another program, whose tools are its own: remove it"));
        return;
    }
    match agents::declared(cx).iter().find(|agent| agent.name == name) {
        Some(agent) if !agents::enabled(cx, agent) => {
            cx.warn(path, format!("the agent `{name}` is not enabled"));
        }
        // The spec of a single agent has no others.
        Some(_) => {}
        None => cx.fault(
            path,
            format!("there is no agent `{name}`: correct the name, or add the agent to spec.agents"),
        ),
    }
}

pub(super) fn connectivity(cx: &mut Context<'_>) -> rendered::Connectivity {
    let declared = cx.resource.spec.connectivity.clone();
    let (skip, background) = (
        cx.vars.switch("SKIP_AGENT_CONNECTIVITY_CHECK"),
        cx.vars.switch("AGENT_CONNECTIVITY_ENABLE_BACKGROUND"),
    );
    let retries = cx.vars.number("AGENT_CONNECTIVITY_MAX_RETRIES", 0..=100);
    let mut variable = |name: &str| seconds(cx, &format!("AGENT_CONNECTIVITY_{name}"), MONTH_SECONDS);
    let mut time = |name: &str, otherwise| variable(name).unwrap_or(millis(otherwise));
    let timeout_ms = time("TIMEOUT", declared.timeout_seconds);
    let retry_delay_ms = time("RETRY_DELAY", declared.retry_delay_seconds);
    let startup_delay_ms = time("STARTUP_DELAY", declared.startup_delay_seconds);
    let fast_check_timeout_ms = time("FAST_CHECK_TIMEOUT", declared.fast_check_timeout_seconds);
    let refresh_interval_ms =
        variable("REFRESH_INTERVAL").or_else(|| Some(millis(declared.refresh_interval_seconds?)));
    Connectivity {
        check: cx.read(skip).map_or(declared.check, |skip| !skip),
        background: cx.read(background).unwrap_or(declared.background),
        timeout_ms,
        max_retries: cx.read(retries).unwrap_or(declared.max_retries),
        retry_delay_ms,
        startup_delay_ms,
        refresh_interval_ms,
        fast_check_timeout_ms,
    }
}

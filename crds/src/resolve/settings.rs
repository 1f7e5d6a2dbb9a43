//! Everything of a spec but models and agents.

use crate::rendered::{
    self, A2aTools, AnswerMode, Connectivity, ExternalStore, Limits, Rag, RenderedAgent, Store,
    SupervisorIdentity,
};
use crate::resource::common::TextSource;
use crate::resource::settings as declared;

use super::Context;

const MONTH_SECONDS: u32 = 2_592_000;
const DEFAULT_RAG_URL: &str = "http://localhost:9446";

/// Who the supervisor is.
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
        system_prompt: prompt.and_then(|text| source(cx, "spec.prompts.systemPrompt", text)),
        skill_examples: card.skill_examples,
        external_url: external.or(card.external_url),
    }
}

fn source(cx: &mut Context<'_>, path: &str, text: &TextSource) -> Option<String> {
    let Some(reference) = &text.config_map_ref else { return text.inline.clone() };
    cx.config_map_key(&format!("{path}.configMapRef"), &reference.name, &reference.key).map(str::to_owned)
}

/// How the final answer is told from narration.
pub(super) fn answer_mode(cx: &mut Context<'_>) -> AnswerMode {
    let structured = cx.vars.switch("USE_STRUCTURED_RESPONSE");
    let declared = cx.resource.spec.prompts.answer_mode == declared::AnswerMode::Structured;
    if cx.read(structured).unwrap_or(declared) { AnswerMode::Structured } else { AnswerMode::Marker }
}

/// Whether answers stream.
pub(super) fn streaming(cx: &mut Context<'_>) -> bool {
    let streaming = cx.vars.switch("ENABLE_STREAMING");
    cx.read(streaming).unwrap_or(cx.resource.spec.prompts.streaming)
}

/// Bounds of one run.
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
        model_timeout_ms: millis(declared.model_timeout_seconds),
        tool_timeout_ms: millis(declared.tool_timeout_seconds),
        agent_timeout_ms: seconds(cx, "A2A_TIMEOUT", 86_400)
            .unwrap_or(millis(declared.agent_timeout_seconds)),
        mcp_start_timeout_ms: millis(declared.mcp_start_timeout_seconds),
    }
}

fn millis(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

fn seconds(cx: &mut Context<'_>, name: &str, most: u32) -> Option<u64> {
    let value = cx.vars.seconds(name, most);
    cx.read(value)
}

/// The knowledge base: `ENABLE_RAG` decides where it is set; else there is one if the resource names one.
pub(super) fn rag(cx: &mut Context<'_>) -> Option<Rag> {
    let (enabled, url) = (cx.vars.switch("ENABLE_RAG"), cx.vars.url("RAG_SERVER_URL"));
    let (enabled, url) = (cx.read(enabled), cx.read(url));
    let declared = cx.resource.spec.rag.clone();
    if !enabled.unwrap_or(declared.is_some()) {
        return None;
    }
    let declared = declared.unwrap_or_else(|| declared::Rag::at(DEFAULT_RAG_URL));
    let mut number = |name: &str, bounds, otherwise| {
        let value = cx.vars.number(name, bounds);
        cx.read(value).unwrap_or(otherwise)
    };
    Some(Rag {
        url: url.map_or(declared.url, str::to_owned).trim_end_matches('/').to_owned(),
        search_max_calls: number("SEARCH_MAX_CALLS", 1..=1000, declared.search_max_calls),
        fetch_document_max_calls: number(
            "FETCH_DOCUMENT_MAX_CALLS",
            1..=1000,
            declared.fetch_document_max_calls,
        ),
        max_output_chars: number("RAG_MAX_OUTPUT_CHARS", 100..=1_000_000, declared.max_output_chars),
        max_search_results: number("RAG_MAX_SEARCH_RESULTS", 1..=100, declared.max_search_results),
    })
}

/// The tools that ask A2A agents of others: `CAIPE_A2A_TOOLS` decides where it is set; else they are there if the
/// resource names them.
pub(super) fn a2a(cx: &mut Context<'_>, agents: &[RenderedAgent]) -> Option<A2aTools> {
    let enabled = cx.vars.switch("CAIPE_A2A_TOOLS");
    let declared = cx.resource.spec.a2a.clone();
    if !cx.read(enabled).unwrap_or(declared.is_some()) {
        return None;
    }
    let allowed = cx.vars.text("CAIPE_A2A_ALLOW").map(|list| list.split(',').map(str::trim));
    let allow = match allowed {
        Some(list) => list.filter(|entry| !entry.is_empty()).map(str::to_owned).collect(),
        None => declared.unwrap_or_default().allow,
    };
    let external = |agent: &&RenderedAgent| {
        let declared = cx.resource.spec.agents().iter().find(|it| it.name == agent.name);
        declared.is_some_and(|it| it.external.is_some())
    };
    let agents = agents.iter().filter(external).map(|agent| agent.name.clone()).collect();
    Some(A2aTools { agents, allow })
}

/// Where conversations are kept: `LANGGRAPH_CHECKPOINT_TYPE` decides where it is set.
pub(super) fn store(cx: &mut Context<'_>) -> Store {
    const TYPE: &str = "LANGGRAPH_CHECKPOINT_TYPE";
    match cx.vars.text(TYPE).map(str::to_lowercase).as_deref() {
        None => declared_store(cx),
        Some("memory") => Store::Memory {},
        Some("sqlite") => Store::Sqlite {},
        Some("redis") => variable_store(cx, "redis", &["LANGGRAPH_CHECKPOINT_REDIS_URL", "REDIS_URL"]),
        Some("mongodb") => {
            variable_store(cx, "mongodb", &["LANGGRAPH_CHECKPOINT_MONGODB_URI", "MONGODB_URI"])
        }
        Some(_) => {
            cx.fault(format!("${TYPE}"), "must be memory, sqlite, redis or mongodb");
            Store::Memory {}
        }
    }
}

fn declared_store(cx: &mut Context<'_>) -> Store {
    let store = cx.resource.spec.store.clone().unwrap_or_default();
    if let Some(redis) = &store.redis {
        return Store::Redis(external_store(cx, redis, "REDIS_URL"));
    }
    if let Some(mongodb) = &store.mongodb {
        return Store::Mongodb(external_store(cx, mongodb, "MONGODB_URI"));
    }
    Store::Sqlite {}
}

fn external_store(cx: &mut Context<'_>, store: &declared::ExternalStore, variable: &str) -> ExternalStore {
    if !cx.in_cluster() && cx.vars.text(variable).is_none() {
        cx.fault(
            format!("${variable}"),
            "is not set, and the resource's store needs it: set it to the connection string",
        );
    }
    let ttl = cx.vars.number("LANGGRAPH_CHECKPOINT_TTL_MINUTES", 0..=5_256_000);
    ExternalStore {
        url: format!("${{{variable}}}"),
        secrets_dir: cx.secrets_dir("store", true),
        database: store.database.clone(),
        ttl_minutes: cx.read(ttl).unwrap_or(store.ttl_minutes),
        required: store.required,
    }
}

/// A store that the environment chose; what the resource says of the same kind of store still counts.
fn variable_store(cx: &mut Context<'_>, kind: &str, variables: &[&str; 2]) -> Store {
    let declared = cx.resource.spec.store.clone().unwrap_or_default();
    let redis = kind == "redis";
    let same = if redis { declared.redis } else { declared.mongodb };
    let Some(variable) = variables.iter().find(|name| cx.vars.text(name).is_some()) else {
        let [first, second] = variables;
        cx.fault(
            format!("${first}"),
            format!("is not set, nor is {second}: the {kind} store needs its connection string"),
        );
        return Store::Memory {};
    };
    let prefix = format!("LANGGRAPH_CHECKPOINT_{}", kind.to_uppercase());
    let ttl = cx.vars.number(&format!("{prefix}_TTL_MINUTES"), 0..=5_256_000);
    let ttl = cx.read(ttl).or_else(|| {
        let ttl = cx.vars.number("LANGGRAPH_CHECKPOINT_TTL_MINUTES", 0..=5_256_000);
        cx.read(ttl)
    });
    let database = [format!("{prefix}_DB_NAME"), "MONGODB_DATABASE".to_owned()];
    let database = if redis { None } else { cx.vars.first(&database) };
    let store = ExternalStore {
        url: format!("${{{variable}}}"),
        secrets_dir: None,
        database: database.map(str::to_owned).or_else(|| same.as_ref()?.database.clone()),
        ttl_minutes: ttl.or_else(|| Some(same.as_ref()?.ttl_minutes)).unwrap_or(0),
        required: same.is_some_and(|same| same.required),
    };
    if redis { Store::Redis(store) } else { Store::Mongodb(store) }
}

/// How remote agents are probed.
pub(super) fn connectivity(cx: &mut Context<'_>) -> rendered::Connectivity {
    let declared = cx.resource.spec.connectivity.clone();
    let (skip, background) = (
        cx.vars.switch("SKIP_AGENT_CONNECTIVITY_CHECK"),
        cx.vars.switch("AGENT_CONNECTIVITY_ENABLE_BACKGROUND"),
    );
    let retries = cx.vars.number("AGENT_CONNECTIVITY_MAX_RETRIES", 0..=100);
    let mut said = |name: &str| seconds(cx, &format!("AGENT_CONNECTIVITY_{name}"), MONTH_SECONDS);
    let mut time = |name: &str, otherwise| said(name).unwrap_or(millis(otherwise));
    let timeout_ms = time("TIMEOUT", declared.timeout_seconds);
    let retry_delay_ms = time("RETRY_DELAY", declared.retry_delay_seconds);
    let startup_delay_ms = time("STARTUP_DELAY", declared.startup_delay_seconds);
    let fast_check_timeout_ms = time("FAST_CHECK_TIMEOUT", declared.fast_check_timeout_seconds);
    let refresh_interval_ms =
        said("REFRESH_INTERVAL").or_else(|| Some(millis(declared.refresh_interval_seconds?)));
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

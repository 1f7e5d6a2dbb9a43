//! What agents remember about people.

use crate::rendered::{Memory, RenderedAgent, Store};
use crate::resource::tool_domains::Memory as Declared;

use super::Context;
use super::store::{self, has_replicas};

/// Most facts that a search returns by default.
const MAX_RESULTS: u32 = 50;

const TYPE: &str = "LANGGRAPH_STORE_TYPE";

const KEY_PREFIX: &str = "LANGGRAPH_STORE_KEY_PREFIX";

/// The variables of upstream that have no effect here, and what to do instead.
const IGNORED: [(&str, &str); 5] = [
    ("LANGGRAPH_STORE_EMBEDDINGS_PROVIDER", SEARCHED_BY_WORDS),
    ("LANGGRAPH_STORE_EMBEDDINGS_MODEL", SEARCHED_BY_WORDS),
    ("LANGGRAPH_STORE_EMBEDDINGS_DIMS", SEARCHED_BY_WORDS),
    ("LANGGRAPH_STORE_MAX_SUMMARIES", "conversations are not summarized into facts: remove it"),
    (
        "FACT_EXTRACTION_MODEL",
        "no model extracts facts in the background: set memory of an agent, which saves facts itself",
    ),
];

const SEARCHED_BY_WORDS: &str = "facts are searched by words and not by embeddings: remove it";

/// The settings, if an agent or the supervisor remembers anything.
pub(super) fn memory(
    cx: &mut Context<'_>,
    conversations: &Store,
    agents: &[RenderedAgent],
) -> Option<Memory> {
    let declared = cx.resource.spec.memory.clone();
    let store = own_store(cx, conversations);
    let ttl = cx.vars.number("LANGGRAPH_STORE_TTL_MINUTES", 0..=5_256_000);
    let max_results = cx.vars.number("LANGGRAPH_STORE_MAX_MEMORIES", 1..=200);
    let (ttl, max_results) = (cx.read(ttl), cx.read(max_results));
    note_ignored(cx);
    if declared.is_none() && agents.iter().all(|agent| agent.memory.is_none()) {
        return None;
    }
    let Declared { ttl_minutes, supervisor } = declared.unwrap_or_default();
    Some(Memory {
        ttl_minutes: Some(ttl.unwrap_or(ttl_minutes)).filter(|minutes| *minutes > 0),
        max_results: max_results.unwrap_or(MAX_RESULTS),
        supervisor,
        store,
    })
}

/// The store of facts, if it is not that of conversations.
fn own_store(cx: &mut Context<'_>, conversations: &Store) -> Option<Store> {
    let kind = cx.vars.text(TYPE).map(str::to_lowercase);
    if kind.as_deref() != Some("redis") && cx.vars.text(KEY_PREFIX).is_some() {
        cx.warn(format!("${KEY_PREFIX}"), format!("it counts with {TYPE}=redis only: remove it"));
    }
    let refused = match kind.as_deref()? {
        "redis" => {
            let prefix = key_prefix(cx);
            return Some(store::redis_of_facts(cx, prefix));
        }
        "mongodb" => return Some(store::mongodb_of_facts(cx)),
        "memory" if *conversations == (Store::Memory {}) => return None,
        "memory" if !has_replicas(cx) => return Some(Store::Memory {}),
        "memory" => "with several replicas, facts need a store that all of them reach: set it to redis or mongodb, or remove it to use the store of conversations".to_owned(),
        "sqlite" if *conversations == (Store::Sqlite {}) => return None,
        "sqlite" => "facts are in SQLite only where conversations are: remove it to use the store of conversations".to_owned(),
        kind => format!("`{kind}` is unknown: set it to redis, mongodb, sqlite or memory, or remove it to use the store of conversations"),
    };
    cx.fault(format!("${TYPE}"), refused);
    None
}

fn key_prefix(cx: &mut Context<'_>) -> Option<String> {
    let prefix = cx.vars.text(KEY_PREFIX)?;
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if prefix.len() > 63 || !prefix.chars().all(is_usable) {
        let message = "must be at most 63 letters, digits and characters of `_.:-`";
        cx.fault(format!("${KEY_PREFIX}"), message);
    }
    Some(prefix.to_owned())
}

fn note_ignored(cx: &mut Context<'_>) {
    for (name, message) in IGNORED {
        if cx.vars.text(name).is_some() {
            cx.warn(format!("${name}"), message);
        }
    }
    let extraction = cx.vars.switch("ENABLE_FACT_EXTRACTION");
    if cx.read(extraction) == Some(true) {
        let message =
            "no model extracts facts in the background: set memory of an agent, which saves facts itself";
        cx.warn("$ENABLE_FACT_EXTRACTION", message);
    }
}

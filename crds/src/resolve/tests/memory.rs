//! What agents remember.

use super::{Vars, default_spec, env, faults, resource};
use crate::rendered::{Memory, Store};
use crate::resolve::resolve;
use crate::{default_resource, rendered::RenderedSpec};

const AGENT: &str = "agents: [{ name: jira, memory: {} }]";

fn spec(declared: &str, variables: Vars<'_>) -> RenderedSpec {
    resolve(&resource(declared), &env(variables)).unwrap_or_else(|faults| panic!("{faults}")).spec
}

fn memory(declared: &str, variables: Vars<'_>) -> Memory {
    spec(declared, variables).memory.unwrap_or_else(|| panic!("no memory: {declared}"))
}

#[test]
fn nothing_is_remembered_by_default() {
    assert_eq!(default_spec(&[("LANGGRAPH_STORE_TTL_MINUTES", "5")]).memory, None);
    let expected = Memory { ttl_minutes: Some(10_080), max_results: 50, supervisor: false, store: None };
    assert_eq!(memory(AGENT, &[]), expected);
    let own = memory("memory: { supervisor: true, ttlMinutes: 0 }\nagents: []", &[]);
    assert_eq!(own, Memory { ttl_minutes: None, supervisor: true, ..expected });
}

#[test]
fn variables_override_the_resource() {
    let variables = [("LANGGRAPH_STORE_TTL_MINUTES", "30"), ("LANGGRAPH_STORE_MAX_MEMORIES", "7")];
    let found = memory(&format!("memory: {{ ttlMinutes: 5 }}\n{AGENT}"), &variables);
    assert_eq!((found.ttl_minutes, found.max_results), (Some(30), 7));
    assert_eq!(memory(AGENT, &[("LANGGRAPH_STORE_TTL_MINUTES", "0")]).ttl_minutes, None);
}

#[test]
fn facts_have_a_store_of_their_own_if_a_variable_says_so() {
    let redis = |database: &str| {
        Some(Store::Redis {
            database: database.to_owned(),
            ttl_minutes: None,
            required: false,
            secrets_dir: None,
        })
    };
    let of = |variables: Vars<'_>| memory(AGENT, variables).store;
    assert_eq!(of(&[("LANGGRAPH_STORE_TYPE", "Redis")]), redis("platform"));
    let prefixed = [("LANGGRAPH_STORE_TYPE", "redis"), ("LANGGRAPH_STORE_KEY_PREFIX", "facts:")];
    assert_eq!(of(&prefixed), redis("facts:"));
    assert!(matches!(of(&[("LANGGRAPH_STORE_TYPE", "mongodb")]), Some(Store::Mongodb { .. })));
    assert_eq!(of(&[("LANGGRAPH_STORE_TYPE", "memory")]), Some(Store::Memory {}));
    assert_eq!(of(&[("LANGGRAPH_STORE_TYPE", "sqlite")]), None, "that of conversations");
    let both = [("LANGGRAPH_STORE_TYPE", "memory"), ("LANGGRAPH_CHECKPOINT_TYPE", "memory")];
    assert_eq!(of(&both), None);
}

#[test]
fn a_store_that_cannot_be_used_is_refused() {
    let replicas = "store: { redis: { secretRef: { name: s } } }\nreplicas: 2\nagents: []";
    for (declared, name, value, expected) in [
        (
            "agents: []",
            "LANGGRAPH_STORE_TYPE",
            "Postgres",
            "$LANGGRAPH_STORE_TYPE: `postgres` is unknown: set it to redis",
        ),
        (replicas, "LANGGRAPH_STORE_TYPE", "memory", "$LANGGRAPH_STORE_TYPE: with several replicas"),
        (replicas, "LANGGRAPH_STORE_TYPE", "sqlite", "$LANGGRAPH_STORE_TYPE: facts are in SQLite only"),
        (
            "agents: []",
            "LANGGRAPH_STORE_TTL_MINUTES",
            "soon",
            "$LANGGRAPH_STORE_TTL_MINUTES: must be a whole number",
        ),
        (
            "agents: []",
            "LANGGRAPH_STORE_MAX_MEMORIES",
            "0",
            "$LANGGRAPH_STORE_MAX_MEMORIES: must be a whole number",
        ),
        ("agents: []", "ENABLE_FACT_EXTRACTION", "maybe", "$ENABLE_FACT_EXTRACTION: must be true or false"),
    ] {
        let found = faults(&resource(declared), &[(name, value)]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    }
    let prefix = [("LANGGRAPH_STORE_TYPE", "redis"), ("LANGGRAPH_STORE_KEY_PREFIX", "a b")];
    assert_eq!(faults(&default_resource(), &prefix).len(), 1);
}

#[test]
fn variables_without_an_effect_are_reported() {
    let variables = [
        ("LANGGRAPH_STORE_EMBEDDINGS_MODEL", "m"),
        ("ENABLE_FACT_EXTRACTION", "true"),
        ("LANGGRAPH_STORE_KEY_PREFIX", "p"),
    ];
    let resolved = resolve(&resource(AGENT), &env(&variables)).unwrap();
    let warned = |name: &str| resolved.warnings.iter().any(|warning| warning.to_string().contains(name));
    for (name, _) in variables {
        assert!(warned(name), "{name}: {:?}", resolved.warnings);
    }
    let off = resolve(&resource(AGENT), &env(&[("ENABLE_FACT_EXTRACTION", "false")])).unwrap();
    assert!(!off.warnings.iter().any(|warning| warning.to_string().contains("FACT")));
}

/// The supervisor answers its calls, so its process gets neither the store nor the term of facts.
#[test]
fn a_remote_agent_has_the_tools_and_not_the_facts() {
    let variables = [
        ("DISTRIBUTED_AGENTS", "jira"),
        ("JIRA_AGENT_URL", "http://x:1"),
        ("LANGGRAPH_STORE_TYPE", "redis"),
        ("LANGGRAPH_STORE_REDIS_URL", "redis://x"),
    ];
    let spec = resolve(&resource(AGENT), &env(&variables)).unwrap().spec;
    assert!(spec.memory.as_ref().is_some_and(|memory| memory.store.is_some()));
    let (own, jira) = spec.for_agent("jira").unwrap();
    let memory = own.memory.unwrap();
    assert!(jira.memory.is_some() && memory.store.is_none() && memory.ttl_minutes.is_none(), "{memory:?}");
}

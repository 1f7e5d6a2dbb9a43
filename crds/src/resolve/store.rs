//! The stores of the supervisor and of remote agents.

use crate::rendered::Store;
use crate::resource::agent::Agent;
use crate::resource::settings as declared;

use super::{Context, STORE_SECRETS};

pub(super) fn store(cx: &mut Context<'_>) -> Store {
    let store = chosen_store(cx);
    let spec = &cx.resource.spec;
    let is_shared = matches!(store, Store::Redis { .. } | Store::Mongodb { .. });
    // Without a shared store in the spec, a rule has refused the replicas.
    if !is_shared && spec.has_shared_store() && has_replicas(cx) {
        let reason = "the replicas of spec.replicas need the store of spec.store: remove LANGGRAPH_CHECKPOINT_TYPE and LANGGRAPH_DEV, or set replicas to 1";
        cx.fault("spec.env".to_owned(), reason.to_owned());
    }
    store
}

pub(super) fn has_replicas(cx: &Context<'_>) -> bool {
    cx.resource.spec.replicas.is_some_and(|replicas| replicas > 1)
}

fn chosen_store(cx: &mut Context<'_>) -> Store {
    const TYPE: &str = "LANGGRAPH_CHECKPOINT_TYPE";
    let declared = cx.resource.spec.store.clone().unwrap_or_default();
    match cx.vars.text(TYPE).map(str::to_lowercase).as_deref() {
        None if cx.vars.text("LANGGRAPH_DEV").is_some() => Store::Memory {},
        None if declared.redis.is_some() => redis(cx, declared.redis),
        None if declared.mongodb.is_some() => mongodb(cx, declared.mongodb),
        Some("redis") => redis(cx, declared.redis),
        Some("mongodb") => mongodb(cx, declared.mongodb),
        None | Some("sqlite") => Store::Sqlite {},
        Some("memory") => Store::Memory {},
        Some(kind) => {
            cx.fault(
                format!("${TYPE}"),
                format!("`{kind}` is unknown: set it to sqlite, redis, mongodb or memory"),
            );
            Store::Sqlite {}
        }
    }
}

fn redis(cx: &mut Context<'_>, declared: Option<declared::ExternalStore>) -> Store {
    let External { database, ttl_minutes, required, secrets_dir } = external(cx, declared);
    Store::Redis { database, ttl_minutes, required, secrets_dir }
}

/// The store of a remote agent's own.
pub(super) fn of_agent(cx: &Context<'_>, agent: &Agent) -> Option<Store> {
    let declared = agent.store.as_ref()?;
    let server = declared.server()?;
    let own = || format!("{}.{}", qualified_name(cx), agent.name);
    let database = server.database.clone().unwrap_or_else(own);
    let ttl_minutes = Some(server.ttl_minutes).filter(|minutes| *minutes > 0);
    // A pod in memory would not know the tasks of the others.
    let required = server.required || agent.replicas.is_some_and(|replicas| replicas > 1);
    let secrets_dir = cx.secrets_dir(STORE_SECRETS, true);
    Some(match declared.redis {
        Some(_) => Store::Redis { database, ttl_minutes, required, secrets_dir },
        None => Store::Mongodb { database, ttl_minutes, required, secrets_dir },
    })
}

fn mongodb(cx: &mut Context<'_>, declared: Option<declared::ExternalStore>) -> Store {
    let External { database, ttl_minutes, required, secrets_dir } = external(cx, declared);
    Store::Mongodb { database, ttl_minutes, required, secrets_dir }
}

/// Redis for the facts about people, with a prefix of keys if it is not that of conversations.
pub(super) fn redis_of_facts(cx: &mut Context<'_>, prefix: Option<String>) -> Store {
    let declared = cx.resource.spec.store.clone().and_then(|store| store.redis);
    let External { database, required, secrets_dir, .. } = external(cx, declared);
    Store::Redis { database: prefix.unwrap_or(database), ttl_minutes: None, required, secrets_dir }
}

/// MongoDB for the facts about people.
pub(super) fn mongodb_of_facts(cx: &mut Context<'_>) -> Store {
    let declared = cx.resource.spec.store.clone().and_then(|store| store.mongodb);
    let External { database, required, secrets_dir, .. } = external(cx, declared);
    Store::Mongodb { database, ttl_minutes: None, required, secrets_dir }
}

/// The settings that the stores in servers have in common.
struct External {
    database: String,
    ttl_minutes: Option<u32>,
    required: bool,
    secrets_dir: Option<String>,
}

fn external(cx: &mut Context<'_>, declared: Option<declared::ExternalStore>) -> External {
    let secrets_dir = cx.secrets_dir(STORE_SECRETS, declared.is_some());
    let ttl = cx.vars.number("LANGGRAPH_CHECKPOINT_TTL_MINUTES", 0..=5_256_000);
    let ttl = cx.read(ttl).or_else(|| declared.as_ref().map(|store| store.ttl_minutes));
    let own = qualified_name(cx);
    External {
        ttl_minutes: ttl.filter(|minutes| *minutes > 0),
        // A replica in memory would have other conversations than the others.
        required: has_replicas(cx) || declared.as_ref().is_some_and(|store| store.required),
        database: declared.and_then(|store| store.database).unwrap_or(own),
        secrets_dir,
    }
}

/// The name of the resource after its namespace.
fn qualified_name(cx: &Context<'_>) -> String {
    let metadata = &cx.resource.metadata;
    let name = metadata.name.as_deref().unwrap_or("caipe");
    // Outside of a cluster, a file may name the namespace; most have none.
    let namespace = cx.target.namespace().or(metadata.namespace.as_deref());
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}.{name}"))
}

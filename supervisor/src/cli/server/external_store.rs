//! Opens the store in a server: Redis or MongoDB.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use caipe_store::{MemoryStore, RedisOptions, RedisStore, Store, StoreError};
use tokio::time::{Instant, sleep};

use crate::secrets::Environment;

/// How long a server may take to be reachable at the start.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(250);

/// The variables with the address of the server. The first one that is set counts.
const REDIS_URLS: [&str; 2] = ["LANGGRAPH_CHECKPOINT_REDIS_URL", "REDIS_URL"];

/// Opens Redis for `what`. If it cannot be reached and is not required, returns a store in memory, whose restriction is the reason.
pub(super) async fn redis(
    env: &Environment,
    database: &str,
    (what, required): (&str, bool),
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<RedisStore, MemoryStore>> {
    let store = RedisStore::open(&redis_options(env, database)?)?;
    usable(store, "Redis", (what, required), stop_signal).await
}

/// The Redis server that the variables name.
pub(in crate::cli) fn redis_options(env: &Environment, database: &str) -> anyhow::Result<RedisOptions> {
    let url = first(env, &REDIS_URLS).context(
        "failed to open the redis store: there is no URL of the server: set REDIS_URL, in the Secret of spec.store.redis or as a variable",
    )?;
    Ok(RedisOptions { url, database: database.to_owned(), certificate_authority: set(env, "REDIS_CA") })
}

/// The stores in MongoDB.
#[cfg(feature = "mongodb")]
pub(in crate::cli) mod mongodb {
    use std::path::Path;

    use caipe_store::MongodbOptions;
    pub(in crate::cli) use caipe_store::MongodbStore;

    pub(in crate::cli) use super::database_name;
    use super::{Context, Environment, first, set};

    /// The variables with the address of the server. The first one that is set counts.
    const URIS: [&str; 2] = ["LANGGRAPH_CHECKPOINT_MONGODB_URI", "MONGODB_URI"];

    /// The database that the supervisor uses.
    pub(in crate::cli) fn configured_database(env: &Environment, database: &str) -> String {
        set(env, "LANGGRAPH_CHECKPOINT_MONGODB_DB_NAME").unwrap_or_else(|| database_name(database))
    }

    /// Where a database is. The certificate authority is a file of the mounted Secret, because the driver reads a file.
    pub(in crate::cli) fn options(
        env: &Environment,
        database: &str,
        secrets_dir: Option<&str>,
    ) -> anyhow::Result<MongodbOptions> {
        let uri = first(env, &URIS).context(
            "failed to open the mongodb store: there is no URI of the server: set MONGODB_URI, in the Secret of spec.store.mongodb or as a variable",
        )?;
        let mounted = secrets_dir.map(|directory| Path::new(directory).join("MONGODB_CA"));
        let certificate_authority = mounted.filter(|file| file.is_file());
        Ok(MongodbOptions { uri, database: database.to_owned(), certificate_authority })
    }
}

/// As [`redis`] for MongoDB.
#[cfg(feature = "mongodb")]
pub(super) async fn open_mongodb(
    env: &Environment,
    (database, secrets_dir): (&str, Option<&str>),
    (what, required): (&str, bool),
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<mongodb::MongodbStore, MemoryStore>> {
    let options = mongodb::options(env, &mongodb::configured_database(env, database), secrets_dir)?;
    usable(mongodb::MongodbStore::open(&options)?, "MongoDB", (what, required), stop_signal).await
}

/// Refuses MongoDB, because this program was built without it.
#[cfg(not(feature = "mongodb"))]
pub(super) async fn open_mongodb(
    _: &Environment,
    _: (&str, Option<&str>),
    _: (&str, bool),
    _: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<MemoryStore, MemoryStore>> {
    anyhow::bail!(WITHOUT_MONGODB)
}

/// The refusal of a program that was built without MongoDB.
#[cfg(not(feature = "mongodb"))]
pub(in crate::cli) const WITHOUT_MONGODB: &str = "failed to open the mongodb store: this program was built without it: build it with the cargo feature `mongodb`, which the image has, or choose redis or sqlite";

/// The name of a database of MongoDB: at most 63 bytes, none of which is a dot. Names of Kubernetes have no `_`, so two resources
/// never get the same one.
#[cfg(any(feature = "mongodb", test))]
pub(in crate::cli) fn database_name(database: &str) -> String {
    const LONGEST: usize = 63;
    let name = database.replace(['.', ':'], "_");
    if name.len() <= LONGEST {
        return name;
    }
    // FNV-1a, because the name must be the same in every version.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let begin: String = name.chars().take(LONGEST - 17).collect();
    format!("{begin}_{hash:016x}")
}

fn first(env: &Environment, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| set(env, name))
}

fn set(env: &Environment, name: &str) -> Option<String> {
    env.get(name).filter(|value| !value.trim().is_empty()).cloned()
}

/// Returns the store once it can be written to. If the server cannot be reached, fails if it is required; otherwise returns a
/// store in memory, whose restriction is the reason.
async fn usable<S: Store>(
    store: S,
    server: &str,
    (what, required): (&str, bool),
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<S, MemoryStore>> {
    let Err(error) = reached(&store, server, stop_signal).await? else { return Ok(Ok(store)) };
    if required {
        return Err(error).context("the store is required, and the server does not start without it");
    }
    let reason = format!("{what} are in memory since the start, because {server} could not be used: {error}");
    tracing::warn!("{reason}; restart to use {server}");
    Ok(Err(MemoryStore::instead_of(reason)))
}

/// Waits until the store can be written to, but not beyond a stop signal. The inner error is the one of the last attempt.
async fn reached(
    store: &dyn Store,
    server: &str,
    mut stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<(), StoreError>> {
    let until = Instant::now() + PATIENCE;
    let mut logged = String::new();
    loop {
        let outcome = tokio::select! {
            outcome = store.healthy() => outcome,
            () = &mut stop_signal => anyhow::bail!("stopped before {server} could be reached"),
        };
        let Err(error) = &outcome else { return Ok(outcome) };
        if Instant::now() + AGAIN > until {
            return Ok(outcome);
        }
        if logged != error.to_string() {
            logged = error.to_string();
            tracing::warn!(%error, "waiting for {server}, {} s at the most", PATIENCE.as_secs());
        }
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::database_name;

    #[test]
    fn the_name_of_a_database_is_short_and_has_no_dot() {
        assert_eq!(database_name("team-a.platform"), "team-a_platform");
        assert_ne!(database_name("a.b-c"), database_name("a-b.c"));
        let long = |last: &str| database_name(&format!("{}.{last}", "n".repeat(63)));
        assert_eq!(long("one").len(), 63);
        assert_ne!(long("one"), long("two"));
    }
}

//! Opens the store in Redis.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use caipe_store::{MemoryStore, RedisOptions, RedisStore, Store as _, StoreError};
use tokio::time::{Instant, sleep};

use crate::secrets::Environment;

/// How long a server may take to be reachable at the start.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(250);

/// The variables with the URL of the server. The first one that is set counts.
const URLS: [&str; 2] = ["LANGGRAPH_CHECKPOINT_REDIS_URL", "REDIS_URL"];

/// Opens the store. If the server cannot be reached, fails if it is required; otherwise returns a store in memory, whose
/// restriction is the reason.
pub(super) async fn open(
    env: &Environment,
    database: &str,
    required: bool,
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<RedisStore, MemoryStore>> {
    let store = RedisStore::open(&options(env, database)?)?;
    let Err(error) = reached(&store, stop_signal).await? else { return Ok(Ok(store)) };
    if required {
        return Err(error).context("the store is required, and the server does not start without it");
    }
    let reason =
        format!("conversations are in memory since the start, because Redis could not be used: {error}");
    tracing::warn!("{reason}; restart to use Redis");
    Ok(Err(MemoryStore::instead_of(reason)))
}

/// The server that the variables name.
pub(in crate::cli) fn options(env: &Environment, database: &str) -> anyhow::Result<RedisOptions> {
    let set = |name: &str| env.get(name).filter(|value| !value.trim().is_empty()).cloned();
    let url = URLS.iter().find_map(|name| set(name));
    let url = url.context(
        "failed to open the redis store: there is no URL of the server: set REDIS_URL, in the Secret of spec.store.redis or as a variable",
    )?;
    Ok(RedisOptions { url, database: database.to_owned(), certificate_authority: set("REDIS_CA") })
}

/// Waits until the store can be written to, but not beyond a stop signal. The inner error is the one of the last attempt.
async fn reached(
    store: &RedisStore,
    mut stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Result<(), StoreError>> {
    let until = Instant::now() + PATIENCE;
    let mut logged = String::new();
    loop {
        let outcome = tokio::select! {
            outcome = store.healthy() => outcome,
            () = &mut stop_signal => anyhow::bail!("stopped before Redis could be reached"),
        };
        let Err(error) = &outcome else { return Ok(outcome) };
        if Instant::now() + AGAIN > until {
            return Ok(outcome);
        }
        if logged != error.to_string() {
            logged = error.to_string();
            tracing::warn!(%error, "waiting for Redis, {} s at the most", PATIENCE.as_secs());
        }
        sleep(AGAIN).await;
    }
}

//! Opens the listener and the store of a server.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_crds::rendered::Store as StoreChoice;
use caipe_store::{
    EncryptedStore, Keyring, MemoryStore, SqliteStore, Store, StoreError, Transfer, refuse_encrypted,
    refuse_unfinished,
};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::external_store;
use crate::secrets::{Environment, with_secrets};

/// How long another process may use the store: the grace period of a stopping process, and the time to close.
const TAKEOVER: Duration = Duration::from_mins(1);
/// The variable with the keys that encrypt the values of the store.
pub(in crate::cli) const ENCRYPTION_KEYS: &str = "CAIPE_STORE_ENCRYPTION_KEYS";
/// The time between two attempts to open it.
const AGAIN: Duration = Duration::from_millis(100);

pub(in crate::cli) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    match caipe_a2a::listener::listen(address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => anyhow::bail!(
            "failed to listen on {address}: another program does already; give another --port, or 0 for a free one"
        ),
        bound => bound.with_context(|| format!("failed to listen on {address}")),
    }
}

/// The variables with the server of facts, each with that of conversations, which it replaces.
const FACT_SERVERS: [(&str, &str); 2] = [
    ("LANGGRAPH_STORE_REDIS_URL", "LANGGRAPH_CHECKPOINT_REDIS_URL"),
    ("LANGGRAPH_STORE_MONGODB_URI", "LANGGRAPH_CHECKPOINT_MONGODB_URI"),
];

/// Opens the store of what agents remember, if it is not that of conversations.
pub(super) async fn open_fact_store(
    choice: &StoreChoice,
    file: &Path,
    env: &Environment,
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Arc<dyn Store>> {
    let secrets_dir = match choice {
        StoreChoice::Redis { secrets_dir, .. } | StoreChoice::Mongodb { secrets_dir, .. } => {
            secrets_dir.as_deref()
        }
        StoreChoice::Sqlite {} | StoreChoice::Memory {} => None,
    };
    let env = with_secrets(env, secrets_dir);
    let url = |(own, other): (&str, &str)| {
        let url = env.get(own).filter(|url| !url.trim().is_empty())?;
        Some((other.to_owned(), url.clone()))
    };
    let mut own = env.as_ref().clone();
    own.extend(FACT_SERVERS.into_iter().filter_map(url));
    let opened = open(choice, file, (&own.into(), "facts about people"), stop_signal).await;
    opened.context("failed to open the store of facts (LANGGRAPH_STORE_TYPE)")
}

/// Opens the chosen store of conversations; `SQLite` in this file. Waits for another process that uses it, but not beyond a stop signal.
pub(super) async fn open_store(
    choice: &StoreChoice,
    file: &Path,
    env: &Environment,
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Arc<dyn Store>> {
    open(choice, file, (env, "conversations"), stop_signal).await
}

/// Opens a store for `what`.
async fn open(
    choice: &StoreChoice,
    file: &Path,
    (env, what): (&Environment, &str),
    stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Arc<dyn Store>> {
    match choice {
        StoreChoice::Sqlite {} => {
            let store = match open_sqlite(file).await? {
                Err(StoreError::InUse { .. }) => take_over(file, stop_signal).await?,
                opened => opened?,
            };
            with_encryption(Arc::new(store), env).await
        }
        StoreChoice::Memory {} => {
            tracing::warn!("{what} are kept in memory and are gone when the process ends");
            Ok(Arc::new(MemoryStore::default()))
        }
        StoreChoice::Redis { database, required, secrets_dir, .. } => {
            let env = with_secrets(env, secrets_dir.as_deref());
            match external_store::redis(&env, database, (what, *required), stop_signal).await? {
                Ok(store) => with_encryption(Arc::new(store), &env).await,
                Err(memory) => Ok(Arc::new(memory)),
            }
        }
        StoreChoice::Mongodb { database, required, secrets_dir, .. } => {
            let secrets_dir = secrets_dir.as_deref();
            let env = with_secrets(env, secrets_dir);
            match external_store::open_mongodb(&env, (database, secrets_dir), (what, *required), stop_signal)
                .await?
            {
                Ok(store) => with_encryption(Arc::new(store), &env).await,
                Err(memory) => Ok(Arc::new(memory)),
            }
        }
    }
}

/// The store with encrypted values, if there are keys. Fails for a store that cannot be served with this configuration.
async fn with_encryption(store: Arc<dyn Transfer>, env: &Environment) -> anyhow::Result<Arc<dyn Store>> {
    refuse_unfinished(&*store).await?;
    let Some(keys) = env.get(ENCRYPTION_KEYS).filter(|keys| !keys.trim().is_empty()) else {
        refuse_encrypted(&*store).await?;
        return Ok(store);
    };
    let keys = Keyring::parse(keys).with_context(|| ENCRYPTION_KEYS)?;
    let opened = EncryptedStore::open(store, keys).await;
    Ok(Arc::new(
        opened.with_context(|| format!("the store cannot be used with the keys in {ENCRYPTION_KEYS}"))?,
    ))
}

async fn open_sqlite(file: &Path) -> anyhow::Result<Result<SqliteStore, StoreError>> {
    let path = file.to_owned();
    Ok(tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await?)
}

/// Opens the store in this file once no other process uses it.
async fn take_over(
    file: &Path,
    mut stop_signal: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<SqliteStore> {
    let until = Instant::now() + TAKEOVER;
    let (shown, patience) = (file.display(), TAKEOVER.as_secs());
    tracing::warn!(file = %shown, "another process uses the store; waiting for its end, {patience} s at the most");
    loop {
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = &mut stop_signal => anyhow::bail!("stopped before another process released {shown}"),
        }
        match open_sqlite(file).await? {
            Err(StoreError::InUse { .. }) if Instant::now() < until => {}
            opened => return Ok(opened?),
        }
    }
}

/// The URL in a card without a URL for clients. All addresses of both families are written as those of IPv4, which clients of
/// A2A know as a placeholder.
pub(in crate::cli) fn own_url(address: SocketAddr) -> String {
    let is_any = address.ip() == Ipv6Addr::UNSPECIFIED;
    let address = if is_any { (Ipv4Addr::UNSPECIFIED, address.port()).into() } else { address };
    format!("http://{address}")
}

/// Writes the address atomically, so that a reader of the file never sees half of it.
pub(in crate::cli) fn write_address(path: &Path, address: SocketAddr) -> anyhow::Result<()> {
    let draft = path.with_extension("tmp");
    let written = std::fs::write(&draft, address.to_string()).and_then(|()| std::fs::rename(&draft, path));
    written.with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_names_all_addresses_as_clients_of_a2a_know_them() {
        for (listen, url) in [
            ("[::]:8000", "http://0.0.0.0:8000"),
            ("0.0.0.0:8000", "http://0.0.0.0:8000"),
            ("[::1]:8000", "http://[::1]:8000"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
        ] {
            assert_eq!(own_url(listen.parse().unwrap()), url, "{listen}");
        }
    }
}

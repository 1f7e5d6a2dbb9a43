//! `serve`: everything put together, until somebody says stop.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::http::HeaderValue;
use caipe_a2a::net::Screen;
use caipe_a2a::server::{PushOptions, Pushes};
use caipe_crds::rendered::Store as StoreChoice;
use caipe_store::{MemoryStore, Pruned, Retention, SqliteStore, Store};
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::Serve;
use super::conformance;
use crate::agents::Roster;
use crate::binding;
use crate::config::{Settings, environment};
use crate::http::{self, Facade, Guard, Limits, Site, router};
use crate::push::{self, StoredPushes};
use crate::run::Runs;

/// The file of the default store, below the data directory.
const DATABASE: &str = "caipe.sqlite3";

/// How long notifications of ended tasks get to arrive when the process stops; the next start delivers the rest.
const PUSH_GRACE: Duration = Duration::from_secs(2);

/// How often old conversations are looked for.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

pub(super) async fn run(args: Serve) -> anyhow::Result<ExitCode> {
    if let Some(suite) = args.conformance.suite {
        return conformance::run(&args, suite).await;
    }
    let settings = Settings::load(args.file.as_deref(), environment())?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let guard = Guard::new(args.address(), settings.shared_key(), args.allow_unauthenticated)?;
    let store = open_store(&settings.spec.store, &args.data_dir).await?;
    let listener = TcpListener::bind(args.address())
        .await
        .with_context(|| format!("failed to listen on {}", args.address()))?;
    let address = listener.local_addr()?;
    let house = House::open(&args, &settings, store, guard, address)?;
    if let Some(path) = &args.address_file {
        write_address(path, address)?;
    }
    tracing::info!(
        %address, agents = settings.spec.agents.len(), model = house.roster.supervisor().model.name(), "listening"
    );
    let owed = match &house.pushes {
        Some(pushes) => pushes.resume().await.context("failed to take over push notifications")?,
        None => Vec::new(),
    };
    let recovered = house.runs.recover().await.context("failed to take over interrupted tasks")?;
    if recovered > 0 {
        tracing::info!(recovered, "going on with interrupted tasks");
    }
    if let Some(pushes) = &house.pushes {
        tokio::spawn(push::take_up(pushes.clone(), house.runs.clone(), owed));
    }
    house.serve(listener, &args).await?;
    Ok(ExitCode::SUCCESS)
}

/// How long clients may take to read the last events once all runs are over.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// Everything that runs.
struct House {
    roster: Arc<Roster>,
    runs: Arc<Runs>,
    pushes: Option<Arc<Pushes>>,
    store: Arc<dyn Store>,
    routes: axum::Router,
    shutdown: CancellationToken,
}

impl House {
    fn open(
        args: &Serve,
        settings: &Settings,
        store: Arc<dyn Store>,
        guard: Guard,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let shutdown = CancellationToken::new();
        let roster = Roster::start(settings, reqwest::Client::new(), &shutdown)?;
        let runs = Runs::new(roster.supervisor(), store.clone(), args.run_timeout);
        let identity = &settings.spec.supervisor;
        let url = identity.external_url.clone().unwrap_or_else(|| format!("http://{address}/"));
        let pushes = pushes(args, &runs, &store)?;
        let mut card = binding::card(identity, &url, roster.names(), guard.is_closed());
        card.capabilities.push_notifications = pushes.is_some();
        let mut extended = binding::extended_card(&card, &settings.spec.agents);
        args.signing.sign([&mut card, &mut extended])?;
        let agent = Arc::new(Facade::new(runs.clone(), card, extended).pushing(pushes.clone()));
        let origins = origins(&args.cors_origins)?;
        let routes = router(Site { agent, roster: roster.clone(), store: store.clone(), guard, origins });
        Ok(Self { roster, runs, pushes, store, routes, shutdown })
    }

    /// Answers until a signal comes; then takes no new connection, lets running answers end, and goes. A second
    /// signal cuts that short.
    async fn serve(self, listener: TcpListener, args: &Serve) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        tokio::spawn(forget_old(self.store.clone(), args.keep_days, self.shutdown.clone()));
        let server = tokio::spawn(http::serve(listener, self.routes, Limits::fitting(), stop.clone()));
        stopped().await?;
        tracing::info!(active = self.runs.active(), "stopping");
        stop.cancel();
        tokio::select! {
            () = self.runs.drain(args.grace) => {}
            // Whoever says it twice does not want to wait.
            _ = stopped() => self.runs.drain(Duration::ZERO).await,
        }
        if let Some(pushes) = &self.pushes {
            pushes.drain(PUSH_GRACE).await;
        }
        self.shutdown.cancel();
        self.roster.shutdown().await;
        // The runs are over; their last events may still be on the way.
        drop(tokio::time::timeout(LAST_EVENTS, server).await);
        self.store.close().await.context("failed to close the store")?;
        Ok(())
    }
}

/// Who delivers push notifications, unless that is turned off.
fn pushes(args: &Serve, runs: &Runs, store: &Arc<dyn Store>) -> anyhow::Result<Option<Arc<Pushes>>> {
    if !args.push.on {
        return Ok(None);
    }
    let options = PushOptions {
        screen: Screen::new(args.push_allow.clone()),
        give_up_after: args.push_give_up,
        ..PushOptions::default()
    };
    let pushes = Pushes::new(Arc::new(StoredPushes::new(store.clone())), options)
        .context("failed to make a client for push notifications")?;
    runs.push_with(pushes.clone());
    Ok(Some(pushes))
}

/// Removes ended tasks and untouched conversations once they are old enough.
async fn forget_old(store: Arc<dyn Store>, days: u32, shutdown: CancellationToken) {
    if days == 0 {
        return;
    }
    let mut rounds = tokio::time::interval(PRUNE_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = rounds.tick() => {}
        }
        let before = Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days));
        let retention = Retention { tasks_before: Some(before), conversations_before: Some(before) };
        match store.prune(retention).await {
            Ok(pruned) if pruned == Pruned::default() => {}
            Ok(pruned) => tracing::info!(
                tasks = pruned.tasks,
                conversations = pruned.conversations,
                "removed what is old"
            ),
            Err(error) => tracing::warn!(%error, "failed to remove what is old"),
        }
    }
}

/// Waits for SIGTERM or SIGINT.
pub(super) async fn stopped() -> std::io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

async fn open_store(choice: &StoreChoice, data_dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    match choice {
        StoreChoice::Sqlite {} => {
            let path = data_dir.join(DATABASE);
            let store = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await??;
            Ok(Arc::new(store))
        }
        StoreChoice::Memory {} => {
            tracing::warn!("conversations are kept in memory and are gone when the process ends");
            Ok(Arc::new(MemoryStore::default()))
        }
        StoreChoice::Redis(store) | StoreChoice::Mongodb(store) if store.required => {
            anyhow::bail!(
                "this program has no Redis or MongoDB store yet, and the specification requires one"
            )
        }
        StoreChoice::Redis(_) | StoreChoice::Mongodb(_) => {
            tracing::warn!(
                "this program has no Redis or MongoDB store yet: conversations are kept in memory"
            );
            Ok(Arc::new(MemoryStore::default()))
        }
    }
}

fn origins(given: &[String]) -> anyhow::Result<Vec<HeaderValue>> {
    let origin =
        |text: &String| HeaderValue::from_str(text).with_context(|| format!("invalid web origin \"{text}\""));
    given.iter().filter(|text| !text.is_empty()).map(origin).collect()
}

/// Writes the address so that whoever waits for the file never reads half of it.
pub(super) fn write_address(path: &Path, address: SocketAddr) -> anyhow::Result<()> {
    let draft = path.with_extension("tmp");
    let written = std::fs::write(&draft, address.to_string()).and_then(|()| std::fs::rename(&draft, path));
    written.with_context(|| format!("failed to write {}", path.display()))
}

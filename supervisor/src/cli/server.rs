//! The process that serves a supervisor or a single agent, from its start to a stop signal.

mod external_store;
mod follow;
mod skills;
mod start;
mod stop;

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use caipe_a2a::model::AgentCard;
use caipe_a2a::server::{PushOptions, Pushes};
use caipe_net::Screen;
use caipe_skills::ApiKeys;
use caipe_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::args::Serving;
use super::keys::{keyring, security};
use crate::agents::AgentRegistry;
use crate::binding::{CardSecurity, Presentation};
use crate::config::Settings;
use crate::http::{
    self, AppState, Guard, Limits, METRICS_LIMITS, OriginError, Origins, TaskApi, metrics_router, router,
};
use crate::memory::{FactOwners, Memory};
use crate::push::{self, StoredPushes};
use crate::run::Runs;
use crate::tools::TaskReader;

#[cfg(not(feature = "mongodb"))]
pub(super) use external_store::WITHOUT_MONGODB;
#[cfg(feature = "mongodb")]
pub(super) use external_store::mongodb;
pub(super) use external_store::redis_options;
use follow::Follow;
pub(super) use start::{ENCRYPTION_KEYS, listen, own_url, write_address};
pub(super) use stop::stopping;

/// Days after which ended tasks and unused conversations are deleted by default.
const KEEP_DAYS: u32 = 30;

/// How long push notifications of ended tasks may take when the process stops; the next start delivers the rest.
const PUSH_GRACE: Duration = Duration::from_secs(2);

/// How long clients may take to read the last events once all runs are over.
const LAST_EVENTS: Duration = Duration::from_secs(2);

pub(super) struct ServerConfig<'a> {
    /// The settings at the start.
    pub(super) settings: &'a Settings,
    pub(super) port: u16,
    /// The file of the default store, below the data directory.
    pub(super) database: String,
    /// How its events are presented.
    pub(super) presentation: Presentation,
    /// Starts the agents; the token stops them.
    pub(super) registry: &'a dyn Fn(&CancellationToken) -> anyhow::Result<Arc<AgentRegistry>>,
    /// The public card and the extended card for this address and authentication.
    pub(super) cards: &'a dyn Fn(&Settings, SocketAddr, &CardSecurity) -> [AgentCard; 2],
    /// The spec file, whose changes are applied.
    pub(super) file: Option<&'a Path>,
}

/// Serves until a stop signal.
pub(super) async fn serve(args: &Serving, config: ServerConfig<'_>) -> anyhow::Result<()> {
    let settings = config.settings;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let address = args.address(config.port);
    let keyring = keyring(settings)?;
    let security = security(&keyring);
    let guard = Guard::new(address, keyring, args.allow_unauthenticated)?;
    // Before the address is known to clients. The first process of a container has no default handler.
    let mut stop_signal = pin!(stopping()?);
    let listener = listen(address)?;
    let address = listener.local_addr()?;
    settings.check_addresses(address)?;
    let file = args.data_dir.join(&config.database);
    let store = start::open_store(&settings.spec.store, &file, &settings.env, stop_signal.as_mut()).await?;
    let facts = match settings.spec.memory.as_ref().and_then(|memory| memory.store.as_ref()) {
        Some(choice) => start::open_fact_store(choice, &file, &settings.env, stop_signal.as_mut()).await?,
        None => store.clone(),
    };
    let directory = skills::directory(&settings.spec.store, file.as_path());
    let keys = skills::open_keys(directory.as_deref(), &settings.env)?;
    let server = Server::open(args, &config, (store, facts), (guard, keys), (address, &security))?;
    skills::start(server.registry.skills(), directory, server.shutdown.clone()).await;
    if let Some(path) = &args.address_file {
        write_address(path, address)?;
    }
    let (agents, model) = (settings.spec.agents.len(), server.registry.supervisor().model.name().to_owned());
    tracing::info!(%address, agents, model, "listening");
    server.recover().await?;
    let (registry, task_api) = (server.registry.clone(), server.task_api.clone());
    let origins = server.origins.clone();
    let is_in_memory = server.store.backend() == "memory";
    let follow =
        Follow { args, config: &config, registry, task_api, origins, address, security, is_in_memory };
    let following = async {
        match config.file {
            Some(file) => follow.run(file).await,
            None => std::future::pending().await,
        }
    };
    server.serve(listener, args, following, stop_signal).await
}

/// A running server.
struct Server {
    registry: Arc<AgentRegistry>,
    task_api: Arc<TaskApi>,
    origins: Origins,
    runs: Arc<Runs>,
    pushes: Option<Arc<Pushes>>,
    store: Arc<dyn Store>,
    /// What agents remember; usually the same store.
    facts: Arc<dyn Store>,
    routes: axum::Router,
    shutdown: CancellationToken,
}

impl Server {
    fn open(
        args: &Serving,
        config: &ServerConfig<'_>,
        (store, facts): (Arc<dyn Store>, Arc<dyn Store>),
        access: (Guard, Option<Arc<ApiKeys>>),
        (address, security): (SocketAddr, &CardSecurity),
    ) -> anyhow::Result<Self> {
        let shutdown = CancellationToken::new();
        let registry = (config.registry)(&shutdown)?;
        let runs = Runs::new(
            registry.current_supervisor(),
            config.presentation.clone(),
            store.clone(),
            args.run_timeout,
            args.log_memory_mib << 20,
        );
        let memory = runs.serves_people().then(|| Memory::new(facts.clone()));
        if let Some(memory) = &memory {
            let reader: Arc<dyn TaskReader> = runs.clone();
            registry.serve_tasks(Arc::downgrade(&reader));
            let owners: Arc<dyn FactOwners> = runs.clone();
            registry.serve_memory(memory.clone(), Arc::downgrade(&owners));
        } else {
            runs.take_answers_to(registry.client_calls());
        }
        let pushes = pushes(args, &runs, &store)?;
        let cards = signed_cards(args, config, config.settings, address, security)?;
        let task_api = Arc::new(TaskApi::new(runs.clone(), cards, pushes.clone()));
        let (guard, keys) = access;
        let skills = skills::api(registry.skills().clone(), keys, &config.settings.env)?;
        let origins = Origins::default();
        set_origins(&origins, args, config.settings)?;
        let routes = router(AppState {
            agent: task_api.clone(),
            registry: registry.clone(),
            runs: runs.clone(),
            alone: config.presentation.is_sub_agent(),
            store: store.clone(),
            facts: facts.clone(),
            memory,
            skills,
            guard,
            origins: origins.clone(),
        });
        Ok(Self { registry, task_api, origins, runs, pushes, store, facts, routes, shutdown })
    }

    /// Continues what the previous process left unfinished.
    async fn recover(&self) -> anyhow::Result<()> {
        let recovered = self.runs.recover().await.context("failed to take over interrupted tasks")?;
        if recovered > 0 {
            tracing::info!(recovered, "resuming interrupted tasks");
        }
        tokio::spawn(self.runs.clone().continue_abandoned());
        if let Some(pushes) = &self.pushes {
            tokio::spawn(push::deliver_abandoned(pushes.clone(), self.runs.clone()));
        }
        Ok(())
    }

    /// Serves until a stop signal; then refuses new connections and waits for running answers. A second signal ends the
    /// wait.
    async fn serve(
        self,
        listener: TcpListener,
        args: &Serving,
        following: impl Future<Output = ()>,
        stop_signal: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let (registry, given) = (self.registry.clone(), args.keep_days);
        let keep = move || {
            let spec = &registry.settings().spec;
            let days = given.or(spec.retention_days).unwrap_or(KEEP_DAYS);
            stop::Keep::new(days, spec.store.ttl_minutes())
        };
        tokio::spawn(stop::forget_old(self.store.clone(), keep, self.shutdown.clone()));
        if self.runs.serves_people() {
            tokio::spawn(stop::forget_expired(self.facts.clone(), self.shutdown.clone()));
            let (runs, shutdown) = (self.runs.clone(), self.shutdown.clone());
            tokio::spawn(stop::reject_unanswered(runs, args.answer_hours, shutdown));
        }
        if let Some(address) = args.metrics_address {
            self.serve_metrics(address)?;
        }
        let server = tokio::spawn(http::serve(listener, self.routes, Limits::fitting(), stop.clone()));
        tokio::select! {
            () = stop_signal => {}
            () = following => {}
        }
        let again = stopping()?;
        // Pending interactions do not delay the stop: they are stored, and the next process takes their answers.
        let questions = self.runs.pending_interactions().await.unwrap_or_default();
        tracing::info!(active = self.runs.active(), questions, "stopping");
        stop.cancel();
        tokio::select! {
            () = self.runs.drain(args.grace) => {}
            () = again => self.runs.drain(Duration::ZERO).await,
        }
        if let Some(pushes) = &self.pushes {
            pushes.drain(PUSH_GRACE).await;
        }
        self.shutdown.cancel();
        self.registry.shutdown().await;
        // The runs are over; their last events may still be on the way.
        drop(tokio::time::timeout(LAST_EVENTS, server).await);
        if !Arc::ptr_eq(&self.facts, &self.store) {
            self.facts.close().await.context("failed to close the store of facts")?;
        }
        self.store.close().await.context("failed to close the store")?;
        Ok(())
    }
}

impl Server {
    /// Serves the metrics until the process has stopped.
    fn serve_metrics(&self, address: SocketAddr) -> anyhow::Result<()> {
        let listener = listen(address).context("failed to serve metrics")?;
        tracing::info!(address = %listener.local_addr()?, "serving metrics");
        let (runs, pushes, skills) = (self.runs.clone(), self.pushes.clone(), self.registry.skills().clone());
        let routes = metrics_router(runs, pushes, self.store.clone(), skills);
        tokio::spawn(http::serve(listener, routes, METRICS_LIMITS, self.shutdown.clone()));
        Ok(())
    }
}

/// The signed cards of these settings.
fn signed_cards(
    args: &Serving,
    config: &ServerConfig<'_>,
    settings: &Settings,
    address: SocketAddr,
    security: &CardSecurity,
) -> anyhow::Result<[AgentCard; 2]> {
    let [mut card, mut extended] = (config.cards)(settings, address, security);
    for card in [&mut card, &mut extended] {
        card.capabilities.push_notifications = args.push.on;
    }
    args.signing.sign([&mut card, &mut extended])?;
    Ok([card, extended])
}

/// The sender of push notifications, unless it is turned off.
fn pushes(args: &Serving, runs: &Runs, store: &Arc<dyn Store>) -> anyhow::Result<Option<Arc<Pushes>>> {
    if !args.push.on {
        return Ok(None);
    }
    let options = PushOptions {
        screen: Screen::new(args.push_allow.clone()),
        give_up_after: args.push_give_up,
        ..PushOptions::default()
    };
    let pushes = Pushes::new(Arc::new(StoredPushes::new(store.clone(), runs.claim_term())), options)
        .context("failed to make a client for push notifications")?;
    runs.push_with(pushes.clone());
    Ok(Some(pushes))
}

/// Sets the web origins of the command line, or else of the spec.
fn set_origins(origins: &Origins, args: &Serving, settings: &Settings) -> Result<(), OriginError> {
    let mut given = args.cors_origins.iter().filter(|text| !text.is_empty()).peekable();
    if given.peek().is_some() { origins.set(given) } else { origins.set(&settings.spec.cors_origins) }
}

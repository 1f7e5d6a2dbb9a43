//! Everything put together that serves, whatever it serves, until somebody says stop.

mod follow;
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
use caipe_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::args::Serving;
use super::keys::{keyring, locks};
use crate::agents::AgentRegistry;
use crate::binding::{Locks, Voice};
use crate::config::Settings;
use crate::http::{self, Facade, Guard, Limits, OriginError, Origins, Site, router};
use crate::push::{self, StoredPushes};
use crate::run::Runs;

use follow::Follow;
pub(super) use start::{listen, write_address};
pub(super) use stop::stopping;

/// How long notifications of ended tasks get to arrive when the process stops; the next start delivers the rest.
const PUSH_GRACE: Duration = Duration::from_secs(2);

/// How long clients may take to read the last events once all runs are over.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// What is served, before it has an address.
pub(super) struct Tenant<'a> {
    /// What it is told.
    pub(super) settings: &'a Settings,
    /// The port that it listens on if no other is said.
    pub(super) port: u16,
    /// The file of the default store, below the data directory.
    pub(super) database: String,
    /// As whom it speaks.
    pub(super) voice: Voice,
    /// Builds everybody who can be asked, until the token is cancelled.
    pub(super) registry: &'a dyn Fn(&CancellationToken) -> anyhow::Result<Arc<AgentRegistry>>,
    /// The cards at this address behind these locks: the one for everybody, and the one for who opens them.
    pub(super) cards: &'a dyn Fn(&Settings, SocketAddr, &Locks) -> [AgentCard; 2],
    /// The file whose changes are followed.
    pub(super) file: Option<&'a Path>,
}

/// Serves until somebody says stop.
pub(super) async fn serve(args: &Serving, tenant: Tenant<'_>) -> anyhow::Result<()> {
    let settings = tenant.settings;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let address = args.address(tenant.port);
    let keyring = keyring(settings)?;
    let locks = locks(&keyring);
    let guard = Guard::new(address, keyring, args.allow_unauthenticated)?;
    // Before anybody knows the address; and the first process of a container has no handler but its own.
    let mut told = pin!(stopping()?);
    let listener = listen(address).await?;
    let address = listener.local_addr()?;
    settings.check_addresses(address)?;
    let file = args.data_dir.join(&tenant.database);
    let store = start::open_store(&settings.spec.store, &file, told.as_mut()).await?;
    let house = House::open(args, &tenant, store, guard, (address, &locks))?;
    if let Some(path) = &args.address_file {
        write_address(path, address)?;
    }
    let (agents, model) = (settings.spec.agents.len(), house.registry.supervisor().model.name().to_owned());
    tracing::info!(%address, agents, model, "listening");
    house.recover().await?;
    let followed = (&house.registry, &house.facade, &house.origins);
    let follow = tenant.file.map(|file| Follow::new(args, &tenant, file, followed, (address, locks)));
    house.serve(listener, args, follow, told).await
}

/// Everything that runs.
struct House {
    registry: Arc<AgentRegistry>,
    facade: Arc<Facade>,
    origins: Origins,
    runs: Arc<Runs>,
    pushes: Option<Arc<Pushes>>,
    store: Arc<dyn Store>,
    routes: axum::Router,
    shutdown: CancellationToken,
}

impl House {
    fn open(
        args: &Serving,
        tenant: &Tenant<'_>,
        store: Arc<dyn Store>,
        guard: Guard,
        (address, locks): (SocketAddr, &Locks),
    ) -> anyhow::Result<Self> {
        let shutdown = CancellationToken::new();
        let registry = (tenant.registry)(&shutdown)?;
        let runs =
            Runs::new(registry.current_supervisor(), tenant.voice.clone(), store.clone(), args.run_timeout);
        let pushes = pushes(args, &runs, &store)?;
        let [card, extended] = signed_cards(args, tenant, tenant.settings, address, locks)?;
        let facade = Arc::new(Facade::new(runs.clone(), card, extended).pushing(pushes.clone()));
        let agent = facade.clone();
        let origins = Origins::default();
        set_origins(&origins, args, tenant.settings)?;
        let (of, alone) = (runs.clone(), tenant.voice.is_sub_agent());
        let site = Site {
            agent,
            registry: registry.clone(),
            runs: of,
            alone,
            store: store.clone(),
            guard,
            origins: origins.clone(),
        };
        let routes = router(site);
        Ok(Self { registry, facade, origins, runs, pushes, store, routes, shutdown })
    }

    /// Goes on with what the process before left unfinished.
    async fn recover(&self) -> anyhow::Result<()> {
        let owed = match &self.pushes {
            Some(pushes) => pushes.resume().await.context("failed to take over push notifications")?,
            None => Vec::new(),
        };
        let recovered = self.runs.recover().await.context("failed to take over interrupted tasks")?;
        if recovered > 0 {
            tracing::info!(recovered, "going on with interrupted tasks");
        }
        if let Some(pushes) = &self.pushes {
            tokio::spawn(push::take_up(pushes.clone(), self.runs.clone(), owed));
        }
        Ok(())
    }

    /// Answers until it is told to stop; then takes no new connection, lets running answers end, and goes. A second
    /// signal cuts that short.
    async fn serve(
        self,
        listener: TcpListener,
        args: &Serving,
        follow: Option<Follow<'_>>,
        told: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        tokio::spawn(stop::forget_old(self.store.clone(), args.keep_days, self.shutdown.clone()));
        let server = tokio::spawn(http::serve(listener, self.routes, Limits::fitting(), stop.clone()));
        tokio::select! {
            () = told => {}
            () = followed(follow) => {}
        }
        let again = stopping()?;
        // Open questions hold nothing up: they are kept, and whoever starts next takes the answers.
        let questions = self.runs.pending_interactions().await.unwrap_or_default();
        tracing::info!(active = self.runs.active(), questions, "stopping");
        stop.cancel();
        tokio::select! {
            () = self.runs.drain(args.grace) => {}
            // Whoever says it twice does not want to wait.
            () = again => self.runs.drain(Duration::ZERO).await,
        }
        if let Some(pushes) = &self.pushes {
            pushes.drain(PUSH_GRACE).await;
        }
        self.shutdown.cancel();
        self.registry.shutdown().await;
        // The runs are over; their last events may still be on the way.
        drop(tokio::time::timeout(LAST_EVENTS, server).await);
        self.store.close().await.context("failed to close the store")?;
        Ok(())
    }
}

/// Takes what the file holds anew, if there is one; never ends.
async fn followed(follow: Option<Follow<'_>>) {
    match follow {
        Some(follow) => follow.run().await,
        None => std::future::pending().await,
    }
}

/// The cards of these settings, as they are shown.
fn signed_cards(
    args: &Serving,
    tenant: &Tenant<'_>,
    settings: &Settings,
    address: SocketAddr,
    locks: &Locks,
) -> anyhow::Result<[AgentCard; 2]> {
    let [mut card, mut extended] = (tenant.cards)(settings, address, locks);
    for card in [&mut card, &mut extended] {
        card.capabilities.push_notifications = args.push.on;
    }
    args.signing.sign([&mut card, &mut extended])?;
    Ok([card, extended])
}

/// Who delivers push notifications, unless that is turned off.
fn pushes(args: &Serving, runs: &Runs, store: &Arc<dyn Store>) -> anyhow::Result<Option<Arc<Pushes>>> {
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

/// Lets the pages call that the command line names, or else those of the specification.
fn set_origins(origins: &Origins, args: &Serving, settings: &Settings) -> Result<(), OriginError> {
    let mut given = args.cors_origins.iter().filter(|text| !text.is_empty()).peekable();
    if given.peek().is_some() { origins.set(given) } else { origins.set(&settings.spec.cors_origins) }
}

//! Follows the file that says what runs, and the scripts that it names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Tenant;
use crate::agents::AgentRegistry;
use crate::binding::Locks;
use crate::cli::args::Serving;
use crate::config::{FileWatch, Reload, Reloaded, Settings};
use crate::http::{Facade, Origins};

/// Takes what the file holds anew, as often as that happens.
pub(super) struct Follow<'a> {
    args: &'a Serving,
    tenant: &'a Tenant<'a>,
    file: PathBuf,
    reload: Reload,
    registry: Arc<AgentRegistry>,
    facade: Arc<Facade>,
    origins: Origins,
    address: SocketAddr,
    locks: Locks,
}

impl<'a> Follow<'a> {
    /// Follows this file. What is served is told by `facade`.
    pub(super) fn new(
        args: &'a Serving,
        tenant: &'a Tenant<'a>,
        file: &Path,
        (registry, facade, origins): (&Arc<AgentRegistry>, &Arc<Facade>, &Origins),
        (address, locks): (SocketAddr, Locks),
    ) -> Self {
        let reload = Reload::new(file, tenant.settings.env.clone(), address);
        let file = file.to_owned();
        let (registry, facade, origins) = (registry.clone(), facade.clone(), origins.clone());
        Self { args, tenant, file, reload, registry, facade, origins, address, locks }
    }

    /// Never ends: the files may change at any time. SIGHUP has them read whether they seem to have changed or not.
    pub(super) async fn run(mut self) {
        let mut watch = FileWatch::new(&self.file);
        let mut hangups = signal(SignalKind::hangup()).ok();
        loop {
            // Also before the first news: the file was read before it was watched.
            self.look();
            watch.set(&self.reload.files());
            tokio::select! {
                () = watch.changed() => {}
                () = hangup(hangups.as_mut()) => tracing::info!("reading the specification again, as asked"),
            }
        }
    }

    fn look(&mut self) {
        match self.reload.after(&self.registry.settings()) {
            Ok(Reloaded::Same) => self.registry.note_refusal(None),
            Ok(Reloaded::New(settings)) => self.take(*settings),
            Err(error) => {
                tracing::error!(%error, "a new specification is refused; the last good one stays");
                self.registry.note_refusal(Some(error.to_string()));
            }
        }
    }

    fn take(&self, settings: Settings) {
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        if settings.spec.store != self.registry.settings().spec.store {
            tracing::warn!("conversations are kept where they are: another store is taken after a restart");
        }
        if settings.spec.oauth2 != self.registry.settings().spec.oauth2 {
            tracing::warn!("who may call is as it was: other rules for tokens are taken after a restart");
        }
        match super::signed_cards(self.args, self.tenant, &settings, self.address, &self.locks) {
            Ok([card, extended]) => self.facade.show(card, extended),
            Err(error) => tracing::error!(%error, "the card stays as it is"),
        }
        if let Err(error) = super::set_origins(&self.origins, self.args, &settings) {
            tracing::error!(%error, "the web origins stay as they are");
        }
        let (epoch, agents) = (settings.spec.epoch, settings.spec.agents.len());
        tracing::info!(epoch, agents, "going over to a new specification");
        self.registry.apply(settings);
    }
}

async fn hangup(signals: Option<&mut Signal>) {
    let Some(signals) = signals else { return std::future::pending().await };
    if signals.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

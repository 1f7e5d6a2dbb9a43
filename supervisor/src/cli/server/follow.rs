//! Applies changes of the spec file and of the scripts that it names.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use caipe_crds::rendered::Store as StoreChoice;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ServerConfig;
use crate::agents::AgentRegistry;
use crate::binding::CardSecurity;
use crate::cli::args::Serving;
use crate::config::{FileWatch, Reload, Settings};
use crate::http::{Origins, TaskApi};

/// Applies the changes of the spec file to a running server.
pub(super) struct Follow<'a> {
    pub(super) args: &'a Serving,
    pub(super) config: &'a ServerConfig<'a>,
    pub(super) registry: Arc<AgentRegistry>,
    /// Serves the cards.
    pub(super) task_api: Arc<TaskApi>,
    pub(super) origins: Origins,
    pub(super) address: SocketAddr,
    pub(super) security: CardSecurity,
    /// Whether conversations are in memory.
    pub(super) is_in_memory: bool,
}

impl Follow<'_> {
    /// Watches the file and applies each change. Ends if the process has to restart, because the specification requires the
    /// store that could not be reached at the start. SIGHUP rereads the files whether they have changed or not.
    pub(super) async fn run(self, file: &Path) {
        let mut reload = Reload::new(file, self.config.settings.env.clone(), self.address);
        let mut watch = FileWatch::new(file);
        let mut hangups = signal(SignalKind::hangup()).ok();
        loop {
            // Also before the first event: the file was read before it was watched.
            self.reload_spec(&mut reload);
            if self.is_in_memory && is_required(&self.registry.settings().spec.store) {
                tracing::error!(
                    "the specification requires the store, and this process could not reach it: stopping"
                );
                return;
            }
            watch.set(&reload.files());
            tokio::select! {
                () = watch.changed() => {}
                () = hangup(hangups.as_mut()) => tracing::info!("reading the specification again, as asked"),
            }
        }
    }

    fn reload_spec(&self, reload: &mut Reload) {
        match reload.after(&self.registry.settings()) {
            Ok(None) => self.registry.note_refusal(None),
            Ok(Some(settings)) => self.apply(settings),
            Err(error) => {
                tracing::error!(%error, "a new specification is refused; the last good one stays");
                self.registry.note_refusal(Some(error.to_string()));
            }
        }
    }

    fn apply(&self, settings: Settings) {
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        if place(&settings.spec.store) != place(&self.registry.settings().spec.store) {
            tracing::warn!("the store has changed: restart to use it");
        }
        if own_fact_store(&settings) != own_fact_store(&self.registry.settings()) {
            tracing::warn!("the store of facts has changed: restart to use it");
        }
        if settings.spec.oauth2 != self.registry.settings().spec.oauth2 {
            tracing::warn!("the rules for tokens have changed: restart to use them");
        }
        match super::signed_cards(self.args, self.config, &settings, self.address, &self.security) {
            Ok(cards) => self.task_api.set_cards(cards),
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

/// Where facts are, if not with conversations.
fn own_fact_store(settings: &Settings) -> Option<StoreChoice> {
    settings.spec.memory.as_ref()?.store.as_ref().map(place)
}

fn is_required(store: &StoreChoice) -> bool {
    matches!(store, StoreChoice::Redis { required: true, .. } | StoreChoice::Mongodb { required: true, .. })
}

/// The store without what counts at the start only.
fn place(store: &StoreChoice) -> StoreChoice {
    let mut store = store.clone();
    if let StoreChoice::Redis { required, .. } | StoreChoice::Mongodb { required, .. } = &mut store {
        *required = false;
    }
    store
}

async fn hangup(signals: Option<&mut Signal>) {
    let Some(signals) = signals else { return std::future::pending().await };
    if signals.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

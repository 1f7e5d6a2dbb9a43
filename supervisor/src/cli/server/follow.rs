//! Applies changes of the spec file and of the scripts that it names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ServerConfig;
use crate::agents::AgentRegistry;
use crate::binding::Locks;
use crate::cli::args::Serving;
use crate::config::{FileWatch, Reload, Settings};
use crate::http::{Origins, TaskApi};

/// Watches the spec file and applies each change.
pub(super) struct Follow<'a> {
    args: &'a Serving,
    config: &'a ServerConfig<'a>,
    file: PathBuf,
    reload: Reload,
    registry: Arc<AgentRegistry>,
    task_api: Arc<TaskApi>,
    origins: Origins,
    address: SocketAddr,
    locks: Locks,
}

impl<'a> Follow<'a> {
    /// Watches this file; `task_api` serves the cards.
    pub(super) fn new(
        args: &'a Serving,
        config: &'a ServerConfig<'a>,
        file: &Path,
        (registry, task_api, origins): (&Arc<AgentRegistry>, &Arc<TaskApi>, &Origins),
        (address, locks): (SocketAddr, Locks),
    ) -> Self {
        let reload = Reload::new(file, config.settings.env.clone(), address);
        let file = file.to_owned();
        let (registry, task_api, origins) = (registry.clone(), task_api.clone(), origins.clone());
        Self { args, config, file, reload, registry, task_api, origins, address, locks }
    }

    /// Never ends. SIGHUP rereads the files whether they have changed or not.
    pub(super) async fn run(mut self) {
        let mut watch = FileWatch::new(&self.file);
        let mut hangups = signal(SignalKind::hangup()).ok();
        loop {
            // Also before the first notice: the file was read before it was watched.
            self.reload_spec();
            watch.set(&self.reload.files());
            tokio::select! {
                () = watch.changed() => {}
                () = hangup(hangups.as_mut()) => tracing::info!("reading the specification again, as asked"),
            }
        }
    }

    fn reload_spec(&mut self) {
        match self.reload.after(&self.registry.settings()) {
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
        if settings.spec.store != self.registry.settings().spec.store {
            tracing::warn!("the store has changed: restart to use it");
        }
        if settings.spec.oauth2 != self.registry.settings().spec.oauth2 {
            tracing::warn!("the rules for tokens have changed: restart to use them");
        }
        match super::signed_cards(self.args, self.config, &settings, self.address, &self.locks) {
            Ok([card, extended]) => self.task_api.show(card, extended),
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

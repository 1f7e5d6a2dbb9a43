//! The task that starts one server, watches it, and restarts it.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use rmcp::service::{Peer, RoleClient};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::catalog::{self, ServerPhase, ServerRegistry, ServerState};
use super::error::StartError;
use super::server_spec::{ServerSpec, Transport};
use super::session::{Opening, Session, Target};
use super::tool_list::{ToolList, list_tools};

/// The interval at which a server at a URL is asked for its tools. Nothing else shows that it is gone.
const HTTP_REFRESH: Duration = Duration::from_mins(1);
/// The waits before a server that failed is started again: up to half a second at first and up to a minute at last. Half of
/// each is random, so that supervisors that lost the same server do not return together.
const BACKOFF: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(250))
    .with_max_delay(Duration::from_secs(30))
    .without_max_times()
    .with_jitter();
/// How long a server must have served to reset the waits.
const STABLE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct ServerTask {
    pub(super) index: usize,
    pub(super) spec: ServerSpec,
    pub(super) target: Target,
    pub(super) registry: Arc<ServerRegistry>,
    /// The connection for calls; `None` while the server is unavailable.
    pub(super) peer: watch::Sender<Option<Peer<RoleClient>>>,
    /// Signals that the list may have changed, or that the server may be gone.
    pub(super) changed: (mpsc::Sender<()>, mpsc::Receiver<()>),
    pub(super) shutdown: CancellationToken,
}

/// State between the attempts to start the server.
#[derive(Debug)]
struct RetryState {
    waits: ExponentialBackoff,
    opening: Opening,
    warned: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum SessionEnd {
    Shutdown,
    Gone(String),
}

impl ServerTask {
    /// Runs the server until shutdown, or until an error that a retry cannot mend.
    pub(super) async fn run(mut self) {
        let mut retry = RetryState { waits: BACKOFF.build(), opening: Opening::Probe, warned: false };
        let shutdown = self.shutdown.clone();
        while !shutdown.is_cancelled() {
            let opened = Session::open(&self.target, retry.opening, self.changed.0.clone(), &shutdown).await;
            match opened {
                Err(StartError::Shutdown) => return,
                Ok(session) => self.serve(session, &mut retry).await,
                Err(error) => {
                    self.report_failure(&error, &mut retry);
                    if !error.is_transient() {
                        return;
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(retry.waits.next().unwrap_or(HTTP_REFRESH)) => {}
            }
        }
    }

    /// Serves until the session ends, and cleans up after it.
    async fn serve(&mut self, mut session: Session, retry: &mut RetryState) {
        let since = Instant::now();
        self.report_ready(&mut session, retry);
        self.peer.send_replace(Some(session.peer.clone()));
        let end = self.watch(&mut session).await;
        self.peer.send_replace(None);
        if end != SessionEnd::Shutdown {
            self.registry.update(self.index, |state| state.status.phase = ServerPhase::Restarting);
        }
        let last_output = session.close().await;
        if let SessionEnd::Gone(why) = end {
            let message = format!("{why}{last_output}; it is started again");
            self.warn(retry, &message, "gone");
            self.registry.update(self.index, |state| state.status.message = Some(message));
        }
        if since.elapsed() >= STABLE {
            retry.waits = BACKOFF.build();
        }
    }

    async fn watch(&mut self, session: &mut Session) -> SessionEnd {
        let over_http = matches!(self.target.resolved.transport, Transport::Http { .. });
        let mut refresh = interval_at(Instant::now() + HTTP_REFRESH, HTTP_REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let peer = session.peer.clone();
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return SessionEnd::Shutdown,
                () = session.ended() => return SessionEnd::Gone("the server ended".to_owned()),
                Some(()) = self.changed.1.recv() => {}
                _ = refresh.tick(), if over_http => {}
            }
            let relisted = tokio::select! {
                () = self.shutdown.cancelled() => return SessionEnd::Shutdown,
                () = session.ended() => return SessionEnd::Gone("the server ended".to_owned()),
                relisted = list_tools(&peer, Some(self.target.deadline)) => relisted,
            };
            match relisted {
                Ok(list) => self.publish(list, |_| {}),
                Err(error) if over_http => {
                    return SessionEnd::Gone(self.target.resolved.logs.redact(error.to_string()));
                }
                // A busy child may be slow to answer. Its open pipe shows that it runs.
                Err(error) => {
                    tracing::debug!(server = self.spec.name, %error, "failed to list the tools again; the last list remains");
                }
            }
        }
    }

    fn report_ready(&self, session: &mut Session, retry: &mut RetryState) {
        let version = session.protocol_version();
        let list = std::mem::take(&mut session.list);
        let (server, tools) = (&self.spec.name, list.tools.len());
        tracing::info!(
            server,
            tools,
            protocol = version.as_ref().map(ToString::to_string),
            "tool server ready"
        );
        retry.warned = false;
        retry.opening = Opening::after(version.as_ref());
        self.publish(list, |state| {
            state.status.phase = ServerPhase::Ready;
            state.status.message = None;
            state.status.protocol_version = version.map(|version| version.to_string());
            state.settled = true;
        });
    }

    /// Offers the tools of the list, and warns of each that is ignored unless it was ignored before.
    fn publish(&self, list: ToolList, change: impl FnOnce(&mut ServerState)) {
        let (offers, ignored_tools) = catalog::offers(&self.spec, list);
        let ignored_tools: Vec<String> =
            ignored_tools.into_iter().map(|line| self.target.resolved.logs.redact(line)).collect();
        self.registry.update(self.index, |state| {
            for line in ignored_tools.iter().filter(|line| !state.status.ignored_tools.contains(line)) {
                tracing::warn!(server = self.spec.name, "{line}");
            }
            (state.offers, state.status.ignored_tools) = (offers, ignored_tools);
            change(state);
        });
    }

    fn report_failure(&self, error: &StartError, retry: &mut RetryState) {
        retry.opening = retry.opening.after_failure(error);
        let hidden = match error {
            // The error of a server may quote its arguments and environment.
            StartError::List(_) => &self.target.resolved.logs,
            _ => &self.target.resolved.results,
        };
        let message = hidden.redact(error.to_string());
        self.warn(retry, &message, error.category());
        self.registry.update(self.index, |state| state.fail(message));
    }

    /// Warns of the first of several failures in a row; the others are logged at level debug.
    fn warn(&self, retry: &mut RetryState, message: &str, category: &'static str) {
        let server = &self.spec.name;
        if retry.warned {
            tracing::debug!(server, category, message, "tool server still not available");
        } else {
            tracing::warn!(
                server,
                category,
                message,
                "tool server not available; it is tried again in the background"
            );
        }
        retry.warned = true;
    }
}

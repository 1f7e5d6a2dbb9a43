//! One server over its whole life: started, watched, started again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use rmcp::service::{Peer, RoleClient};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::catalog::{self, ServerPhase, ServerState, ToolsView};
use super::error::StartError;
use super::server_spec::{ServerSpec, Transport};
use super::session::{Opening, Session, Target};
use super::tool_list::{ToolList, list_tools};

/// How often a server at a URL is asked for its tools again: nothing else would tell that it is gone.
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

/// What is known of all servers, and the view that follows from it.
#[derive(Debug)]
pub(super) struct ServerRegistry {
    states: Mutex<Vec<ServerState>>,
    view: watch::Sender<Arc<ToolsView>>,
}

impl ServerRegistry {
    pub(super) fn new(states: Vec<ServerState>) -> Self {
        let view = watch::Sender::new(Arc::new(ToolsView::of(&states)));
        Self { states: Mutex::new(states), view }
    }

    pub(super) fn view(&self) -> watch::Receiver<Arc<ToolsView>> {
        self.view.subscribe()
    }

    /// Changes one server's state and publishes what follows, if anything does.
    pub(super) fn update(&self, server: usize, change: impl FnOnce(&mut ServerState)) {
        // Published under the lock, so that two servers' news never overtake each other.
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.get_mut(server) {
            change(state);
        }
        let view = ToolsView::of(&states);
        self.view.send_if_modified(|current| {
            let differs = **current != view;
            if differs {
                *current = Arc::new(view);
            }
            differs
        });
    }
}

/// What keeps one server going.
#[derive(Debug)]
pub(super) struct ServerTask {
    pub(super) index: usize,
    pub(super) spec: ServerSpec,
    pub(super) target: Target,
    pub(super) registry: Arc<ServerRegistry>,
    /// By which calls reach the server while it is there.
    pub(super) peer: watch::Sender<Option<Peer<RoleClient>>>,
    /// Notes that the list may have changed, or that the server may be gone.
    pub(super) changed: (mpsc::Sender<()>, mpsc::Receiver<()>),
    pub(super) shutdown: CancellationToken,
}

/// What the task remembers between attempts.
#[derive(Debug)]
struct Memory {
    waits: ExponentialBackoff,
    opening: Opening,
    warned: bool,
}

/// Why a session is over.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Shutdown,
    Gone(String),
}

impl ServerTask {
    /// Keeps the server going until shutdown, or until it turns out that it never can.
    pub(super) async fn run(mut self) {
        let mut memory = Memory { waits: BACKOFF.build(), opening: Opening::Probe, warned: false };
        let shutdown = self.shutdown.clone();
        while !shutdown.is_cancelled() {
            let opened = Session::open(&self.target, memory.opening, self.changed.0.clone(), &shutdown).await;
            match opened {
                Err(StartError::Shutdown) => return,
                Ok(session) => self.serve(session, &mut memory).await,
                Err(error) => {
                    self.report_failure(&error, &mut memory);
                    if !error.is_transient() {
                        return;
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(memory.waits.next().unwrap_or(HTTP_REFRESH)) => {}
            }
        }
    }

    /// Serves until the session ends, and cleans up after it.
    async fn serve(&mut self, mut session: Session, memory: &mut Memory) {
        let since = Instant::now();
        self.report_ready(&mut session, memory);
        self.peer.send_replace(Some(session.peer.clone()));
        let end = self.watch(&mut session).await;
        self.peer.send_replace(None);
        if end != End::Shutdown {
            self.registry.update(self.index, |state| state.phase = ServerPhase::Restarting);
        }
        let last_words = session.close().await;
        if let End::Gone(why) = end {
            let message = format!("{why}{last_words}; it is started again");
            self.warn(memory, &message, "gone");
            self.registry.update(self.index, |state| state.message = Some(message));
        }
        if since.elapsed() >= STABLE {
            memory.waits = BACKOFF.build();
        }
    }

    async fn watch(&mut self, session: &mut Session) -> End {
        let over_http = matches!(self.target.resolved.transport, Transport::Http { .. });
        let mut refresh = interval_at(Instant::now() + HTTP_REFRESH, HTTP_REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let peer = session.peer.clone();
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return End::Shutdown,
                () = session.ended() => return End::Gone("the server ended".to_owned()),
                Some(()) = self.changed.1.recv() => {}
                _ = refresh.tick(), if over_http => {}
            }
            let relisted = tokio::select! {
                () = self.shutdown.cancelled() => return End::Shutdown,
                () = session.ended() => return End::Gone("the server ended".to_owned()),
                relisted = list_tools(&peer, Some(self.target.deadline)) => relisted,
            };
            match relisted {
                Ok(list) => self.publish(list, |_| {}),
                Err(error) if over_http => {
                    return End::Gone(self.target.resolved.logs.redact(error.to_string()));
                }
                // A child that is busy may be slow to list; that it is there shows in its open pipe.
                Err(error) => {
                    tracing::debug!(server = self.spec.name, %error, "the last list of tools stays");
                }
            }
        }
    }

    fn report_ready(&self, session: &mut Session, memory: &mut Memory) {
        let version = session.protocol_version();
        let list = std::mem::take(&mut session.list);
        let (server, tools) = (&self.spec.name, list.tools.len());
        tracing::info!(
            server,
            tools,
            protocol = version.as_ref().map(ToString::to_string),
            "tool server ready"
        );
        memory.warned = false;
        memory.opening = Opening::after(version.as_ref());
        self.publish(list, |state| {
            state.phase = ServerPhase::Ready;
            state.message = None;
            state.protocol_version = version.map(|version| version.to_string());
            state.settled = true;
        });
    }

    /// Offers the tools of the list, and warns of each that is ignored unless the list before left it out too.
    fn publish(&self, list: ToolList, change: impl FnOnce(&mut ServerState)) {
        let (offers, ignored_tools) = catalog::offers(&self.spec, list);
        let ignored_tools: Vec<String> =
            ignored_tools.into_iter().map(|line| self.target.resolved.logs.redact(line)).collect();
        self.registry.update(self.index, |state| {
            for line in ignored_tools.iter().filter(|line| !state.ignored_tools.contains(line)) {
                tracing::warn!(server = self.spec.name, "{line}");
            }
            (state.offers, state.ignored_tools) = (offers, ignored_tools);
            change(state);
        });
    }

    fn report_failure(&self, error: &StartError, memory: &mut Memory) {
        memory.opening = memory.opening.after_failure(error);
        let hidden = match error {
            // A server's own words may quote anything that it was started with.
            StartError::List(_) => &self.target.resolved.logs,
            _ => &self.target.resolved.results,
        };
        let message = hidden.redact(error.to_string());
        self.warn(memory, &message, error.category());
        self.registry.update(self.index, |state| {
            state.phase = ServerPhase::Failed;
            state.message = Some(message);
            state.settled = true;
        });
    }

    /// Warns of the first of several failures in a row; the others are logged at level debug.
    fn warn(&self, memory: &mut Memory, message: &str, category: &'static str) {
        let server = &self.spec.name;
        if memory.warned {
            tracing::debug!(server, category, message, "tool server still not available");
        } else {
            tracing::warn!(
                server,
                category,
                message,
                "tool server not available; it is tried again in the background"
            );
        }
        memory.warned = true;
    }
}

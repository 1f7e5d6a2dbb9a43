//! All tool servers of one agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caipe_engine::{ToolOutput, name_matches};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::call::ServerClient;
use super::catalog::{ServerPhase, ServerRegistry, ServerState, ToolsView};
use super::credential_check::{self, CredentialCheck};
use super::error::SpecError;
use super::server_spec::{ServerSpec, Transport};
use super::server_task::ServerTask;
use super::session::Target;
use caipe_bridge::redact::Redactor;

/// All tool servers of one agent, each managed by a task of its own.
///
/// Dropping it stops them; [`Toolbox::shutdown`] also waits for their end.
#[derive(Debug)]
pub struct Toolbox {
    registry: Arc<ServerRegistry>,
    clients: Vec<ServerClient>,
    /// The patterns of the permitted tools, for each server.
    allow: Vec<Vec<String>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Toolbox {
    /// Starts all servers concurrently and returns at once.
    ///
    /// `env` fills in templates, and children inherit a few harmless variables of it. Cancelling `shutdown` stops the servers as
    /// [`Toolbox::shutdown`] does. Must be called within a Tokio runtime.
    #[expect(clippy::needless_pass_by_value, reason = "a token is a handle")]
    pub fn start(
        specs: Vec<ServerSpec>,
        env: &BTreeMap<String, String>,
        shutdown: CancellationToken,
    ) -> Self {
        let registry = Arc::new(ServerRegistry::new(
            specs.iter().map(|spec| ServerState::starting(&spec.name)).collect(),
        ));
        let (tasks, stop) = (TaskTracker::new(), shutdown.child_token());
        let starter = ServerStarter { registry: &registry, tasks: &tasks, stop: &stop, env };
        let allow = specs.iter().map(|spec| spec.allow.clone()).collect();
        let clients = specs.into_iter().enumerate().map(|(index, spec)| starter.start(index, spec)).collect();
        tasks.close();
        Self { registry, clients, allow, tasks, _stop_on_drop: stop.clone().drop_guard(), stop }
    }

    /// The current view, and every later one.
    pub fn watch(&self) -> watch::Receiver<Arc<ToolsView>> {
        self.registry.view()
    }

    /// The current view.
    pub fn view(&self) -> Arc<ToolsView> {
        self.registry.view().borrow().clone()
    }

    /// The patterns of permitted tools that match no tool of any server; none while a server is unavailable.
    pub fn unmatched(&self) -> Vec<String> {
        let view = self.view();
        if !view.servers.iter().all(|server| server.phase == ServerPhase::Ready) {
            return Vec::new();
        }
        let names: Vec<&str> = view.names_at_servers().collect();
        let misses = |pattern: &&String| !names.iter().any(|name| name_matches(pattern, name));
        let patterns: BTreeSet<&String> = self.allow.iter().flatten().filter(misses).collect();
        patterns.into_iter().cloned().collect()
    }

    /// Calls a tool by its name in the [`ToolsView`].
    ///
    /// A failure is an output with `is_error` whose text names server and tool and says what to do. A call of a server that is being
    /// restarted waits up to five seconds for it. Cancelling `cancel`, dropping the future and the call timeout of the server all
    /// cancel the call at the server; a later answer is ignored.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let view = self.view();
        let found = view.route(tool).and_then(|route| {
            Some((route, self.clients.get(route.server)?, view.servers.get(route.server)?))
        });
        let Some((route, client, status)) = found else {
            let content =
                format!("There is no tool `{tool}` now. Use one of the tools that you were offered.");
            return ToolOutput::error(content);
        };
        client.call(route, arguments, status, cancel).await
    }

    /// Stops all servers and returns when all their processes have ended.
    ///
    /// Takes a few seconds at most: closes stdin, then sends `SIGTERM`, then `SIGKILL`.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// Starts the servers of one toolbox.
struct ServerStarter<'a> {
    registry: &'a Arc<ServerRegistry>,
    tasks: &'a TaskTracker,
    stop: &'a CancellationToken,
    env: &'a BTreeMap<String, String>,
}

impl ServerStarter<'_> {
    fn start(&self, index: usize, spec: ServerSpec) -> ServerClient {
        let changed = mpsc::channel(1);
        let peer = watch::Sender::new(None);
        let client = |redactor| ServerClient {
            call_timeout: spec.call_timeout,
            over_http: matches!(spec.transport, Transport::Http { .. }),
            peer: peer.subscribe(),
            recheck: changed.0.clone(),
            redactor,
        };
        let resolved = match spec.transport.resolve(self.env) {
            Ok(resolved) => resolved,
            Err(error) => {
                self.report_invalid(index, &spec, &error);
                return client(Redactor::default());
            }
        };
        let client = client(resolved.results.clone());
        self.start_check(index, &spec, &client);
        let target = Target { name: spec.name.clone(), resolved, deadline: spec.start_deadline };
        let (registry, shutdown) = (Arc::clone(self.registry), self.stop.clone());
        let server_task = ServerTask { index, spec, target, registry, peer, changed, shutdown };
        // The span of the agent.
        self.tasks.spawn(server_task.run().in_current_span());
        client
    }

    fn start_check(&self, server: usize, spec: &ServerSpec, client: &ServerClient) {
        let Some(call) = spec.check.clone() else { return };
        let call_timeout = client.call_timeout.min(credential_check::DEADLINE);
        let client = ServerClient { call_timeout, ..client.clone() };
        let check = CredentialCheck { server, call, client, registry: Arc::clone(self.registry) };
        let span = tracing::info_span!("credentials", server = spec.name);
        let stop = self.stop.clone();
        self.tasks.spawn(async move { stop.run_until_cancelled(check.run()).await }.instrument(span));
    }

    fn report_invalid(&self, index: usize, spec: &ServerSpec, error: &SpecError) {
        tracing::warn!(server = spec.name, %error, "tool server not available");
        self.registry.update(index, |state| state.fail(error.to_string()));
    }
}

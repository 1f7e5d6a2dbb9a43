//! All tool servers of one agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_engine::ToolOutput;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::call::Link;
use super::catalog::{ServerPhase, ServerState, ToolsView};
use super::error::SpecError;
use super::server::{ServerRegistry, ServerTask};
use super::session::Target;
use super::spec::{ServerSpec, Transport};
use caipe_bridge::redact::Redactor;

/// All tool servers of one agent, each kept going by a task of its own.
///
/// Dropping it stops them too; [`Toolbox::shutdown`] also waits until they are gone.
#[derive(Debug)]
pub struct Toolbox {
    registry: Arc<ServerRegistry>,
    links: Vec<Link>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Toolbox {
    /// Starts all servers at once and returns without waiting for any.
    ///
    /// `env` is the environment, from which templates are filled in and of which children inherit a few harmless
    /// variables. Cancelling `shutdown` stops the servers as [`Toolbox::shutdown`] does. Must be called within a Tokio runtime.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a token is a handle; callers hand over a clone or a child of theirs"
    )]
    pub fn start(
        specs: Vec<ServerSpec>,
        env: &BTreeMap<String, String>,
        shutdown: CancellationToken,
    ) -> Self {
        let registry = Arc::new(ServerRegistry::new(
            specs.iter().map(|spec| ServerState::starting(&spec.name)).collect(),
        ));
        let (tasks, stop) = (TaskTracker::new(), shutdown.child_token());
        let place = Place { registry: &registry, tasks: &tasks, stop: &stop, env };
        let links = specs.into_iter().enumerate().map(|(index, spec)| place.start(index, spec)).collect();
        tasks.close();
        Self { registry, links, tasks, _stop_on_drop: stop.clone().drop_guard(), stop }
    }

    /// What is on offer, now and whenever it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<ToolsView>> {
        self.registry.view()
    }

    /// What is on offer now.
    pub fn view(&self) -> Arc<ToolsView> {
        self.registry.view().borrow().clone()
    }

    /// Whether a tool of this name is on offer now.
    pub fn has(&self, tool: &str) -> bool {
        self.registry.view().borrow().route(tool).is_some()
    }

    /// Calls a tool by its name in the [`ToolsView`].
    ///
    /// Failures are reported to the model: the output's `is_error` is set and its text names server and tool and says what
    /// to do. A call of a server that is being restarted waits up to five seconds for it. Cancelling `cancel`, dropping the
    /// future, and the server's call timeout all cancel the call at the server; an answer that comes later is ignored.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let view = self.view();
        let found = view
            .route(tool)
            .and_then(|route| Some((route, self.links.get(route.server)?, view.servers.get(route.server)?)));
        let Some((route, link, status)) = found else {
            let content =
                format!("There is no tool `{tool}` now. Use one of the tools that you were offered.");
            return ToolOutput { content, is_error: true };
        };
        link.call(route, arguments, status, cancel).await
    }

    /// Stops all servers, and returns when none of their processes is left.
    ///
    /// Takes a few seconds at most: stdin is closed, then `SIGTERM` sent, then `SIGKILL`.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

/// Where a server is started.
struct Place<'a> {
    registry: &'a Arc<ServerRegistry>,
    tasks: &'a TaskTracker,
    stop: &'a CancellationToken,
    env: &'a BTreeMap<String, String>,
}

impl Place<'_> {
    fn start(&self, index: usize, spec: ServerSpec) -> Link {
        let changed = mpsc::channel(1);
        let peer = watch::Sender::new(None);
        let link = |redactor| Link {
            call_timeout: spec.call_timeout,
            over_http: matches!(spec.transport, Transport::Http { .. }),
            peer: peer.subscribe(),
            suspect: changed.0.clone(),
            redactor,
        };
        let resolved = match spec.transport.resolve(self.env) {
            Ok(resolved) => resolved,
            Err(error) => {
                self.refuse(index, &spec, &error);
                return link(Redactor::default());
            }
        };
        let link = link(resolved.results.clone());
        let target = Target { name: spec.name.clone(), resolved, deadline: spec.start_deadline };
        let (registry, shutdown) = (Arc::clone(self.registry), self.stop.clone());
        let server_task = ServerTask { index, spec, target, registry, peer, changed, shutdown };
        // What it logs belongs to the agent whose toolbox this is.
        self.tasks.spawn(server_task.run().in_current_span());
        link
    }

    fn refuse(&self, index: usize, spec: &ServerSpec, error: &SpecError) {
        tracing::warn!(server = spec.name, %error, "tool server not available");
        self.registry.update(index, |state| {
            state.phase = ServerPhase::Failed;
            state.message = Some(error.to_string());
            state.settled = true;
        });
    }
}

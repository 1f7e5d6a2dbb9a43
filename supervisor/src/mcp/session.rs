//! One session with a server, from the handshake to its end.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RoleClient,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::connection_error;
use super::error::{ListError, StartError};
use super::server_spec::{self, Resolved};
use super::tolerant_transport::TolerantTransport;
use super::tool_list::{ToolList, list_tools};
use caipe_bridge::process::{Pipes, Program, ServerProcess};

/// How long closing the connection may take before the child is stopped.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How long a child whose connection closed has to show its exit status.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(500);

/// The way to open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// Send `server/discover`, and `initialize` if the server rejects it.
    Probe,
    /// Send `initialize`: for servers that only know sessions, or that fail on `server/discover`.
    Initialize,
    /// Send `server/discover` and wait for the whole deadline: for servers of the stateless era.
    Discover,
}

/// The server of a session.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) resolved: Resolved,
    /// The limit for opening a session, and for listing the tools.
    pub(super) deadline: Duration,
}

/// A session with a server that has listed its tools.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Peer<RoleClient>,
    /// The first list of tools.
    pub(super) list: ToolList,
    stop: CancellationToken,
    /// The running client.
    ended: JoinHandle<()>,
    subscription: Option<AbortOnDropHandle<()>>,
    process: Option<ServerProcess>,
}

/// The client side of the protocol: accepts notifications of changed lists and declines everything else.
#[derive(Debug)]
struct Handler {
    changed: mpsc::Sender<()>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        note(&self.changed);
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("caipe-supervisor", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// One pending notification is enough.
fn note(changed: &mpsc::Sender<()>) {
    if changed.try_send(()).is_err() {
        tracing::trace!("a change of the tool list is already noted");
    }
}

impl Session {
    /// Connects, negotiates the protocol and lists the tools within the deadline. On an error no process is left.
    pub(super) async fn open(
        target: &Target,
        opening: Opening,
        changed: mpsc::Sender<()>,
        shutdown: &CancellationToken,
    ) -> Result<Self, StartError> {
        match &target.resolved.transport {
            server_spec::Transport::Stdio { command, args, env, cwd } => {
                let (server, cwd) = (&target.name, cwd.as_deref());
                let program = Program { server, command, args, env, cwd, verbose: false };
                let (mut process, Pipes { reader, writer }) =
                    ServerProcess::spawn(program, &target.resolved.logs)?;
                let transport = TolerantTransport::with_child(AsyncRwTransport::new_client(reader, writer));
                match within(target, shutdown, converse(transport, opening, changed)).await {
                    Ok(session) => Ok(Self { process: Some(process), ..session }),
                    Err(error) => Err(explain_failed_start(target, error, &mut process).await),
                }
            }
            server_spec::Transport::Http { url, headers } => {
                let transport = StreamableHttpClientTransport::from_config(http_config(url, headers)?);
                let transport = TolerantTransport::with_endpoint(transport);
                within(target, shutdown, converse(transport, opening, changed))
                    .await
                    .map_err(|error| error.into_error(target, String::new()))
            }
        }
    }

    /// Waits for the end of the connection.
    pub(super) async fn ended(&mut self) {
        if let Err(error) = (&mut self.ended).await {
            tracing::debug!(%error, "the tool server's connection ended badly");
        }
    }

    /// The negotiated protocol version.
    pub(super) fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.peer.peer_info().map(|info| info.protocol_version.clone())
    }

    /// Ends the session and the child. Returns the last output of the child, for a message to people.
    pub(super) async fn close(mut self) -> String {
        self.stop.cancel();
        self.subscription = None;
        if !self.ended.is_finished() && timeout(CLOSE_GRACE, self.ended()).await.is_err() {
            tracing::debug!("the tool server's connection did not close in time");
        }
        let Some(process) = &mut self.process else {
            return String::new();
        };
        process.stop().await;
        process.last_output()
    }
}

/// A session that did not open.
#[derive(Debug)]
enum OpenError {
    Handshake(Box<ClientInitializeError>),
    List(ListError),
    Deadline,
    Shutdown,
}

impl OpenError {
    /// Whether the connection closed, as opposed to an unusable answer.
    fn is_lost(&self) -> bool {
        match self {
            Self::Handshake(error) => connection_error::is_lost(error),
            Self::List(error) => matches!(error, ListError::Lost),
            Self::Deadline | Self::Shutdown => false,
        }
    }

    fn into_error(self, target: &Target, hint: String) -> StartError {
        match self {
            Self::Handshake(error) => StartError::Handshake {
                reason: connection_error::explain(&error, &target.resolved.logs),
                hint,
            },
            Self::List(error) => StartError::List(error),
            Self::Deadline => StartError::Deadline { deadline: target.deadline, hint },
            Self::Shutdown => StartError::Shutdown,
        }
    }
}

/// Bounds an attempt by the deadline and the shutdown.
async fn within(
    target: &Target,
    shutdown: &CancellationToken,
    attempt: impl Future<Output = Result<Session, OpenError>>,
) -> Result<Session, OpenError> {
    tokio::select! {
        () = shutdown.cancelled() => Err(OpenError::Shutdown),
        outcome = timeout(target.deadline, attempt) => outcome.unwrap_or(Err(OpenError::Deadline)),
    }
}

/// Stops a child without a session, and adds its exit status and last output to the error.
async fn explain_failed_start(target: &Target, error: OpenError, process: &mut ServerProcess) -> StartError {
    let exited = if error.is_lost() { process.exit_within(EXIT_STATUS_GRACE).await } else { None };
    process.stop().await;
    let hint = process.last_output();
    match exited {
        Some(status) => StartError::Ended { hint: format!(" ({status}){hint}") },
        None => error.into_error(target, hint),
    }
}

/// Opens a session over the transport.
async fn converse<T>(transport: T, opening: Opening, changed: mpsc::Sender<()>) -> Result<Session, OpenError>
where
    T: Transport<RoleClient> + 'static,
{
    let stop = CancellationToken::new();
    // The connection does not outlive this attempt.
    let guard = stop.clone().drop_guard();
    let handler = Handler { changed: changed.clone() };
    let service = serve_client_with_lifecycle_and_ct(handler, transport, opening.lifecycle(), stop.clone())
        .await
        .map_err(|error| OpenError::Handshake(Box::new(error)))?;
    let peer = service.peer().clone();
    let ended = tokio::spawn(async move {
        if let Err(error) = service.waiting().await {
            tracing::debug!(%error, "the tool server's client ended badly");
        }
    });
    let list = list_tools(&peer, None).await.map_err(OpenError::List)?;
    let subscription = subscribe(&peer, changed);
    Ok(Session { peer, list, stop: guard.disarm(), ended, subscription, process: None })
}

impl Opening {
    /// The way for a server that used this version before.
    pub(super) fn after(version: Option<&ProtocolVersion>) -> Self {
        match version {
            Some(version) if version.has_initialize() => Self::Initialize,
            Some(_) => Self::Discover,
            None => Self::Probe,
        }
    }

    /// The way after this one failed.
    pub(super) const fn after_failure(self, error: &StartError) -> Self {
        match (error, self) {
            // `server/discover` may be the reason.
            (StartError::Ended { .. } | StartError::Handshake { .. }, Self::Probe) => Self::Initialize,
            (StartError::Handshake { .. }, Self::Initialize) => Self::Discover,
            (StartError::Ended { .. } | StartError::Handshake { .. }, _) => Self::Probe,
            _ => self,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Probe => {
                let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
                ClientLifecycleMode::Auto { preferred_versions, legacy_version }
            }
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => ClientLifecycleMode::Discover { preferred_versions },
        }
    }
}

/// Subscribes to changed lists. Servers with sessions notify every client, those of the stateless era only subscribers.
fn subscribe(peer: &Peer<RoleClient>, changed: mpsc::Sender<()>) -> Option<AbortOnDropHandle<()>> {
    let info = peer.peer_info()?;
    let notifies = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if info.protocol_version.has_initialize() || !notifies {
        return None;
    }
    let peer = peer.clone();
    let listening = async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    note(&changed);
                }
            }
            Err(error) => tracing::debug!(%error, "the tool server takes no subscription to its tool list"),
        }
    };
    Some(AbortOnDropHandle::new(tokio::spawn(listening)))
}

fn http_config(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransportConfig, StartError> {
    let invalid = |field: String, what| StartError::InvalidHttp { field, what };
    let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    parsed.ok_or_else(|| invalid("url".to_owned(), "http or https URL"))?;
    let header = |(name, value): (&String, &String)| {
        let field = format!("headers.{name}");
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(field.clone(), "header name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid(field, "header value"))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    let headers = headers.iter().map(header).collect::<Result<HashMap<_, _>, StartError>>()?;
    Ok(StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers))
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

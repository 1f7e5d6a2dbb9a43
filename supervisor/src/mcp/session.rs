//! One connection to a server, from the handshake to the end.

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

use super::error::{ListError, StartError};
use super::handshake;
use super::list::{ToolList, list_tools};
use super::spec::{self, Resolved};
use super::tolerant_transport::TolerantTransport;
use caipe_bridge::process::{Pipes, Program, ServerProcess};

/// How long closing the connection may take, before the child is stopped regardless.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How long a child whose connection closed has to show its exit status.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(500);

/// How to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// Ask which protocol the server speaks (`server/discover`), and begin the old way if it does not know the question.
    Probe,
    /// Begin the old way (`initialize`): for servers known to be of that era, or that cannot bear the question.
    Initialize,
    /// Ask, and wait for the answer as long as the deadline allows: for servers known to be of the new era.
    Discover,
}

/// What a session is opened with.
#[derive(Debug)]
pub(super) struct Target {
    /// The server's name.
    pub(super) name: String,
    /// How to reach it.
    pub(super) resolved: Resolved,
    /// How long opening, or listing the tools later, may take.
    pub(super) deadline: Duration,
}

/// A session with a server that has listed its tools.
#[derive(Debug)]
pub(super) struct Session {
    /// By which it is asked.
    pub(super) peer: Peer<RoleClient>,
    /// The tools that it listed first, to be taken from here.
    pub(super) list: ToolList,
    connection: Connection,
    process: Option<ServerProcess>,
}

/// The running client of a session.
#[derive(Debug)]
struct Connection {
    stop: CancellationToken,
    ended: JoinHandle<()>,
    subscription: Option<JoinHandle<()>>,
}

/// Our side of the protocol: we only want to know of changed lists; whatever else a server asks is declined.
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

/// One pending note is as good as many.
fn note(changed: &mpsc::Sender<()>) {
    if changed.try_send(()).is_err() {
        tracing::trace!("a change of the tool list is already noted");
    }
}

impl Session {
    /// Reaches the server, agrees on a protocol and lists its tools, all within the target's deadline.
    ///
    /// When it fails, nothing of the server is left.
    pub(super) async fn open(
        target: &Target,
        opening: Opening,
        changed: mpsc::Sender<()>,
        shutdown: &CancellationToken,
    ) -> Result<Self, StartError> {
        match &target.resolved.transport {
            spec::Transport::Stdio { command, args, env, cwd } => {
                let (server, cwd) = (&target.name, cwd.as_deref());
                let program = Program { server, command, args, env, cwd, verbose: false };
                let (mut process, Pipes { reader, writer }) =
                    ServerProcess::spawn(program, &target.resolved.logs)?;
                let transport = TolerantTransport::with_child(AsyncRwTransport::new_client(reader, writer));
                match within(target, shutdown, converse(transport, opening, changed)).await {
                    Ok((peer, list, connection)) => {
                        Ok(Self { peer, list, connection, process: Some(process) })
                    }
                    Err(refusal) => Err(post_mortem(target, refusal, &mut process).await),
                }
            }
            spec::Transport::Http { url, headers } => {
                let transport = StreamableHttpClientTransport::from_config(http_config(url, headers)?);
                let transport = TolerantTransport::with_endpoint(transport);
                match within(target, shutdown, converse(transport, opening, changed)).await {
                    Ok((peer, list, connection)) => Ok(Self { peer, list, connection, process: None }),
                    Err(refusal) => Err(refusal.into_error(target, String::new())),
                }
            }
        }
    }

    /// Waits until the connection is gone: the child ended, or the server hung up.
    pub(super) async fn ended(&mut self) {
        if let Err(error) = (&mut self.connection.ended).await {
            tracing::debug!(%error, "the tool server's connection ended badly");
        }
    }

    /// The protocol version agreed on.
    pub(super) fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.peer.peer_info().map(|info| info.protocol_version.clone())
    }

    /// Ends the session, and the child with it. Returns what the child said last, for a message to people.
    pub(super) async fn close(mut self) -> String {
        self.connection.stop.cancel();
        if let Some(subscription) = &self.connection.subscription {
            subscription.abort();
        }
        if !self.connection.ended.is_finished() && timeout(CLOSE_GRACE, self.ended()).await.is_err() {
            tracing::debug!("the tool server's connection did not close in time");
        }
        let Some(process) = &mut self.process else {
            return String::new();
        };
        process.stop().await;
        process.last_output()
    }
}

type Opened = (Peer<RoleClient>, ToolList, Connection);

/// Why no session came about.
#[derive(Debug)]
enum Refusal {
    Handshake(Box<ClientInitializeError>),
    List(ListError),
    Deadline,
    Shutdown,
}

impl Refusal {
    /// Whether the server went away, rather than said something that was no use.
    fn is_lost(&self) -> bool {
        match self {
            Self::Handshake(error) => handshake::is_lost(error),
            Self::List(error) => matches!(error, ListError::Lost),
            Self::Deadline | Self::Shutdown => false,
        }
    }

    fn into_error(self, target: &Target, hint: String) -> StartError {
        match self {
            Self::Handshake(error) => {
                StartError::Handshake { reason: handshake::explain(&error, &target.resolved.logs), hint }
            }
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
    attempt: impl Future<Output = Result<Opened, Refusal>>,
) -> Result<Opened, Refusal> {
    tokio::select! {
        () = shutdown.cancelled() => Err(Refusal::Shutdown),
        outcome = timeout(target.deadline, attempt) => outcome.unwrap_or(Err(Refusal::Deadline)),
    }
}

/// Removes a child with which no session came about, and finds out what there is to know of it.
async fn post_mortem(target: &Target, refusal: Refusal, process: &mut ServerProcess) -> StartError {
    let exited = if refusal.is_lost() { process.exit_within(EXIT_STATUS_GRACE).await } else { None };
    process.stop().await;
    let hint = process.last_output();
    match exited {
        Some(status) => StartError::Ended { hint: format!(" ({status}){hint}") },
        None => refusal.into_error(target, hint),
    }
}

async fn converse<T>(transport: T, opening: Opening, changed: mpsc::Sender<()>) -> Result<Opened, Refusal>
where
    T: Transport<RoleClient> + 'static,
{
    let stop = CancellationToken::new();
    // Whatever becomes of this attempt, its connection does not outlive it.
    let guard = stop.clone().drop_guard();
    let handler = Handler { changed: changed.clone() };
    let service = serve_client_with_lifecycle_and_ct(handler, transport, opening.lifecycle(), stop.clone())
        .await
        .map_err(|error| Refusal::Handshake(Box::new(error)))?;
    let peer = service.peer().clone();
    let ended = tokio::spawn(async move {
        if let Err(error) = service.waiting().await {
            tracing::debug!(%error, "the tool server's client ended badly");
        }
    });
    let list = list_tools(&peer, None).await.map_err(Refusal::List)?;
    let subscription = subscribe(&peer, changed);
    Ok((peer, list, Connection { stop: guard.disarm(), ended, subscription }))
}

impl Opening {
    /// How to begin with a server that spoke this version before.
    pub(super) fn after(version: Option<&ProtocolVersion>) -> Self {
        match version {
            Some(version) if version.has_initialize() => Self::Initialize,
            Some(_) => Self::Discover,
            None => Self::Probe,
        }
    }

    /// How to begin after this way led to nothing.
    pub(super) const fn after_failure(self, error: &StartError) -> Self {
        match (error, self) {
            // It may have died of the first question, or of something else.
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

/// Subscribes to changed lists. Servers of the old era notify every client, those of the new one only subscribers.
fn subscribe(peer: &Peer<RoleClient>, changed: mpsc::Sender<()>) -> Option<JoinHandle<()>> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if info.protocol_version.has_initialize() || !tells {
        return None;
    }
    let peer = peer.clone();
    Some(tokio::spawn(async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    note(&changed);
                }
            }
            Err(error) => tracing::debug!(%error, "the tool server takes no subscription to its tool list"),
        }
    }))
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

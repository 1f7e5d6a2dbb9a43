//! Accepts connections and serves HTTP/1.1, within limits that clients cannot exceed.
//!
//! axum's `serve` limits neither connections nor the time for the head of a request. HTTP/2 without TLS is not supported:
//! such a connection is closed.

use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most connections at a time, if the limit of open files allows it.
const MOST_CONNECTIONS: usize = 16_384;

/// Files for other things than connections, such as the store, tool servers and model calls; half of all files where
/// there are fewer than twice as many.
const OTHER_FILES: usize = 512;

/// Connections beyond the limit that are accepted for health checks.
const RESERVE: usize = 16;

/// Fewer connections than this are worth a warning.
const FEW_CONNECTIONS: usize = 1000;

/// The paths that are served beyond the limit.
const HEALTH_PATHS: [&str; 2] = ["/health", "/ready"];

/// The pause after the system had no file for a connection.
const BREATH: Duration = Duration::from_millis(100);

/// The limits for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. Requests on further connections wait for a place, but health checks do not.
    pub connections: usize,
    /// How long a request may wait for a connection within the limit before it gets 503.
    pub wait: Duration,
    /// How long the head of a request may take after the previous response, which is also how long a connection may be idle.
    pub head_time: Duration,
    /// Largest head of a request in bytes; 8192 is the least.
    pub head_bytes: usize,
    /// How long a client may read nothing before its connection is closed.
    pub stall_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: MOST_CONNECTIONS,
            wait: Duration::from_secs(1),
            // Longer than the minute after which load balancers drop a connection: who drops it first must not be
            // the one that a request is sent to.
            head_time: Duration::from_secs(75),
            head_bytes: 64 << 10,
            stall_time: Duration::from_mins(5),
        }
    }
}

impl Limits {
    /// The default, or as much of it as the files that this process may open allow. Raises the number of files as far
    /// as the system permits.
    pub fn fitting() -> Self {
        let files = open_files(MOST_CONNECTIONS + OTHER_FILES + RESERVE);
        if let Some(warning) = few_connections() {
            tracing::warn!("{warning}");
        }
        Self { connections: connections(files), ..Self::default() }
    }
}

/// What to do where the limit of open files allows few connections only.
pub(super) fn few_connections() -> Option<String> {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok())?;
    let connections = connections(files);
    (connections < FEW_CONNECTIONS).then(|| {
        format!(
            "the process may open {files} files, so the server accepts {connections} connections at a time: raise the limit of \
             open files (ulimit -n, LimitNOFILE)"
        )
    })
}

/// The number of connections that so many open files allow.
fn connections(files: usize) -> usize {
    let others = OTHER_FILES.min(files / 2) + RESERVE;
    files.saturating_sub(others).clamp(1, MOST_CONNECTIONS)
}

/// How many files this process may open, after having asked for as many as `wanted`.
fn open_files(wanted: usize) -> usize {
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let given = getrlimit(Resource::Nofile);
    let current = given.current.unwrap_or(u64::MAX);
    let allowed = given.maximum.unwrap_or(u64::MAX).min(wanted);
    if current >= allowed {
        return usize::try_from(current).unwrap_or(usize::MAX);
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: given.maximum });
    usize::try_from(if raised.is_ok() { allowed } else { current }).unwrap_or(usize::MAX)
}

/// Serves until `stop`; then accepts no more connections, closes the idle ones, and returns once the others have their
/// responses.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let (accepted, connections) =
        (Arc::new(Semaphore::new(limits.connections + RESERVE)), TaskTracker::new());
    while let Some(Ok(permit)) = stop.run_until_cancelled(accepted.clone().acquire_owned()).await {
        let Some(stream) = stop.run_until_cancelled(accept(&listener)).await else { break };
        let place = places.clone().try_acquire_owned().ok();
        let routes = match &place {
            Some(_) => routes.clone(),
            None => waiting(routes.clone(), &places, limits.wait),
        };
        let (routes, stop) = (TowerToHyperService::new(routes), stop.clone());
        connections.spawn(async move {
            answer(stream, routes, limits, stop).await;
            drop((place, permit));
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// A connection beyond the limit, until one within the limit ends.
struct Waiting {
    places: Arc<Semaphore>,
    wait: Duration,
    place: OnceLock<OwnedSemaphorePermit>,
}

/// The routes for a connection beyond the limit.
fn waiting(routes: Router, places: &Arc<Semaphore>, wait: Duration) -> Router {
    let waiting = Arc::new(Waiting { places: places.clone(), wait, place: OnceLock::new() });
    routes.layer(middleware::from_fn_with_state(waiting, wait_for_place))
}

/// Answers a health check at once. Another request needs a place, which its connection then keeps.
async fn wait_for_place(State(waiting): State<Arc<Waiting>>, request: Request, next: Next) -> Response {
    if waiting.place.get().is_none() && !HEALTH_PATHS.contains(&request.uri().path()) {
        match tokio::time::timeout(waiting.wait, waiting.places.clone().acquire_owned()).await {
            Ok(Ok(place)) => drop(waiting.place.set(place)),
            _ => return unavailable("too many connections: try again later\n"),
        }
    }
    next.run(request).await
}

/// A refusal for now: nothing was done, and the client may send the request again after a second.
pub(super) fn unavailable(reason: &'static str) -> Response {
    let headers = [(header::RETRY_AFTER, "1"), (header::CONNECTION, "close")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, reason).into_response()
}

/// The next connection. Ignores a connection that breaks early, and waits while the system has no file for one.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_clients(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to take a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

fn is_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves one connection to its end.
async fn answer(
    stream: TcpStream,
    routes: TowerToHyperService<Router>,
    limits: Limits,
    stop: CancellationToken,
) {
    prepare(&stream, limits);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), routes);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// A connection works without these options too.
fn prepare(stream: &TcpStream, limits: Limits) {
    // Without this a client's delayed acknowledgement holds each small event back for 40 ms.
    let _ = stream.set_nodelay(true);
    let stall = u32::try_from(limits.stall_time.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, stall);
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;

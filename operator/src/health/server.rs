//! The HTTP server of health and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::state::Health;
use crate::metrics::{CONTENT_TYPE, Metrics};

/// Maximum number of connections.
const CONNECTIONS: usize = 64;
/// Timeout of a request's head and of an idle connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Maximum bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Maximum lifetime of a connection, so that a scraper that reads nothing frees its slot.
const CONNECTION_TIME: Duration = Duration::from_mins(10);
/// Pause after a failed `accept`.
const BREATH: Duration = Duration::from_millis(100);
/// How long open responses may take at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// The address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}: {source}; give another address with --listen")]
pub struct HealthError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Binds the address.
///
/// # Errors
/// If the address cannot be bound.
pub fn bind(address: SocketAddr) -> Result<TcpListener, HealthError> {
    caipe_a2a::listener::listen(address).map_err(|source| HealthError { address, source })
}

#[derive(Clone)]
struct About {
    health: Health,
    metrics: Arc<Metrics>,
}

fn router(health: Health, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(About { health, metrics })
}

async fn healthz(State(about): State<About>) -> Response {
    answer("silent", &about.health.silent())
}

async fn readyz(State(about): State<About>) -> Response {
    answer("missing", &about.health.missing())
}

fn answer(what: &str, faults: &[&str]) -> Response {
    if faults.is_empty() {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("{what}: {}\n", faults.join(", "))).into_response()
}

async fn scrape(State(about): State<About>) -> Response {
    match about.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Serves until `stop`, then finishes open responses within `GRACE`.
pub async fn serve(listener: TcpListener, health: Health, metrics: Arc<Metrics>, stop: CancellationToken) {
    let routes = TowerToHyperService::new(router(health, metrics));
    let (places, mut connections) = (Arc::new(Semaphore::new(CONNECTIONS)), JoinSet::new());
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
        let Some(stream) = stop.run_until_cancelled(accept(&listener)).await else { break };
        while connections.try_join_next().is_some() {}
        let (routes, stop) = (routes.clone(), stop.clone());
        connections.spawn(async move {
            serve_connection(stream, routes, stop).await;
            drop(place);
        });
    }
    drop(listener);
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// The next connection. Failed accepts are retried.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, routes: TowerToHyperService<Router>, stop: CancellationToken) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), routes);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = timeout(CONNECTION_TIME, serving.as_mut()) => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            timeout(GRACE, serving).await
        }
    };
    if let Ok(Err(error)) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

//! Sends probes to pods.
//!
//! A pod may run any image: the client uses only the address from the API server, follows no redirects, and bounds
//! memory and time.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::client::{CardCache, ClientOptions, probe};
use caipe_crds::internal_status::Report;
use caipe_crds::names::PORT;
use http::Response;
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest::redirect;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

use super::bounds::{NAME, bounded, cut};
use super::connections::{Connection, Connections};
use super::failure::{Failure, accepted, broken, of_client, too_large};
use super::result::CardSummary;
use crate::metrics::labels::ProbeOutcome;

/// Capacity of the card cache, which saves pods from sending their card again.
const CARDS: usize = 1024;

/// The name of this client.
const AGENT: &str = concat!("caipe-operator/", env!("CARGO_PKG_VERSION"));

/// The target of a probe.
#[derive(Debug, Clone)]
pub struct Request {
    /// The pod's address.
    pub ip: IpAddr,
    /// The bearer token of the status endpoint.
    pub token: Option<SecretString>,
}

/// A client of pods. Dropping a future cancels the request.
pub trait PodClient: Send + Sync + 'static {
    /// Requests `/internal/status`.
    fn status(&self, request: &Request) -> impl Future<Output = Result<Report, Failure>> + Send;

    /// Requests the agent card.
    fn card(&self, request: &Request) -> impl Future<Output = Result<CardSummary, Failure>> + Send;
}

/// Bounds of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Timeout of a probe.
    pub deadline: Duration,
    /// Maximum bytes of a card, and of a report without a permit.
    pub body: usize,
    /// Maximum bytes of a report: a thousand agents with their tools do not fit into `body`.
    pub large_report: usize,
    /// Maximum number of bodies above `body` that are read at a time.
    pub large_reports: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(1), body: 256 << 10, large_report: 4 << 20, large_reports: 4 }
    }
}

/// Probes over HTTP.
#[derive(Debug)]
pub struct HttpPodClient {
    /// For cards.
    http: reqwest::Client,
    connections: Connections,
    options: ClientOptions,
    cards: CardCache,
    limits: Limits,
    large: Arc<Semaphore>,
    port: u16,
}

impl HttpPodClient {
    /// A client without cookies, proxy and redirects. It keeps the connections for reports, which are much more
    /// frequent than cards.
    ///
    /// # Errors
    /// If no TLS provider is available.
    pub fn new(limits: Limits) -> Result<Self, reqwest::Error> {
        let close = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
        let http = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(redirect::Policy::none())
            .http1_only()
            .pool_max_idle_per_host(0)
            .default_headers(close)
            .connect_timeout(limits.deadline)
            .timeout(limits.deadline)
            .user_agent(AGENT)
            .build()?;
        let options =
            ClientOptions { timeout: limits.deadline, max_message: limits.body, ..ClientOptions::default() };
        let large = Arc::new(Semaphore::new(limits.large_reports));
        Ok(Self {
            http,
            connections: Connections::new(),
            options,
            cards: CardCache::new(CARDS),
            limits,
            large,
            port: PORT,
        })
    }

    #[cfg(test)]
    pub(super) const fn at_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    fn address(&self, request: &Request) -> SocketAddr {
        SocketAddr::new(request.ip, self.port)
    }

    async fn ask_status(&self, request: &Request) -> Result<Report, Failure> {
        let address = self.address(request);
        if let Some(connection) = self.connections.take(address) {
            match self.ask_status_over(connection, address, request).await {
                // The pod may have closed it at the same moment.
                Err(failure) if failure.outcome == ProbeOutcome::Broken => {}
                done => return done,
            }
        }
        self.ask_status_over(Connection::open(address).await?, address, request).await
    }

    async fn ask_status_over(
        &self,
        connection: Connection,
        address: SocketAddr,
        request: &Request,
    ) -> Result<Report, Failure> {
        let asked = status_request(address, request.token.as_ref()).map_err(|_| broken())?;
        let (report, connection) = connection.send(asked, |response| self.report(response)).await?;
        if let Some(connection) = connection {
            self.connections.put(address, connection);
        }
        Ok(report)
    }

    async fn report(&self, response: Response<Incoming>) -> Result<Report, Failure> {
        accepted(response.status())?;
        let body = self.body(response.into_body()).await?;
        serde_json::from_slice(&body).map(bounded).map_err(|_| {
            Failure::new(ProbeOutcome::Malformed, "failed to understand the pod: its status is not a report")
        })
    }

    async fn body(&self, mut response: Incoming) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut permit = None;
        while let Some(frame) = response.frame().await {
            let Ok(chunk) = frame.map_err(|_| broken())?.into_data() else { continue };
            let length = body.len().saturating_add(chunk.len());
            if length > self.limits.large_report {
                return Err(too_large(self.limits.large_report));
            }
            if length > self.limits.body && permit.is_none() {
                permit = self.large.acquire().await.ok();
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn ask_card(&self, request: &Request) -> Result<CardSummary, Failure> {
        let base = format!("http://{}/", self.address(request));
        let seen = probe(&base, &self.http, &self.options, &self.cards).await;
        let seen = seen.map_err(|error| of_client(&error, self.limits.body))?;
        Ok(CardSummary {
            name: cut(&seen.card.name, NAME),
            protocol_version: seen.version.as_str().to_owned(),
            latency_ms: u64::try_from(seen.latency.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn status_request(
    address: SocketAddr,
    token: Option<&SecretString>,
) -> Result<http::Request<String>, http::Error> {
    let mut asked = http::Request::get("/internal/status").header(HOST, address.to_string());
    asked = asked.header(USER_AGENT, AGENT);
    if let Some(token) = token {
        let mut credential = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))?;
        credential.set_sensitive(true);
        asked = asked.header(AUTHORIZATION, credential);
    }
    asked.body(String::new())
}

impl PodClient for HttpPodClient {
    async fn status(&self, request: &Request) -> Result<Report, Failure> {
        let asked = tokio::time::timeout(self.limits.deadline, self.ask_status(request));
        asked.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    async fn card(&self, request: &Request) -> Result<CardSummary, Failure> {
        let asked = tokio::time::timeout(self.limits.deadline, self.ask_card(request));
        asked.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}

#[cfg(test)]
#[path = "pod_client_tests.rs"]
mod tests;

//! One look at a pod.
//!
//! A pod may be anybody's image: it is asked at the address that the API server gave, is followed nowhere else, and gets
//! neither the operator's memory nor its time.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::client::{CardCache, ClientOptions, probe};
use caipe_crds::names::PORT;
use caipe_crds::report::Report;
use reqwest::header::{CONNECTION, HeaderMap, HeaderValue};
use reqwest::{Response, redirect};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

use super::bounds::{NAME, bounded, cut};
use super::failure::{Failure, accepted, of_client, too_large, transport};
use super::result::CardSummary;
use crate::metrics::labels::ProbeOutcome;

/// Cards that are remembered, so that a pod need not send its card again. Others are asked for anew.
const CARDS: usize = 1024;

/// Who is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The pod's address.
    pub ip: IpAddr,
    /// The bearer token, for the status.
    pub token: Option<SecretString>,
}

/// How pods are asked. Cancelled by dropping.
pub trait PodClient: Send + Sync + 'static {
    /// How the supervisor or agent in the pod is.
    fn status(&self, request: &Request) -> impl Future<Output = Result<Report, Failure>> + Send;

    /// The card of the agent in the pod.
    fn card(&self, request: &Request) -> impl Future<Output = Result<CardSummary, Failure>> + Send;
}

/// What pods may take up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a look may take.
    pub deadline: Duration,
    /// Largest body of a card, and of a report without a permit, in bytes.
    pub body: usize,
    /// Largest body of a report, in bytes: a thousand agents with their tools do not fit into `body`.
    pub large_body: usize,
    /// How many bodies larger than `body` are read at a time, of all pods.
    pub large_bodies: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(1), body: 256 << 10, large_body: 4 << 20, large_bodies: 4 }
    }
}

/// Asks over HTTP.
#[derive(Debug)]
pub struct HttpPodClient {
    http: reqwest::Client,
    options: ClientOptions,
    cards: CardCache,
    limits: Limits,
    large: Arc<Semaphore>,
    port: u16,
}

impl HttpPodClient {
    /// With a client of its own: no cookies, no proxy, no redirects, and no connection is kept. A look is to show that
    /// the pod takes connections, and thousands of idle ones would take more memory than everything else here.
    ///
    /// # Errors
    /// When the system has no TLS to offer.
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
            .user_agent(concat!("caipe-operator/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let options =
            ClientOptions { timeout: limits.deadline, max_message: limits.body, ..ClientOptions::default() };
        let large = Arc::new(Semaphore::new(limits.large_bodies));
        Ok(Self { http, options, cards: CardCache::new(CARDS), limits, large, port: PORT })
    }

    /// Asks at another port.
    #[cfg(test)]
    pub(super) const fn at_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    fn address(&self, request: &Request) -> SocketAddr {
        SocketAddr::new(request.ip, self.port)
    }

    async fn ask_status(&self, request: &Request) -> Result<Report, Failure> {
        let mut asked = self.http.get(format!("http://{}/internal/status", self.address(request)));
        if let Some(token) = &request.token {
            asked = asked.bearer_auth(token.expose_secret());
        }
        let response = asked.send().await.map_err(|error| transport(&error))?;
        accepted(response.status())?;
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map(bounded).map_err(|_| {
            Failure::new(
                ProbeOutcome::Malformed,
                "failed to understand the pod: its status is no report of ours",
            )
        })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let mut permit = None;
        while let Some(chunk) = response.chunk().await.map_err(|error| transport(&error))? {
            let length = body.len().saturating_add(chunk.len());
            if length > self.limits.large_body {
                return Err(too_large(self.limits.large_body));
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

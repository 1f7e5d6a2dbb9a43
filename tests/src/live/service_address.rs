//! The address of a supervisor's Service, from inside and outside the cluster's network.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Live;
use super::forward::Forward;
use crate::cluster::a2a_client::{CALLERS, Client};
use crate::cluster::objects::SERVICES;
use crate::resumable_stream::Endpoint;
use crate::stream::Answer;
use crate::supervisor::until;

/// How long one attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(1);

/// An endpoint, and the port forwarding that keeps it reachable.
#[derive(Debug)]
pub struct ServiceAddress {
    pub endpoint: Endpoint,
    _forward: Option<Forward>,
}

/// Whether this process is in the cluster's network, so that addresses of Services and pods lead there.
pub fn is_inside() -> bool {
    std::env::var_os("CAIPE_E2E_INSIDE").is_some_and(|value| value == "1")
}

impl Live {
    /// The address of a supervisor's Service, which outlives its pods.
    pub async fn service_address(&self, supervisor: &str) -> Result<ServiceAddress> {
        let mut address = self.port_address(supervisor, 8000).await?;
        address.endpoint.key = Some(self.key(supervisor, CALLERS).await?);
        Ok(address)
    }

    pub async fn port_address(&self, service: &str, port: u16) -> Result<ServiceAddress> {
        let forward = if is_inside() { None } else { Some(Forward::to(self, service, port)?) };
        let address = if let Some(forward) = &forward {
            format!("127.0.0.1:{}", forward.port)
        } else {
            let found = self.get(SERVICES, service).await?.context("there is no Service")?;
            let address = found["spec"]["clusterIP"].as_str().context("the Service has no address")?;
            format!("{address}:{port}")
        };
        // Load balancers learn of a pod later than other clients of the API. A connection that was begun before they knew the
        // address stays without an answer for minutes, so each attempt is short.
        let open = async || {
            let connecting = tokio::net::TcpStream::connect(&address);
            Ok(tokio::time::timeout(ATTEMPT, connecting).await.is_ok_and(|opened| opened.is_ok()))
        };
        until(&format!("{service} takes connections"), open).await?;
        Ok(ServiceAddress {
            endpoint: Endpoint::from(format!("http://{address}/").as_str()),
            _forward: forward,
        })
    }

    /// The whole answer of a supervisor to a text; it must satisfy all invariants.
    pub async fn ask(&self, supervisor: &str, text: &str) -> Result<Answer> {
        let address = self.service_address(supervisor).await?;
        Client::at(address.endpoint.clone())?.ask(text).await
    }
}

//! Where people ask a supervisor: at its Service.

use anyhow::{Context, Result};

use super::Live;
use super::forward::Forward;
use crate::cluster::objects::SERVICES;
use crate::cluster::people::{CALLERS, Client};
use crate::numbered::Place;
use crate::stream::Answer;
use crate::supervisor::until;

/// A place, and what keeps the way to it open.
#[derive(Debug)]
pub struct Way {
    /// The place at the end of it.
    pub place: Place,
    _forward: Option<Forward>,
}

/// Whether this process is in the cluster's network, so that addresses of Services and pods lead there.
pub fn is_inside() -> bool {
    std::env::var_os("CAIPE_E2E_INSIDE").is_some_and(|value| value == "1")
}

impl Live {
    /// The way to a supervisor's Service, which outlives its pods.
    pub async fn way(&self, supervisor: &str) -> Result<Way> {
        let mut way = self.way_to(supervisor, 8000).await?;
        way.place.key = Some(self.key(supervisor, CALLERS).await?);
        Ok(way)
    }

    /// The way to a port of a Service.
    pub async fn way_to(&self, service: &str, port: u16) -> Result<Way> {
        let forward = if is_inside() { None } else { Some(Forward::to(self, service, port)?) };
        let address = if let Some(forward) = &forward {
            format!("127.0.0.1:{}", forward.port)
        } else {
            let found = self.get(SERVICES, service).await?.context("there is no Service")?;
            let address = found["spec"]["clusterIP"].as_str().context("the Service has no address")?;
            format!("{address}:{port}")
        };
        // Those who balance load hear of a pod a moment later than others.
        let open = async || Ok(tokio::net::TcpStream::connect(&address).await.is_ok());
        until(&format!("{service} takes connections"), open).await?;
        Ok(Way { place: Place::from(format!("http://{address}/").as_str()), _forward: forward })
    }

    /// The whole answer of a supervisor to a text; it must satisfy all invariants.
    pub async fn ask(&self, supervisor: &str, text: &str) -> Result<Answer> {
        let way = self.way(supervisor).await?;
        Client::at(way.place.clone())?.ask(text).await
    }
}

//! From names to addresses that passed the screen.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::screen::Screen;

/// Resolves names.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    /// All addresses of a name.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolves names as the system does.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// What hyper asks right before it connects, and whose answer it connects to. It does not ask for addresses that
/// are written out; those must be checked with the URL.
pub(super) struct Screened(pub(super) Screen);

impl Resolve for Screened {
    fn resolve(&self, name: Name) -> Resolving {
        let screen = self.0.clone();
        Box::pin(async move {
            let addresses = screen.resolve(name.as_str()).await?;
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

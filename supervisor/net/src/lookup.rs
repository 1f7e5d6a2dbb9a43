//! Name resolution.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

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

//! Decides which URLs and addresses may be reached.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use url::{Host, Url};

use crate::address::Special;
use crate::allow_list::{AllowList, NameMatch};
use crate::lookup::{Lookup, SystemLookup};

/// Why a URL or an address is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheme is neither http nor https.
    #[error("the scheme must be http or https")]
    Scheme,
    /// The URL has credentials, which would reach logs.
    #[error("a URL must not contain a user name or password")]
    UserInfo,
    /// The URL has no host.
    #[error("the URL has no host")]
    NoHost,
    /// A name of this machine or its cloud.
    #[error("{0} is a name of this machine or its cloud, which is not allowed")]
    Name(String),
    /// A name that is allowed on other ports only.
    #[error("{0} is allowed on other ports only")]
    Port(String),
    /// A host that is not listed, where only listed hosts are allowed.
    #[error("{0} is not on the list of allowed addresses")]
    Unlisted(String),
    /// An address that is not public.
    #[error("{address} is {special}, which is not allowed")]
    Address {
        address: IpAddr,
        /// Why it is not public.
        special: Special,
    },
}

/// Rejects URLs and addresses that are neither public nor on the [`AllowList`].
#[derive(Clone)]
pub struct Screen {
    allow: Arc<AllowList>,
    /// Whether public addresses must be listed too.
    only_listed: bool,
    lookup: Arc<dyn Lookup>,
}

impl Default for Screen {
    fn default() -> Self {
        Self::new(AllowList::default())
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("allow", &self.allow).finish_non_exhaustive()
    }
}

impl Screen {
    /// A screen with exceptions, which resolves names as the system does.
    pub fn new(allow: AllowList) -> Self {
        Self { allow: Arc::new(allow), only_listed: false, lookup: Arc::new(SystemLookup) }
    }

    /// Allows listed hosts only. A listed network applies to addresses in URLs.
    #[must_use]
    pub fn only_listed(self) -> Self {
        Self { only_listed: true, ..self }
    }

    /// Resolves names with this lookup.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// Checks a URL without resolving its host.
    ///
    /// # Errors
    /// If it is no HTTP URL, contains credentials, or has a host that is not allowed.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        match url.host() {
            None => Err(Refusal::NoHost),
            Some(Host::Ipv4(address)) => self.check_address(address.into(), port),
            Some(Host::Ipv6(address)) => self.check_address(address.into(), port),
            Some(Host::Domain(name)) => self.check_name(name, port),
        }
    }

    fn check_address(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        if self.allow.allows_on_port(address, port) {
            return Ok(());
        }
        check_public(address)?;
        if self.only_listed { Err(Refusal::Unlisted(address.to_string())) } else { Ok(()) }
    }

    fn check_name(&self, name: &str, port: u16) -> Result<(), Refusal> {
        match self.allow.match_name(name, port) {
            // A listed name is internal, so its other ports stay closed.
            NameMatch::OtherPort => Err(Refusal::Port(name.to_owned())),
            NameMatch::Unlisted if is_own_name(name) => Err(Refusal::Name(name.to_owned())),
            NameMatch::Unlisted if self.only_listed => Err(Refusal::Unlisted(name.to_owned())),
            NameMatch::Allowed | NameMatch::Unlisted => Ok(()),
        }
    }

    /// The addresses of a name. One address that is not allowed rejects the name: an honest name does not mix public
    /// and private addresses.
    pub(super) async fn resolve(
        &self,
        name: &str,
    ) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let addresses = self.lookup.lookup(name).await?;
        // `check_url` has checked the port.
        if !self.allow.lists_name(name) {
            for address in addresses.iter().filter(|address| !self.allow.allows(**address)) {
                check_public(*address)?;
            }
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect())
    }
}

fn check_public(address: IpAddr) -> Result<(), Refusal> {
    Special::of(address).map_or(Ok(()), |special| Err(Refusal::Address { address, special }))
}

/// Whether a name always means this machine (RFC 6761) or the metadata service of its cloud.
fn is_own_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    matches!(name, "localhost" | "localhost.localdomain" | "metadata.google.internal" | "instance-data")
        || name.ends_with(".localhost")
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;

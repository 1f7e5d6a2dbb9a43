//! What may be reached on a stranger's word.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use url::{Host, Url};

use super::address::{Special, check};
use super::allow::{AllowList, Named};
use super::client::{Client, Redirects};
use super::resolve::{Lookup, Screened, SystemLookup};

/// Why something is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Neither http nor https.
    #[error("the scheme must be http or https")]
    Scheme,
    /// Credentials in the URL, which end up in logs.
    #[error("a user name or password in a URL is not taken; name them apart from it")]
    UserInfo,
    /// No host.
    #[error("a host is needed")]
    NoHost,
    /// A name that always means this machine or this cloud.
    #[error("{0} is a name of this machine or its cloud, which is not reached for others")]
    Name(String),
    /// A name that is allowed on other ports only.
    #[error("{0} is reached on the ports only that it is allowed for")]
    Port(String),
    /// What nobody has allowed, where only what is allowed is reached.
    #[error("{0} is not on the list of allowed addresses")]
    Unlisted(String),
    /// An address that is not public.
    #[error("{address} is {special}, which is not reached for others")]
    Address {
        /// The address.
        address: IpAddr,
        /// What it is.
        special: Special,
    },
}

/// Refuses URLs and addresses that are not public, but for those that are allowed by name.
#[derive(Clone)]
pub struct Screen {
    allow: Arc<AllowList>,
    /// Whether what is public must be allowed too.
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
    /// A screen with exceptions. Names are resolved as the system does.
    pub fn new(allow: AllowList) -> Self {
        Self { allow: Arc::new(allow), only_listed: false, lookup: Arc::new(SystemLookup) }
    }

    /// Lets pass only what is allowed by name. A network on the list stands for the addresses that URLs write out.
    #[must_use]
    pub fn only_listed(self) -> Self {
        Self { only_listed: true, ..self }
    }

    /// Resolves names in another way.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// Whether a URL may be asked, as far as that shows without resolving its host's name.
    ///
    /// # Errors
    /// When it is no HTTP URL, names credentials, or its host is one that must not be reached.
    pub fn url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        match url.host() {
            None => Err(Refusal::NoHost),
            Some(Host::Ipv4(address)) => self.literal(address.into(), port),
            Some(Host::Ipv6(address)) => self.literal(address.into(), port),
            Some(Host::Domain(name)) => self.name(name, port),
        }
    }

    fn literal(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        if self.allow.literal(address, port) {
            return Ok(());
        }
        check(address)?;
        if self.only_listed { Err(Refusal::Unlisted(address.to_string())) } else { Ok(()) }
    }

    fn name(&self, name: &str, port: u16) -> Result<(), Refusal> {
        match self.allow.name(name, port) {
            // What is on the list is known to be inside: other ports must not slip through with it.
            Named::OtherPort => Err(Refusal::Port(name.to_owned())),
            Named::Unlisted if is_own_name(name) => Err(Refusal::Name(name.to_owned())),
            Named::Unlisted if self.only_listed => Err(Refusal::Unlisted(name.to_owned())),
            Named::Allowed | Named::Unlisted => Ok(()),
        }
    }

    /// The addresses of a name. One that must not be reached spoils them all: an honest name has no such
    /// address beside its public ones.
    pub(super) async fn resolve(
        &self,
        name: &str,
    ) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let addresses = self.lookup.lookup(name).await?;
        // The port was seen to by `url`, which every request passes first.
        if !self.allow.name_on_any_port(name) {
            for address in addresses.iter().filter(|address| !self.allow.address(**address)) {
                check(*address)?;
            }
        }
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect())
    }

    /// A client that asks this screen for everything. It knows no proxy: that would do the connecting.
    ///
    /// # Errors
    /// When the system has no TLS to offer.
    pub fn client(&self, redirects: Redirects) -> Result<Client, reqwest::Error> {
        Client::new(self.clone(), redirects)
    }

    /// An HTTP client for [`A2aClient`](crate::client::A2aClient) that connects to no address that was not screened.
    /// It follows redirects within an origin only. Whoever uses it asks [`Self::url`] for the agent's address first:
    /// one that is written out is not resolved.
    ///
    /// # Errors
    /// When the system has no TLS to offer.
    pub fn agent_client(&self) -> Result<reqwest::Client, reqwest::Error> {
        let builder = crate::client::http_builder().no_proxy().referer(false);
        builder.dns_resolver(Screened(self.clone())).build()
    }
}

/// Names that need no resolver to mean this machine (RFC 6761), or the metadata service of its cloud.
fn is_own_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    matches!(name, "localhost" | "localhost.localdomain" | "metadata.google.internal" | "instance-data")
        || name.ends_with(".localhost")
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;

//! An HTTP client whose requests are screened.

use std::error::Error;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder};
use url::Url;

use crate::screen::{Refusal, Screen};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a client handles redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Returns the redirect as the response.
    Return,
    /// Follows up to this many redirects to URLs that the screen allows.
    Follow(u8),
}

/// An HTTP client that connects only to URLs and addresses that its [`Screen`] allows. It uses no proxy, because a proxy
/// would connect to addresses that were not checked.
#[derive(Debug, Clone)]
pub struct Client {
    screen: Screen,
    http: reqwest::Client,
}

impl Client {
    /// A client with this screen.
    ///
    /// # Errors
    /// If the system offers no TLS.
    pub fn new(screen: Screen, redirects: Redirects) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(policy(screen.clone(), redirects))
            .dns_resolver(ScreenedResolver(screen.clone()))
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("caipe/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { screen, http })
    }

    /// A request.
    ///
    /// # Errors
    /// If the screen rejects the URL.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Refusal> {
        self.screen.check_url(&url)?;
        Ok(self.http.request(method, url))
    }
}

fn policy(screen: Screen, redirects: Redirects) -> Policy {
    let Redirects::Follow(most) = redirects else { return Policy::none() };
    Policy::custom(move |attempt| {
        // The first previous URL is the request's own.
        if attempt.previous().len() > usize::from(most) {
            return attempt.error("too many redirects");
        }
        match screen.check_url(attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(refusal) => attempt.error(refusal),
        }
    })
}

/// Resolves names to addresses that the screen allows. An address in a URL needs no resolver: check it with
/// [`Screen::check_url`].
pub struct ScreenedResolver(pub Screen);

impl Resolve for ScreenedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let screen = self.0.clone();
        Box::pin(async move {
            let addresses: Addrs = Box::new(screen.resolve(name.as_str()).await?.into_iter());
            Ok(addresses)
        })
    }
}

/// The screen's refusal, if it is the reason why a request failed.
pub fn refusal(error: &reqwest::Error) -> Option<&Refusal> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref() {
            return Some(refusal);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

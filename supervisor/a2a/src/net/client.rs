//! An HTTP client that is screened.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder};
use url::Url;

use super::resolve::Screened;
use super::screen::{Refusal, Screen};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What to do when an answer points elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Take it for the answer.
    Keep,
    /// Ask there, at most so many times, if the screen lets that pass.
    Follow(u8),
}

/// An HTTP client that asks its [`Screen`] before each request and each redirect, and connects to no address that
/// was not screened.
#[derive(Debug, Clone)]
pub struct Client {
    screen: Screen,
    http: reqwest::Client,
}

impl Client {
    pub(super) fn new(screen: Screen, redirects: Redirects) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(policy(screen.clone(), redirects))
            .dns_resolver(Screened(screen.clone()))
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("caipe-a2a/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { screen, http })
    }

    /// A request.
    ///
    /// # Errors
    /// When the URL does not pass the screen.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Refusal> {
        self.screen.url(&url)?;
        Ok(self.http.request(method, url))
    }
}

fn policy(screen: Screen, redirects: Redirects) -> Policy {
    let Redirects::Follow(most) = redirects else { return Policy::none() };
    Policy::custom(move |attempt| {
        // The first of those before is the request itself.
        if attempt.previous().len() > usize::from(most) {
            return attempt.error("too many redirects");
        }
        match screen.url(attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(refusal) => attempt.error(refusal),
        }
    })
}

/// The screen's refusal, if that is why a request failed.
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

//! Whom the tools may ask: registered agents by name, others at URLs that are allowed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use caipe_a2a::client::{CardCache, http_builder};
use caipe_crds::rendered::RenderedAgent;
use caipe_engine::AgentName;
use caipe_net::{AllowListError, Screen, ScreenedResolver};
use url::Url;

use crate::config::{Settings, a2a_screen};
use crate::remote::{RemoteBackend, RemoteTarget, displayed_url, remote_target};

/// Most characters of a name or an address that a model made up, in an error.
const SHOWN: usize = 80;

/// The tools that ask agents of others, and whom they may ask.
#[derive(Debug)]
pub struct A2aTools {
    registered: BTreeMap<String, Registered>,
    screen: Screen,
    http: reqwest::Client,
    cards: Arc<CardCache>,
    silence: Duration,
}

/// An agent that is known by name.
#[derive(Debug)]
pub(super) struct Registered {
    /// Where it is, for people: without credentials.
    pub(super) url: String,
    /// What it does.
    pub(super) description: String,
    /// How it is asked, or why it cannot be.
    remote: Result<Arc<RemoteBackend>, String>,
}

/// Whom a call goes to.
pub(super) struct Callee {
    pub(super) name: AgentName,
    pub(super) remote: Arc<RemoteBackend>,
    /// Whether it may know the user's identity: the resource registers it.
    pub(super) is_known: bool,
}

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub enum A2aToolsError {
    /// The list of allowed addresses cannot be read.
    #[error(transparent)]
    Allow(#[from] AllowListError),
    /// No HTTP client.
    #[error("failed to make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

impl A2aTools {
    /// The tools of a specification; nothing if it has none. Registered agents are asked by way of `http`, and their
    /// cards are stored in `cards`; their secrets are read now.
    ///
    /// # Errors
    /// When there can be no client that asks only who may be asked.
    pub fn new(
        settings: &Settings,
        http: &reqwest::Client,
        cards: &Arc<CardCache>,
    ) -> Result<Option<Self>, A2aToolsError> {
        let Some(tools) = &settings.spec.a2a else { return Ok(None) };
        let silence = Duration::from_millis(settings.spec.limits.agent_timeout_ms);
        let known = settings.spec.agents.iter().filter(|agent| tools.agents.contains(&agent.name));
        let register = |agent: &RenderedAgent| {
            let target = remote_target(agent, &settings.env, silence);
            let known = Registered {
                url: target.as_ref().map(|target| displayed_url(&target.url)).unwrap_or_default(),
                description: agent.description.clone(),
                remote: target.map(|target| RemoteBackend::external(target, http.clone(), cards.clone())),
            };
            (agent.name.clone(), known)
        };
        let registered = known.map(register).collect();
        let screen = a2a_screen(&tools.allow)?;
        // Calls without credentials to unlisted addresses use a client of their own.
        let resolver = ScreenedResolver(screen.clone());
        let http = http_builder().no_proxy().referer(false).dns_resolver(resolver).build()?;
        Ok(Some(Self { registered, http, screen, cards: Arc::default(), silence }))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.registered.keys().map(String::as_str)
    }

    pub(super) const fn registered(&self) -> &BTreeMap<String, Registered> {
        &self.registered
    }

    /// Whom a name or a URL means.
    ///
    /// # Errors
    /// Why nobody is asked, for the model.
    pub(super) fn callee(&self, agent: &str) -> Result<Callee, String> {
        let name = agent.trim().to_lowercase();
        if let Some(known) = self.registered.get(&name) {
            let remote = known.remote.clone().map_err(|reason| format!("ERROR: agent {name}: {reason}"))?;
            return Ok(Callee { name: AgentName::new(&name), remote, is_known: true });
        }
        if !agent.contains("://") {
            return Err(self.unknown(agent));
        }
        let shown = quoted(agent);
        let url: Url = agent.parse().map_err(|error| format!("failed to read the URL {shown}: {error}."))?;
        self.screen
            .check_url(&url)
            .map_err(|refusal| format!("The URL is not asked: {refusal}. {}", self.known()))?;
        let name = AgentName::new(&authority(&url));
        let target = RemoteTarget {
            name: name.clone(),
            url,
            headers: HeaderMap::new(),
            silence: self.silence,
            require_approval: Vec::new(),
        };
        let remote = RemoteBackend::external(target, self.http.clone(), Arc::clone(&self.cards));
        Ok(Callee { name, remote, is_known: false })
    }

    fn unknown(&self, agent: &str) -> String {
        format!("There is no registered agent {}. {}", quoted(agent), self.known())
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.names().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("The registered agents are: {names}.")
    }
}

/// Host and port of a URL, by which a stranger goes here.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;

//! The agents that the tools may call: registered agents by name, others at allowed URLs.

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

/// The characters of a name or URL from the model that an error quotes.
const QUOTED_CHARS: usize = 80;

/// The tools that call third-party agents, and the agents that they may call.
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
    pub(super) url: String,
    pub(super) description: String,
    /// The reason if its registration is not usable.
    remote: Result<Arc<RemoteBackend>, String>,
}

/// The agent that receives a call.
pub(super) struct TargetAgent {
    pub(super) name: AgentName,
    pub(super) remote: Arc<RemoteBackend>,
    /// A registered agent may know the user's identity.
    pub(super) is_registered: bool,
}

/// The tools cannot be built.
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
    /// The tools of a specification; `None` if it has none. Registered agents use `http` and `cards`; their secrets are read now.
    ///
    /// # Errors
    /// When the allow list is invalid or the HTTP client cannot be built.
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

    /// The agent of a name or a URL.
    ///
    /// # Errors
    /// The reason, for the model.
    pub(super) fn target(&self, agent: &str) -> Result<TargetAgent, String> {
        let name = agent.trim().to_lowercase();
        if let Some(known) = self.registered.get(&name) {
            let remote = known.remote.clone().map_err(|reason| format!("ERROR: agent {name}: {reason}"))?;
            return Ok(TargetAgent { name: AgentName::new(&name), remote, is_registered: true });
        }
        if !agent.contains("://") {
            return Err(self.unknown(agent));
        }
        let shown = quoted(agent);
        let url: Url = agent.parse().map_err(|error| format!("failed to read the URL {shown}: {error}."))?;
        self.screen
            .check_url(&url)
            .map_err(|refusal| format!("The URL is not allowed: {refusal}. {}", self.known()))?;
        let name = AgentName::new(&authority(&url));
        let target = RemoteTarget {
            name: name.clone(),
            url,
            headers: HeaderMap::new(),
            silence: self.silence,
            require_approval: Vec::new(),
        };
        let remote = RemoteBackend::external(target, self.http.clone(), Arc::clone(&self.cards));
        Ok(TargetAgent { name, remote, is_registered: false })
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

/// Host and port of a URL, which name an unregistered agent.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(QUOTED_CHARS).collect::<String>())
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;

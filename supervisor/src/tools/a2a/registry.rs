//! Whom the tools may ask: registered agents by name, others at URLs that are allowed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use caipe_a2a::client::{CardCache, http_builder};
use caipe_a2a::net::{AllowList, AllowListError, Screen};
use caipe_crds::rendered::{self, Home, RenderedAgent};
use caipe_engine::AgentName;
use url::Url;

use crate::agents::{Remote, RemoteTarget};
use crate::config::{Environment, Settings};
use crate::mcp::{TemplateError, fill};
use crate::secrets::with_secrets;

/// In the list of allowed addresses: every public one.
const PUBLIC: &str = "*";

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
    remote: Arc<Remote>,
}

/// Whom a call goes to.
pub(super) struct Callee {
    pub(super) name: AgentName,
    pub(super) remote: Arc<Remote>,
    /// Whether it may know who the user is: whoever runs this has registered it.
    pub(super) is_known: bool,
}

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub enum A2aToolsError {
    /// The list of allowed addresses cannot be read.
    #[error("failed to read spec.a2a.allow or $CAIPE_A2A_ALLOW: {0}")]
    Allow(#[from] AllowListError),
    /// A registered agent has no usable address.
    #[error("failed to register agent {agent}: its address cannot be read: {reason}")]
    Address {
        /// The agent.
        agent: String,
        /// Why.
        reason: String,
    },
    /// A registered agent's header cannot be made.
    #[error("failed to register agent {agent}: failed to make the header {header}: {reason}")]
    Header {
        /// The agent.
        agent: String,
        /// The header.
        header: String,
        /// Why; never its value.
        reason: String,
    },
    /// No HTTP client.
    #[error("failed to make an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

impl A2aTools {
    /// The tools of a specification; nothing if it has none. The agents' secrets are read now.
    ///
    /// # Errors
    /// When something that was configured cannot be used.
    pub fn new(settings: &Settings) -> Result<Option<Arc<Self>>, A2aToolsError> {
        let Some(tools) = &settings.spec.a2a else { return Ok(None) };
        let screen = screen(&tools.allow)?;
        let (cards, silence) = (Arc::default(), Duration::from_millis(settings.spec.limits.agent_timeout_ms));
        let shared = Shared { http: http_builder().build()?, cards: Arc::clone(&cards), silence };
        let registered = registered(&settings.spec.agents, tools, &settings.env, &shared)?;
        let http = screen.agent_client()?;
        // What strangers are asked for, without credentials, is kept apart from what friends are.
        Ok(Some(Arc::new(Self { registered, screen, http, cards: Arc::default(), silence })))
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
            let remote = Arc::clone(&known.remote);
            return Ok(Callee { name: AgentName::new(&name), remote, is_known: true });
        }
        if !agent.contains("://") {
            return Err(self.unknown(agent));
        }
        let shown = shown(agent);
        let url: Url = agent.parse().map_err(|error| format!("failed to read the URL {shown}: {error}."))?;
        self.screen
            .url(&url)
            .map_err(|refusal| format!("The URL is not asked: {refusal}. {}", self.known()))?;
        let name = AgentName::new(&authority(&url));
        let target =
            RemoteTarget { name: name.clone(), url, headers: HeaderMap::new(), silence: self.silence };
        let remote = Remote::external(target, self.http.clone(), Arc::clone(&self.cards));
        Ok(Callee { name, remote, is_known: false })
    }

    fn unknown(&self, agent: &str) -> String {
        format!("There is no registered agent {}. {}", shown(agent), self.known())
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.names().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("The registered agents are: {names}.")
    }
}

/// What the registered agents' connections share.
struct Shared {
    http: reqwest::Client,
    cards: Arc<CardCache>,
    silence: Duration,
}

fn registered(
    agents: &[RenderedAgent],
    tools: &rendered::A2aTools,
    env: &Environment,
    shared: &Shared,
) -> Result<BTreeMap<String, Registered>, A2aToolsError> {
    let mut registered = BTreeMap::new();
    for agent in agents.iter().filter(|agent| tools.agents.contains(&agent.name)) {
        let Home::Remote { url, headers } = &agent.home else { continue };
        let parsed: Url = url.parse().map_err(|error: url::ParseError| A2aToolsError::Address {
            agent: agent.name.clone(),
            reason: error.to_string(),
        })?;
        let env = with_secrets(env, agent.secrets_dir.as_deref());
        let headers = resolved(&agent.name, headers, &env)?;
        let name = AgentName::new(&agent.name);
        let target = RemoteTarget { name, url: parsed.clone(), headers, silence: shared.silence };
        let remote = Remote::external(target, shared.http.clone(), Arc::clone(&shared.cards));
        let known = Registered { url: public(parsed), description: agent.description.clone(), remote };
        registered.insert(agent.name.clone(), known);
    }
    Ok(registered)
}

/// The headers with their variables filled in.
fn resolved(
    agent: &str,
    templates: &BTreeMap<String, String>,
    env: &Environment,
) -> Result<HeaderMap, A2aToolsError> {
    let mut headers = HeaderMap::new();
    for (name, template) in templates {
        let fault =
            |reason: String| A2aToolsError::Header { agent: agent.to_owned(), header: name.clone(), reason };
        let value = fill(template, env).map_err(|error: TemplateError| fault(error.to_string()))?;
        let unfit = |_| fault("it holds characters that HTTP does not allow".to_owned());
        let mut value = HeaderValue::from_str(value.trim()).map_err(unfit)?;
        value.set_sensitive(true);
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| fault("its name is none that HTTP allows".to_owned()))?;
        headers.insert(key, value);
    }
    Ok(headers)
}

/// What URLs may be asked. `*` is every public address; without it, only what is listed.
fn screen(allow: &[String]) -> Result<Screen, AllowListError> {
    let (public, listed): (Vec<&str>, Vec<&str>) =
        allow.iter().map(String::as_str).partition(|entry| *entry == PUBLIC);
    let screen = Screen::new(listed.join(",").parse::<AllowList>()?);
    Ok(if public.is_empty() { screen.only_listed() } else { screen })
}

/// Host and port of a URL, by which a stranger goes here.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The URL without what may be secret in it.
fn public(mut url: Url) -> String {
    // A URL that cannot have a user has none.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.to_string()
}

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;

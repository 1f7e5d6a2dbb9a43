//! The agents that the tools may call: registered agents by name, others at allowed URLs.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use caipe_a2a::client::{CardCache, http_builder};
use caipe_crds::rendered::{self, Placement, RenderedAgent};
use caipe_engine::AgentName;
use caipe_net::{AllowListError, Screen, ScreenedResolver};
use url::Url;

use super::tool_specs;
use crate::builtin::OfferedTool;
use crate::config::{Settings, a2a_screen};
use crate::remote::{RemoteBackend, RemoteTarget, displayed_url, remote_target};

/// The characters of a name or URL from the model that an error quotes.
const QUOTED_CHARS: usize = 80;

/// The tools that call third-party agents, and the agents that they may call.
#[derive(Debug)]
pub struct A2aTools {
    /// What the model reads about the tools.
    pub(in crate::tools) offered: Arc<[OfferedTool]>,
    registered: BTreeMap<String, Registered>,
    /// The addresses of remote agents of the specification, and the approvals that each requires.
    guarded: Vec<(Url, Vec<String>)>,
    /// The ids of the tasks that are being answered.
    answering: Arc<Mutex<HashSet<String>>>,
    screen: Screen,
    http: reqwest::Client,
    cards: Arc<CardCache>,
    silence: Duration,
}

/// The exclusive right to answer a task, until it is dropped.
#[derive(Debug)]
pub(super) struct AnswerPermit {
    answering: Arc<Mutex<HashSet<String>>>,
    task: String,
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.task);
    }
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
    /// The tools of the supervisor or of an agent. Registered agents use `http` and `cards`; their secrets are read now.
    ///
    /// # Errors
    /// When the allow list is invalid or the HTTP client cannot be built.
    pub fn new(
        tools: &rendered::A2aTools,
        settings: &Settings,
        http: &reqwest::Client,
        cards: &Arc<CardCache>,
    ) -> Result<Self, A2aToolsError> {
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
        let registered: BTreeMap<_, _> = known.map(register).collect();
        let names: Vec<&str> = registered.keys().map(String::as_str).collect();
        let offered = tool_specs::offered(&names).collect();
        let guarded = settings.spec.agents.iter().filter_map(guarded_address).collect();
        let screen = a2a_screen(&tools.allow)?;
        // Calls without credentials to unlisted addresses use a client of their own.
        let resolver = ScreenedResolver(screen.clone());
        let http = http_builder().no_proxy().referer(false).dns_resolver(resolver).build()?;
        let (answering, cards) = (Arc::default(), Arc::default());
        Ok(Self { offered, registered, guarded, answering, screen, http, cards, silence })
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
            require_approval: self.approvals_at(&url),
            client_tools: None,
            url,
            headers: HeaderMap::new(),
            silence: self.silence,
        };
        let remote = RemoteBackend::external(target, self.http.clone(), Arc::clone(&self.cards));
        Ok(TargetAgent { name, remote, is_registered: false })
    }

    /// The right to answer a task; `None` while another call has it. Otherwise that call could answer a question, and this one
    /// the approval that the task requires next.
    pub(super) fn answer_permit(&self, task: &str) -> Option<AnswerPermit> {
        let task = task.to_owned();
        let is_free = self.answering.lock().unwrap_or_else(PoisonError::into_inner).insert(task.clone());
        is_free.then(|| AnswerPermit { answering: self.answering.clone(), task })
    }

    /// The approvals that the specification requires of its remote agents at this address.
    fn approvals_at(&self, url: &Url) -> Vec<String> {
        let place = |url: &Url| (url.host_str().map(str::to_lowercase), url.port_or_known_default());
        let here = self.guarded.iter().filter(|(guarded, _)| place(guarded) == place(url));
        here.flat_map(|(_, patterns)| patterns.clone()).collect()
    }

    fn unknown(&self, agent: &str) -> String {
        format!("There is no registered agent {}. {}", quoted(agent), self.known())
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.registered.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("The registered agents are: {names}.")
    }
}

/// The address of a remote agent whose calls need approval, and the patterns.
fn guarded_address(agent: &RenderedAgent) -> Option<(Url, Vec<String>)> {
    let Placement::Remote { url, .. } = &agent.placement else { return None };
    let patterns = Some(&agent.require_approval).filter(|patterns| !patterns.is_empty())?;
    Some((url.parse().ok()?, patterns.clone()))
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

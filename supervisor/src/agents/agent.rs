//! An agent that this process runs: its words, its model, its tools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::RenderedSpec;
use caipe_crds::prompt::AgentLine;
use caipe_crds::rendered;
use caipe_engine::{Abilities, AgentName, AnswerMode, Limits, Resume, RunState, builtin_tools};
use caipe_model::{ChatModel, ChatRequest, ToolSpec};

use tokio_util::sync::CancellationToken;

use super::approvals;
use super::briefing::{Briefing, Briefings};
use super::changes::Changes;
use super::directory::{Directory, Listing};
use super::home::Home;
use super::prompt::{supervisor_prompt, worker_prompt};
use crate::mcp::{ServerPhase, ServerStatus, Toolbox, ToolsView};
use crate::tools::A2aTools;

/// How long a task waits for the agent's tool servers to start.
const SETTLE_DEADLINE: Duration = Duration::from_secs(15);

/// An agent that this process runs.
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// Its name for people.
    pub title: String,
    /// What it is for, for people and for the model that delegates.
    pub description: String,
    /// A worker's own system prompt; the supervisor's comes from its [`Role`].
    pub prompt: String,
    /// What it is in the house.
    pub role: Role,
    /// Its model.
    pub model: Arc<dyn ChatModel>,
    /// Its MCP tools. Agents that follow one another share them where they are the same.
    pub toolbox: Arc<Toolbox>,
    /// The tools that ask agents of others, if it has them.
    pub a2a: Option<Arc<A2aTools>>,
    /// Whether its words are told while the model says them, or when it has said them all
    /// (`ENABLE_STREAMING`).
    pub streaming: bool,
    /// The limits of its runs.
    pub limits: Limits,
    /// Tools that a human must approve first.
    pub require_approval: Vec<String>,
    /// What its model was told last.
    pub briefings: Briefings,
}

/// What an agent is in the house.
pub enum Role {
    /// It talks to the user and delegates.
    Supervisor {
        /// What it is told to be.
        spec: Arc<RenderedSpec>,
        /// Whom it may ask, and where they live.
        directory: Arc<Directory>,
    },
    /// It works for the supervisor.
    Worker,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// What it may do right now, in a run in which a human must approve the tools of these patterns too.
    pub fn abilities(&self, demanded: &[String]) -> Abilities {
        let view = self.toolbox.view();
        Abilities {
            // Of its servers, and of the edge what not every agent has: a name in here takes the place of a built-in
            // tool.
            tools: view.tools.iter().map(|tool| tool.name.clone()).chain(self.a2a_tools()).collect(),
            agents: self.listing().keys().cloned().collect(),
            require_approval: approvals::resolved(self.require_approval.iter().chain(demanded), &view),
            answer: match &self.role {
                Role::Supervisor { spec, .. } => answer_mode(spec.answer_mode),
                Role::Worker => AnswerMode::Plain,
            },
            forms: matches!(self.role, Role::Supervisor { .. }),
            limits: self.limits.clone(),
        }
    }

    /// What is wrong with it, a line each: tool servers that are away, approvals that guard nothing.
    pub fn faults(&self) -> Vec<String> {
        let view = self.toolbox.view();
        let away =
            |server: &&ServerStatus| matches!(server.phase, ServerPhase::Failed | ServerPhase::Restarting);
        let told = |server: &ServerStatus| {
            format!("{}: {}", server.name, server.message.as_deref().unwrap_or("not available"))
        };
        let away = view.servers.iter().filter(away).map(told);
        away.chain(approvals::unmatched(&self.require_approval, &view)).collect()
    }

    /// Logs the approvals that guard nothing, once its tools are known.
    pub(super) fn warn_when_settled(&self) {
        let (mut tools, patterns) = (self.toolbox.watch(), self.require_approval.clone());
        if patterns.is_empty() {
            return;
        }
        let name = self.name.clone();
        tokio::spawn(async move {
            let Ok(view) = tools.wait_for(|view| view.settled).await.map(|view| view.clone()) else { return };
            for warning in approvals::unmatched(&patterns, &view) {
                tracing::warn!(agent = %name, "{warning}");
            }
        });
    }

    /// Waits until its tool servers are ready or have failed once, but not for long: an agent without tools can
    /// still say so.
    pub async fn settled(&self, cancel: &CancellationToken) {
        let mut tools = self.toolbox.watch();
        let settled = tools.wait_for(|view| view.settled);
        tokio::select! {
            _ = tokio::time::timeout(SETTLE_DEADLINE, settled) => {}
            () = cancel.cancelled() => {}
        }
    }

    /// Where a delegation to another agent goes.
    pub fn home(&self, agent: &AgentName, resume: Option<&Resume>) -> Option<Arc<dyn Home>> {
        self.directory()?.home_for(agent, resume)
    }

    /// News of what it may do, from now on.
    pub fn changes(&self) -> Changes {
        Changes::since_now(self.toolbox.watch(), self.directory().map(Directory::watch))
    }

    fn a2a_tools(&self) -> impl Iterator<Item = String> {
        self.a2a.iter().flat_map(|_| A2aTools::tools()).map(str::to_owned)
    }

    fn listing(&self) -> Arc<Listing> {
        self.directory().map(Directory::listing).unwrap_or_default()
    }

    fn directory(&self) -> Option<&Directory> {
        match &self.role {
            Role::Supervisor { directory, .. } => Some(directory),
            Role::Worker => None,
        }
    }

    /// What its model is asked next.
    pub fn request(&self, state: &RunState, tools: bool) -> ChatRequest {
        let (view, listing) = (self.toolbox.view(), self.listing());
        let make = || self.brief(&state.abilities, &view, &listing);
        let briefing = self.briefings.get((&view, &listing), &state.abilities, make);
        ChatRequest {
            system: briefing.system,
            messages: state.messages.clone(),
            tools: if tools { briefing.tools } else { Arc::default() },
            max_output_tokens: None,
            temperature: None,
        }
    }

    fn brief(&self, abilities: &Abilities, view: &ToolsView, listing: &Listing) -> Briefing {
        let system = match &self.role {
            Role::Supervisor { spec, .. } => supervisor_prompt(spec, &agent_lines(listing), &view.servers),
            Role::Worker => worker_prompt(self.name.as_str(), &self.prompt, &view.servers),
        };
        let own = self.a2a.as_ref().map(|a2a| a2a.specs()).unwrap_or_default();
        let own = own.into_iter().filter(|own| view.tools.iter().all(|served| served.name != own.name));
        let served: Vec<ToolSpec> = own.chain(view.tools.iter().cloned()).collect();
        Briefing { system: system.into(), tools: offered(abilities, &served) }
    }
}

fn agent_lines(listing: &Listing) -> Vec<AgentLine<'_>> {
    listing
        .iter()
        .map(|(name, entry)| AgentLine {
            name: name.as_str(),
            title: &entry.title,
            routing_hint: &entry.routing_hint,
        })
        .collect()
}

fn answer_mode(mode: rendered::AnswerMode) -> AnswerMode {
    match mode {
        rendered::AnswerMode::Structured => AnswerMode::Structured,
        rendered::AnswerMode::Marker => AnswerMode::Marker,
    }
}

/// The tools of the engine and of the servers, in one stable order.
fn offered(abilities: &Abilities, served: &[ToolSpec]) -> Arc<[ToolSpec]> {
    let mut specs = builtin_tools(abilities);
    specs.extend(served.iter().filter(|tool| abilities.tools.contains(&tool.name)).cloned());
    specs.into()
}

#[cfg(test)]
#[path = "agent_tests.rs"]
pub(super) mod tests;

//! An agent that this process runs: its prompt, its model, its tools.

mod approvals;
mod changes;
mod credentials;
mod delegates;
mod preamble;
mod prompt;
mod self_service;
mod tool_names;
mod tool_policy;
mod tool_rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::RenderedSpec;
use caipe_crds::internal_status::CredentialReport;
use caipe_crds::prompt::AgentLine;
use caipe_crds::rendered::{self, RenderedAgent, RenderedWorkspace};
use caipe_crds::resource::approver::Approver;
use caipe_crds::resource::tool_domains::{Verification, WorkspaceWrites};
use caipe_engine::{
    Abilities, AgentName, AnswerMode, ApprovedCall, Budget, FileWrites, Limits, Resume, RunState, ToolIndex,
    USER_INPUT_AGENT, builtin_tools,
};
use caipe_model::{ChatModel, ChatRequest, ToolSpec};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::builtin::{MEMORY_SEARCH, OfferedTool, OfferedTools, ToolClass};
use crate::delegation::{RunInfo, Scratchpad};
use crate::mcp::{ServerPhase, ServerStatus, ToolsView};
use crate::tools::ToolSources;

pub use changes::Changes;
pub(crate) use credentials::{credential_fault, credentials};
pub use delegates::{BackendLease, Delegate, Delegates, Listing, ListingEntry, PreviousPlacement, Sharing};
pub use preamble::PreambleCache;
use preamble::TurnPreamble;
use prompt::{after_note, summary_request, supervisor_prompt, worker_prompt};
pub use prompt::{own_prompt, whole_prompt};
pub use self_service::SelfService;
pub(crate) use tool_names::{NamedTools, unmatched};
pub use tool_policy::ToolPolicy;
pub use tool_rules::ToolRule;

/// How long a task waits for the agent's tool servers to start.
const SETTLE_DEADLINE: Duration = Duration::from_secs(15);

/// An agent that this process runs.
pub struct Agent {
    pub name: AgentName,
    /// Its name for people.
    pub title: String,
    /// What it is for, for people and for the model that delegates.
    pub description: String,
    /// A worker's own system prompt; the supervisor's comes from its [`Role`].
    pub prompt: String,
    /// What it does for the user.
    pub role: Role,
    pub model: Arc<dyn ChatModel>,
    /// The model that summarizes what no longer fits into the context, if one does.
    pub condenser: Option<Arc<dyn ChatModel>>,
    /// Where its tools come from.
    pub tools: ToolSources,
    /// Whether its text streams, or is sent once complete (`ENABLE_STREAMING`).
    pub streaming: bool,
    /// The limits of its runs.
    pub limits: Limits,
    /// Tools that need a person's approval.
    pub require_approval: Vec<String>,
    /// Those of them that a person may allow for the rest of a conversation.
    pub allow_always: Vec<String>,
    /// What it may do by itself.
    pub tool_policy: ToolPolicy,
    /// The budgets and sizes of its tools.
    pub tool_rules: Vec<ToolRule>,
    /// The tools that it is configured with and does not have, a sentence each.
    pub tool_faults: Vec<String>,
    /// Where it may write virtual files, if its model reads about its workspace and it shares files; else everywhere.
    pub workspace: Option<FileWrites>,
    /// How it verifies what it changes, if its runs must not end without it.
    pub verification: Option<Verification>,
    /// What one of its runs may use, apart from the budgets of its tools.
    pub budget: Budget,
    /// How long one of its runs may take, if it is limited.
    pub time_limit: Option<Duration>,
    /// The prompt and the tools of its model's last turn.
    pub preambles: PreambleCache,
}

/// What an agent does for the user.
pub enum Role {
    /// It talks to the user and delegates.
    Supervisor {
        /// Its prompt and its settings.
        spec: Arc<RenderedSpec>,
        /// The agents that it can ask.
        delegates: Arc<Delegates>,
        /// Its workflows.
        self_service: SelfService,
    },
    /// It works for the supervisor.
    Worker(WorkerDelegates),
}

/// The agents that a worker may delegate to.
#[derive(Debug, Clone, Default)]
pub struct WorkerDelegates {
    pub names: BTreeSet<AgentName>,
    /// All agents of the process.
    pub all: Arc<Delegates>,
}

impl Role {
    /// A worker that does not delegate.
    pub fn worker() -> Self {
        Self::Worker(WorkerDelegates::default())
    }
}

/// The agent that people talk to. A new specification replaces it; active runs keep theirs.
#[derive(Debug, Clone)]
pub struct CurrentSupervisor(watch::Receiver<Arc<Agent>>);

impl CurrentSupervisor {
    /// The newest one.
    pub fn get(&self) -> Arc<Agent> {
        self.0.borrow().clone()
    }
}

impl From<watch::Receiver<Arc<Agent>>> for CurrentSupervisor {
    fn from(newest: watch::Receiver<Arc<Agent>>) -> Self {
        Self(newest)
    }
}

impl From<Arc<Agent>> for CurrentSupervisor {
    fn from(agent: Arc<Agent>) -> Self {
        Self(watch::Sender::new(agent).subscribe())
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name)
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

/// The faults of an agent's tool servers, a line each: unavailable servers and malformed tools.
pub(crate) fn server_faults(view: &ToolsView) -> Vec<String> {
    let is_unavailable =
        |server: &&ServerStatus| matches!(server.phase, ServerPhase::Failed | ServerPhase::Restarting);
    let fault = |server: &ServerStatus| {
        format!("{}: {}", server.name, server.message.as_deref().unwrap_or("not available"))
    };
    let unavailable = view.servers.iter().filter(is_unavailable).map(fault);
    let ignored = view
        .servers
        .iter()
        .flat_map(|server| server.ignored_tools.iter().map(move |line| format!("{}: {line}", server.name)));
    unavailable.chain(ignored).collect()
}

impl Agent {
    /// What it may do now in a run, which may demand approval of further tools, and limit what is used.
    pub fn abilities(&self, run: &RunInfo) -> Abilities {
        // The tools of a server that is not ready are not known. Read before the tools, which it may publish in between.
        let is_known = self.tools.servers.view().servers.iter().all(|it| it.phase == ServerPhase::Ready);
        let tools = self.tools.list();
        let mut permitted = self.tool_policy.permitted(tools.iter());
        for tool in
            tools.iter().filter(|tool| tool.needs_client && !run.client_tools.contains(&tool.spec.name))
        {
            permitted.offered.remove(&tool.spec.name);
        }
        let offered = || tools.iter().filter(|tool| permitted.offered.contains(&tool.spec.name));
        let patterns = self.require_approval.iter().chain(&*run.require_approval);
        let mut require_approval = approvals::resolved(patterns, tools.iter());
        require_approval.extend(permitted.asks);
        let (traits, budgets) = tool_rules::apply(&self.tool_rules, tools.iter());
        let searched = self.preambles.searched(&tools, || self.searched(offered()));
        let is_read = |tool: &&OfferedTool| !searched.as_ref().is_some_and(|it| it.contains(&tool.spec.name));
        let mut budget = Budget { tools: budgets, ..self.budget.clone() };
        if let Some(remaining) = &run.remaining {
            budget.restrict(remaining);
        }
        let verification =
            self.verification.as_ref().map(|declared| self.tool_policy.verification(declared, offered()));
        let mut abilities = Abilities {
            tool_tokens: offered().filter(is_read).map(|tool| tool.tokens).sum(),
            searched: searched.clone(),
            allow_always: approvals::always(&self.allow_always, tools.iter()),
            tools: permitted.offered,
            traits,
            budget,
            agents: self.listing().keys().filter(|agent| self.delegates_to(agent, run)).cloned().collect(),
            require_approval,
            answer: match &self.role {
                Role::Supervisor { spec, .. } => answer_mode(spec.answer_mode),
                Role::Worker(_) => AnswerMode::Plain,
            },
            forms: true,
            workflows: self.self_service().map(|it| it.workflows.clone()).unwrap_or_default(),
            limits: Limits { condense: self.condenser.is_some(), ..self.limits.clone() },
            verification,
            workspace: self.workspace.is_some(),
            writes: self.workspace.unwrap_or_default(),
            volume: self.tools.volume.is_some(),
            answer_words: self.answer_words(),
            is_repeatable: false,
        };
        let is_worker = matches!(self.role, Role::Worker(_));
        abilities.is_repeatable = is_worker && is_known && !abilities.volume && abilities.can_repeat_all();
        abilities
    }

    /// Whether every call of a run that begins now may be repeated.
    pub fn begins_repeatable_runs(&self) -> bool {
        matches!(self.role, Role::Worker(_)) && self.abilities(&RunInfo::default()).is_repeatable
    }

    /// The tools of the servers, if their descriptions are too many to be read at once.
    fn searched<'a>(&self, offered: impl Iterator<Item = &'a OfferedTool>) -> Option<Arc<ToolIndex>> {
        let of_servers: Vec<&OfferedTool> = offered.filter(|tool| tool.is_of_server()).collect();
        let tokens: u64 = of_servers.iter().map(|tool| tool.tokens).sum();
        let index = || ToolIndex::new(of_servers.iter().map(|tool| (&tool.spec, tool.tokens)));
        (tokens > self.tools.find_above).then(|| Arc::new(index()))
    }

    /// The approved calls of this agent, by the names that its model knows the tools by. A call of a tool that is not offered,
    /// or whose name several tools have, is left out, so that it waits for a person.
    pub fn offered_calls(&self, approved: &[ApprovedCall]) -> Vec<ApprovedCall> {
        let tools = self.tools.list();
        let own = approved.iter().filter(|call| call.is_of(&self.name));
        let offered = own.filter_map(|call| {
            let tool = approvals::offered_name(&call.tool, tools.iter())?;
            Some(ApprovedCall { tool: tool.to_owned(), ..call.clone() })
        });
        offered.collect()
    }

    /// Its faults, a line each: unavailable tool servers, malformed tools, credentials, names that are no tool.
    pub fn faults(&self) -> Vec<String> {
        let credentials = self.credentials().and_then(|report| credential_fault(&report));
        let servers = server_faults(&self.tools.servers.view());
        servers
            .into_iter()
            .chain(credentials)
            .chain(self.tool_faults.clone())
            .chain(self.unmatched())
            .collect()
    }

    /// Whether its credentials are accepted, as far as that has been checked.
    pub fn credentials(&self) -> Option<CredentialReport> {
        credentials(&self.tools.servers.view(), self.name.as_str())
    }

    /// The names in its settings that are no tool, a sentence each.
    pub fn unmatched(&self) -> Vec<String> {
        let (mode, require_approval) = (self.tool_policy.mode, self.require_approval.as_slice());
        unmatched(&self.tools, &NamedTools { mode, require_approval, prompt: &self.prompt })
    }

    /// Logs the approvals that match no tool, once its tools are known.
    pub fn warn_when_settled(&self) {
        let (tools, patterns, name) = (self.tools.clone(), self.require_approval.clone(), self.name.clone());
        if patterns.is_empty() {
            return;
        }
        let mut servers = tools.servers.watch();
        tokio::spawn(async move {
            let Ok(view) = servers.wait_for(|view| view.settled).await.map(|view| view.clone()) else {
                return;
            };
            for warning in approvals::unmatched(&patterns, &view, tools.list().iter()) {
                tracing::warn!(agent = %name, "{warning}");
            }
        });
    }

    /// Waits until its tool servers are ready or have failed once, but not for long: an agent without tools can
    /// still say so.
    pub async fn settled(&self, cancel: &CancellationToken) {
        let mut tools = self.tools.servers.watch();
        let settled = tools.wait_for(|view| view.settled);
        tokio::select! {
            _ = tokio::time::timeout(SETTLE_DEADLINE, settled) => {}
            () = cancel.cancelled() => {}
        }
    }

    /// The backend for a delegation to another agent.
    pub fn lease(&self, agent: &AgentName, resume: Option<&Resume>) -> Option<BackendLease> {
        match &self.role {
            Role::Supervisor { self_service: SelfService { user_input: Some(backend), .. }, .. }
                if agent.as_str() == USER_INPUT_AGENT =>
            {
                Some(BackendLease::uncounted(backend.clone()))
            }
            Role::Worker(WorkerDelegates { names, .. }) if !names.contains(agent) => None,
            Role::Supervisor { delegates, .. } | Role::Worker(WorkerDelegates { all: delegates, .. }) => {
                delegates.lease(agent, resume)
            }
        }
    }

    /// Changes of what it may do, from now on.
    pub fn changes(&self) -> Changes {
        Changes::since_now(self.tools.servers.watch(), self.delegates().map(Delegates::watch))
    }

    /// The files that a delegation to an agent takes along, if that agent shares them.
    pub fn shared_with(&self, agent: &AgentName, state: &RunState) -> Option<Scratchpad> {
        let writes = self.listing().get(agent)?.sharing.files?;
        Some(Scratchpad { files: Arc::new(state.scratchpad()), is_writable: writes != FileWrites::Nowhere })
    }

    /// How many words the answers of the agents shall have that it can ask.
    fn answer_words(&self) -> BTreeMap<AgentName, u32> {
        let listing = self.listing();
        listing.iter().filter_map(|(name, entry)| Some((name.clone(), entry.sharing.answer_words?))).collect()
    }

    fn listing(&self) -> Arc<Listing> {
        self.delegates().map(Delegates::listing).unwrap_or_default()
    }

    /// Its self-service workflows, if it is a supervisor.
    pub fn self_service(&self) -> Option<&SelfService> {
        match &self.role {
            Role::Supervisor { self_service, .. } => Some(self_service),
            Role::Worker(_) => None,
        }
    }

    fn delegates(&self) -> Option<&Delegates> {
        match &self.role {
            Role::Supervisor { delegates, .. } => Some(delegates),
            Role::Worker(delegates) => Some(&*delegates.all).filter(|_| !delegates.names.is_empty()),
        }
    }

    fn delegates_to(&self, agent: &AgentName, run: &RunInfo) -> bool {
        match &self.role {
            Role::Supervisor { .. } => true,
            Role::Worker(delegates) => delegates.names.contains(agent) && run.may_delegate_to(agent),
        }
    }

    /// The principals that may decide the approvals of an agent; if empty, the owner of the conversation.
    pub fn approvers(&self, agent: &AgentName) -> &[Approver] {
        let Role::Supervisor { spec, .. } = &self.role else { return &[] };
        let own = spec.agent(agent.as_str()).map(|agent| agent.approvers.as_slice()).unwrap_or_default();
        if own.is_empty() { &spec.approvers } else { own }
    }

    /// All approvers, of any agent.
    pub fn all_approvers(&self) -> impl Iterator<Item = &Approver> {
        let spec = if let Role::Supervisor { spec, .. } = &self.role { Some(spec) } else { None };
        spec.into_iter().flat_map(|spec| {
            spec.approvers.iter().chain(spec.agents.iter().flat_map(|agent| &agent.approvers))
        })
    }

    /// The model of the next turn.
    pub fn next_model(&self, state: &RunState) -> &Arc<dyn ChatModel> {
        let condenser = self.condenser.as_ref().filter(|_| state.condensing.is_some());
        condenser.unwrap_or(&self.model)
    }

    /// The request of its model's next turn.
    pub fn request(&self, state: &RunState, with_tools: bool) -> ChatRequest {
        let (view, tools, listing) = (self.tools.servers.view(), self.tools.list(), self.listing());
        let make = || self.brief(state, &view, &tools, &listing);
        let preamble = self.preambles.get((&view, &tools, &listing), state, make);
        if let Some(text) = &state.condensing {
            return summary_request(self.name.as_str(), text);
        }
        ChatRequest {
            system: preamble.system,
            messages: after_note(&state.messages, state.earlier.note()),
            tools: if with_tools { preamble.tools } else { Arc::default() },
            max_output_tokens: None,
            temperature: None,
        }
    }

    fn brief(
        &self,
        state: &RunState,
        view: &ToolsView,
        tools: &OfferedTools,
        listing: &Listing,
    ) -> TurnPreamble {
        let system = match &self.role {
            Role::Supervisor { spec, .. } => {
                supervisor_prompt(spec, &agent_lines(listing.iter()), &view.servers)
            }
            Role::Worker(_) => {
                let limited =
                    !view.servers.is_empty() || tools.iter().any(|tool| tool.class != ToolClass::Read);
                let policy = limited.then(|| self.tool_policy.explained());
                let agents = listing.iter().filter(|(name, _)| state.abilities.agents.contains(*name));
                // The client of a run may not answer the calls.
                let remembers = state.abilities.tools.contains(MEMORY_SEARCH);
                let reduced = (!remembers).then(|| prompt::without_memory(&self.prompt));
                let own = reduced.as_deref().unwrap_or(&self.prompt);
                worker_prompt(self.name.as_str(), own, &agent_lines(agents), policy, &view.servers)
            }
        };
        TurnPreamble { system: system.into(), tools: offered(state, tools) }
    }
}

fn agent_lines<'a>(listing: impl Iterator<Item = (&'a AgentName, &'a ListingEntry)>) -> Vec<AgentLine<'a>> {
    listing
        .map(|(name, entry)| AgentLine {
            name: name.as_str(),
            title: &entry.title,
            routing_hint: &entry.routing_hint,
            shares_files: entry.sharing.files.is_some(),
        })
        .collect()
}

/// Where the agent with a workspace may write virtual files.
pub(crate) const fn file_writes(workspace: &RenderedWorkspace) -> FileWrites {
    match workspace.writes {
        WorkspaceWrites::Everywhere => FileWrites::Everywhere,
        WorkspaceWrites::Scratchpad => FileWrites::Scratchpad,
        WorkspaceWrites::Nowhere => FileWrites::Nowhere,
    }
}

/// What an agent shares with a run that delegates to it.
pub(crate) fn sharing(agent: &RenderedAgent) -> Sharing {
    Sharing { files: agent.workspace.as_ref().map(file_writes), answer_words: agent.max_answer_words }
}

fn answer_mode(mode: rendered::AnswerMode) -> AnswerMode {
    match mode {
        rendered::AnswerMode::Structured => AnswerMode::Structured,
        rendered::AnswerMode::Marker => AnswerMode::Marker,
    }
}

/// The tools of the engine and of the sources, in one stable order.
/// Tools that were found are the last, so that the model's provider can reuse what comes before them.
fn offered(state: &RunState, tools: &OfferedTools) -> Arc<[ToolSpec]> {
    let abilities = &state.abilities;
    let is_searched = |name: &str| abilities.searched.as_ref().is_some_and(|index| index.contains(name));
    let own = builtin_tools(abilities).into_iter();
    let tools = || tools.iter().filter(|tool| abilities.tools.contains(&tool.spec.name));
    let read = tools().filter(|tool| !is_searched(&tool.spec.name));
    let found = state.found.iter().filter(|name| is_searched(name));
    let found = found.filter_map(|name| tools().find(|tool| tool.spec.name == **name));
    own.chain(read.chain(found).map(|tool| tool.spec.clone())).collect()
}

#[cfg(test)]
pub(crate) mod tests;

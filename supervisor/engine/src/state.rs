//! The state of a run: plain data, saved and loaded unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use caipe_model::{Message, ToolResult, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::abilities::Abilities;
use crate::approved::ApprovedCall;
use crate::budget::{Budget, Spent};
use crate::conversation::Earlier;
use crate::file_rights::is_in_scratchpad;
use crate::form::{Answered, Form};
use crate::loops::Loops;
use crate::names::{AgentName, CallId};
use crate::plan::Plan;
use crate::source::Source;
use crate::text::AnswerText;
use crate::tool_budget::{self, ToolSpent};
use crate::verification::Unverified;
use crate::volume::VolumeView;
use crate::workflow::Workflow;

/// The state of one agent's conversation and of its run.
///
/// The serialised form is the run without its messages and files, and without those of nested runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    pub agent: AgentName,
    /// The abilities of the newest input that set them.
    pub abilities: Abilities,
    /// The conversation, oldest first. Stored apart from the run, because it grows: see [`RunState::visit`].
    #[serde(default, skip_serializing)]
    pub messages: Vec<Arc<Message>>,
    /// The virtual files of the conversation, by path. Stored apart from the run too.
    #[serde(default, skip_serializing)]
    pub files: Arc<BTreeMap<String, String>>,
    pub plan: Plan,
    pub phase: Phase,
    /// The calls of the newest assistant message, in order.
    pub calls: Vec<PendingCall>,
    pub text: AnswerText,
    /// The answers of the delegations of this run, in the order of their ends.
    #[serde(default)]
    pub answers: Vec<AgentAnswer>,
    /// The documents that the tools of this run have found and read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    pub counters: Counters,
    pub guards: Guards,
    /// Distinguishes the interactions of this conversation from those of all others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The number of interactions so far in this conversation.
    #[serde(default)]
    pub interactions: u64,
    /// The calls that a person has allowed for the rest of the conversation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub always_allowed: AlwaysAllowed,
    /// The calls of this run that a person has approved before; a call that is made is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<ApprovedCall>,
    /// The tools that the model has found in this conversation, in the order in which it found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// The part of the conversation that the model does not read any more.
    #[serde(default, skip_serializing_if = "Earlier::is_default")]
    pub earlier: Earlier,
    /// The text that the model summarizes in the turn under way, which is no turn of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condensing: Option<String>,
    /// What this run has changed and not verified since; empty without a declared verification.
    #[serde(default, skip_serializing_if = "Unverified::is_default")]
    pub unverified: Unverified,
    /// The shared files that this run has changed; `None` if it shares none with a run that delegates to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<BTreeSet<String>>,
    /// What is on the volume of the agent's workspace, for the next message. Not stored.
    #[serde(skip)]
    pub volume: Option<VolumeView>,
}

/// The tools that a person has allowed for the rest of a conversation, by agent.
pub type AlwaysAllowed = BTreeMap<AgentName, BTreeSet<String>>;

impl RunState {
    /// Whether another process can continue the run from this state, if it was saved, without repeating or losing a call: no
    /// tool or agent works on a call of which only the beginning is known. A model call is repeated.
    pub fn can_move(&self) -> bool {
        self.calls.iter().all(|call| !call.status.is_bound())
    }

    /// An empty conversation without a run.
    pub fn new(agent: AgentName) -> Self {
        Self {
            agent,
            abilities: Abilities::default(),
            messages: Vec::new(),
            files: Arc::default(),
            plan: Plan::default(),
            phase: Phase::Idle,
            calls: Vec::new(),
            text: AnswerText::default(),
            answers: Vec::new(),
            sources: Vec::new(),
            counters: Counters::default(),
            guards: Guards::default(),
            scope: String::new(),
            interactions: 0,
            always_allowed: AlwaysAllowed::new(),
            approved: Vec::new(),
            found: Vec::new(),
            earlier: Earlier::default(),
            condensing: None,
            unverified: Unverified::default(),
            shared: None,
            volume: None,
        }
    }

    /// Notes a changed file that the run must bring back, if it is a shared one.
    pub(crate) fn note_change(&mut self, path: &str) {
        if let Some(changed) = self.shared.as_mut().filter(|_| is_in_scratchpad(path)) {
            changed.insert(path.to_owned());
        }
    }

    /// Whether a person has allowed the calls of a tool of this agent for the rest of the conversation, and the tool still
    /// permits it.
    pub(crate) fn is_always_allowed(&self, tool: &str) -> bool {
        self.abilities.allow_always.contains(tool)
            && self.always_allowed.get(&self.agent).is_some_and(|tools| tools.contains(tool))
    }

    /// Notes a tool that the model must find, once it has.
    pub(crate) fn note_found(&mut self, tool: &str) {
        let is_searched = self.abilities.searched.as_ref().is_some_and(|index| index.contains(tool));
        if is_searched && !self.found.iter().any(|found| found == tool) {
            self.found.push(tool.to_owned());
        }
    }

    /// Whether a person has approved exactly this call before. It is approved once.
    pub(crate) fn take_approved(&mut self, tool: &str, arguments: &Value) -> bool {
        let is_it = |call: &ApprovedCall| {
            call.tool == tool && arguments.as_object().is_some_and(|arguments| *arguments == call.arguments)
        };
        let found = self.approved.iter().position(is_it);
        found.map(|at| self.approved.remove(at)).is_some()
    }

    /// What is left for the runs that this one delegates to, if this one is limited.
    pub fn remaining_budget(&self) -> Option<Budget> {
        self.abilities.budget.after(&self.counters.spent)
    }

    /// Gives ids to the waiting questions that have none, because an earlier version stored them.
    pub fn identify_questions(&mut self) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            if let CallStatus::Waiting { form, .. } = &mut call.status {
                form.identify(&self.agent, &format!("{}/{}/{at}", self.scope, self.interactions));
            }
        }
    }

    /// The question with an id that no other question has.
    pub(crate) fn identified(&mut self, mut form: Form) -> Form {
        self.interactions += 1;
        form.identify(&self.agent, &format!("{}/{}", self.scope, self.interactions));
        form
    }

    /// The questions that a person must answer before the run continues, in call order; none unless it waits.
    pub fn questions(&self) -> Vec<&Form> {
        if self.phase != Phase::Waiting {
            return Vec::new();
        }
        self.calls.iter().filter_map(|call| call.status.question()).collect()
    }

    /// The agent that asks the waiting question with this id, at any depth.
    pub fn asking_agent(&self, interaction: &str) -> Option<&AgentName> {
        let asks = |call: &&PendingCall| {
            let calls = call.status.question().into_iter().flat_map(Form::calls);
            calls.into_iter().any(|call| call.id == interaction)
        };
        let call = self.calls.iter().find(asks)?;
        let own = if let CallKind::Delegation { agent } = &call.kind { agent } else { &self.agent };
        // Only below this call: another agent may have given its question the same id.
        let nested = call.status.nested().and_then(|frame| frame.asking_agent(interaction));
        Some(nested.unwrap_or(own))
    }

    /// Visits this run and its nested runs, each with its path: a JSON pointer of call ids, empty for this run.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&str, &'a Self)) {
        self.visit_below("", visit);
    }

    fn visit_below<'a>(&'a self, path: &str, visit: &mut impl FnMut(&str, &'a Self)) {
        visit(path, self);
        for call in &self.calls {
            if let Some(frame) = call.status.nested() {
                frame.visit_below(&below(path, &call.id), visit);
            }
        }
    }

    /// As [`RunState::visit`], to change the runs.
    pub fn visit_mut(&mut self, visit: &mut impl FnMut(&str, &mut Self)) {
        self.visit_mut_below("", visit);
    }

    fn visit_mut_below(&mut self, path: &str, visit: &mut impl FnMut(&str, &mut Self)) {
        visit(path, self);
        for call in &mut self.calls {
            if let Some(frame) = call.status.nested_mut() {
                frame.visit_mut_below(&below(path, &call.id), visit);
            }
        }
    }
}

/// The path of the run that a call nests, escaped as RFC 6901 says.
fn below(path: &str, call: &str) -> String {
    format!("{path}/{}", call.replace('~', "~0").replace('/', "~1"))
}

/// The answer of a delegation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAnswer {
    pub agent: AgentName,
    /// The text, cut to [`Limits::tool_output_chars`](crate::Limits::tool_output_chars).
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// No run is under way.
    #[default]
    Idle,
    /// The model works on the turn of [`Effect::CallModel`](crate::Effect::CallModel).
    Model { turn: u32 },
    /// Calls are under way, or wait for a person.
    Calls,
    /// The run ended while calls wait for a person; a decision continues it.
    Waiting,
}

/// A call of the model, until its result is in the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    pub arguments: Value,
    pub kind: CallKind,
    pub status: CallStatus,
    /// The answer that was passed to the agent that asked, until the agent has taken it. After a crash it is passed on again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Box<Answered>>,
    /// The call whose workflow this call is a step of. The model knows nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_of: Option<CallId>,
    /// The calls of the agent that a person has approved with the workflow's form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<ApprovedCall>,
}

impl PendingCall {
    /// The arguments as an object.
    pub(crate) fn arguments(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.arguments.as_object().unwrap_or(&NONE)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallKind {
    Tool,
    Delegation {
        agent: AgentName,
    },
    /// A person fills in a form.
    Ask,
    /// A self-service workflow, as it was when the call began.
    Workflow {
        workflow: Box<Workflow>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallStatus {
    /// Allowed, and not yet started.
    Ready,
    Running,
    /// A remote agent has accepted the task.
    Remote {
        task: String,
        /// The remote conversation.
        context: String,
        /// How far it was followed.
        #[serde(default)]
        place: RemotePlace,
    },
    /// An in-process agent works on the task; `frame` is its state as last saved.
    Nested {
        frame: Box<RunState>,
    },
    /// The call of a step of the workflow is open.
    Steps {
        /// The index of the step.
        step: usize,
        /// The paths of the virtual files that the steps have written.
        files: Vec<String>,
        /// The values of the first form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        values: Option<Map<String, Value>>,
    },
    /// A person must answer first.
    Waiting {
        /// The question.
        form: Form,
        /// The status after the answer.
        then: Box<CallStatus>,
    },
    /// The call has its result; others of the same turn may not.
    Done {
        result: ToolResult,
        /// The result only says that a limit or a guard did not let the call run. A run that was stored before this was recorded
        /// has such a call at most in the round that was under way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_run: bool,
    },
}

impl CallStatus {
    /// Whether the call is at work or ready to start.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Ready) || self.is_at_work()
    }

    /// Whether the call has started, and nothing is saved from which another process can continue it.
    fn is_bound(&self) -> bool {
        match self {
            Self::Running => true,
            Self::Nested { frame } => !frame.can_move(),
            Self::Waiting { then, .. } => then.is_bound(),
            Self::Ready | Self::Remote { .. } | Self::Steps { .. } | Self::Done { .. } => false,
        }
    }

    /// Whether a tool or an agent works on the call.
    pub(crate) const fn is_at_work(&self) -> bool {
        matches!(self, Self::Running | Self::Remote { .. } | Self::Nested { .. })
    }

    /// The nested run of an in-process agent, at work or waiting.
    fn nested(&self) -> Option<&RunState> {
        match self {
            Self::Nested { frame } => Some(frame),
            Self::Waiting { then, .. } => then.nested(),
            _ => None,
        }
    }

    fn nested_mut(&mut self) -> Option<&mut RunState> {
        match self {
            Self::Nested { frame } => Some(frame),
            Self::Waiting { then, .. } => then.nested_mut(),
            _ => None,
        }
    }

    /// The question of a call that waits for a person.
    pub(crate) const fn question(&self) -> Option<&Form> {
        if let Self::Waiting { form, .. } = self { Some(form) } else { None }
    }

    /// Whether the call's start was emitted and its end was not.
    pub(crate) fn is_started(&self) -> bool {
        match self {
            Self::Waiting { then, .. } => then.is_started(),
            status => status.is_at_work(),
        }
    }
}

/// The resources that a run has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    pub steps: u32,
    /// Model turns so far; the number of the newest turn.
    pub turns: u32,
    /// Model turns in a row without text or call.
    pub empty_turns: u32,
    /// Calls so far, by tool.
    pub calls: BTreeMap<String, u32>,
    /// What the guards remember.
    #[serde(skip_serializing_if = "Loops::is_default")]
    pub loops: Loops,
    /// What is used of the budgets of tools, by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "tool_budget::by_key")]
    pub budgets: BTreeMap<String, ToolSpent>,
    /// Tokens so far.
    pub usage: Usage,
    /// What the run has used of its budget, with the work of nested runs.
    pub spent: Spent,
}

/// The measures that a run takes at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that happens at most once in a run")]
pub struct Guards {
    /// The conversation was trimmed after an overflow.
    pub trimmed: bool,
    /// A failed model turn was tried again.
    pub retried: bool,
    /// The model was asked for its last answer.
    pub last_turn: bool,
    /// The model was asked again after an empty answer.
    pub empty_answer: bool,
    /// The model read how much of the budget is left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    /// A note that the model reads with the next results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why the run was stopped before its end, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The model read that the budgets of all tools of a turn are used up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub used_up: bool,
}

/// How far a remote agent's task was followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemotePlace {
    /// The number of the last emitted event of the agent, if the agent numbers them (`Last-Event-ID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The number of events emitted since the task began.
    #[serde(alias = "told")]
    pub shown: u32,
}

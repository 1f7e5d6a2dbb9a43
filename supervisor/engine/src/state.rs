//! Everything that one run knows: plain data, saved and loaded as it stands.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use caipe_model::{Message, ToolResult, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::abilities::Abilities;
use crate::form::Form;
use crate::names::{AgentName, CallId};
use crate::plan::Plan;
use crate::text::AnswerText;

/// The state of one agent's conversation and of the run that is under way in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// Whose run this is.
    pub agent: AgentName,
    /// What this agent may do, as of the newest input that said so.
    pub abilities: Abilities,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The virtual files of the conversation, by path.
    pub files: BTreeMap<String, String>,
    pub plan: Plan,
    /// Where the run stands.
    pub phase: Phase,
    /// The calls of the newest assistant message, in the order it asked for them.
    pub calls: Vec<PendingCall>,
    pub text: AnswerText,
    /// What the agents that were asked in this run have answered, in the order they finished.
    #[serde(default)]
    pub answers: Vec<AgentAnswer>,
    /// What was spent in this run.
    pub counters: Counters,
    /// What the run has been through and must not go through again.
    pub guards: Guards,
}

impl RunState {
    /// An empty conversation of an agent, with no run under way.
    pub fn new(agent: AgentName) -> Self {
        Self {
            agent,
            abilities: Abilities::default(),
            messages: Vec::new(),
            files: BTreeMap::new(),
            plan: Plan::default(),
            phase: Phase::Idle,
            calls: Vec::new(),
            text: AnswerText::default(),
            answers: Vec::new(),
            counters: Counters::default(),
            guards: Guards::default(),
        }
    }

    /// The questions that a human must answer before the run continues, in call order; none unless it waits.
    pub fn questions(&self) -> Vec<&Form> {
        if self.phase != Phase::Waiting {
            return Vec::new();
        }
        let waiting = self.calls.iter().map(|call| &call.status);
        waiting
            .filter_map(
                |status| if let CallStatus::Waiting { form, .. } = status { Some(form) } else { None },
            )
            .collect()
    }
}

/// The answer of an agent that a task was handed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAnswer {
    pub agent: AgentName,
    /// What it said, cut to [`Limits::tool_output_chars`](crate::Limits::tool_output_chars).
    pub text: String,
}

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// No run is under way.
    #[default]
    Idle,
    /// The model is asked; the number is that of [`Effect::CallModel`](crate::Effect::CallModel).
    Model { turn: u32 },
    /// Calls are under way, or wait for a human.
    Calls,
    /// The run ended while calls wait for a human; their decision starts it again.
    Waiting,
}

/// A call that the model asked for, until its result is in the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    pub arguments: Value,
    pub kind: CallKind,
    pub status: CallStatus,
}

impl PendingCall {
    /// The arguments as an object.
    pub(crate) fn arguments(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.arguments.as_object().unwrap_or(&NONE)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallKind {
    /// The edge runs a tool.
    Tool,
    /// Another agent.
    Delegation { agent: AgentName },
    /// A human fills in a form.
    Ask,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallStatus {
    /// Decided, and not yet handed to the edge.
    Ready,
    /// At the edge.
    Running,
    /// A remote agent has accepted it.
    Remote {
        task: String,
        /// The remote conversation.
        context: String,
        /// How far it was followed.
        #[serde(default)]
        place: RemotePlace,
    },
    /// An in-process agent works on it; this is its frame as last saved.
    Nested {
        /// The agent's own state.
        frame: Box<RunState>,
    },
    /// A human must answer first.
    Waiting {
        /// The question.
        form: Form,
        /// The status to continue with, once answered.
        then: Box<CallStatus>,
    },
    /// Answered; the result waits for its siblings.
    Done { result: ToolResult },
}

impl CallStatus {
    /// Whether the call is at work or ready to start.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Ready) || self.is_at_work()
    }

    /// Whether a tool or an agent works on the call.
    pub(crate) const fn is_at_work(&self) -> bool {
        matches!(self, Self::Running | Self::Remote { .. } | Self::Nested { .. })
    }

    /// Whether the call's start was emitted and its end was not.
    pub(crate) fn is_started(&self) -> bool {
        match self {
            Self::Waiting { then, .. } => then.is_started(),
            status => status.is_at_work(),
        }
    }
}

/// What a run has spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    pub steps: u32,
    /// Model turns so far; also numbers them.
    pub turns: u32,
    /// Model turns in a row without text or call.
    pub empty_turns: u32,
    /// Calls so far, by tool.
    pub calls: BTreeMap<String, u32>,
    /// Tokens so far.
    pub usage: Usage,
}

/// What a run must not go through twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that happens at most once in a run")]
pub struct Guards {
    /// The conversation was trimmed after an overflow.
    pub trimmed: bool,
    /// A broken model turn was tried again.
    pub retried: bool,
    /// The model was asked to answer from what it has.
    pub last_turn: bool,
    /// The model gave an empty answer and was asked for another.
    pub empty_answer: bool,
}

/// How far a remote agent's task was followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemotePlace {
    /// The number of the agent's event that was emitted last, if it numbers them (`Last-Event-ID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The number of events emitted since the task began.
    #[serde(alias = "told")]
    pub shown: u32,
}

//! The inputs and the effects of decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caipe_model::{Completion, Message, ModelError, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::abilities::Abilities;
use crate::budget::Spent;
use crate::event::RunEvent;
use crate::file_rights::FileChanges;
use crate::form::{Answered, BoundDecision, Form};
use crate::names::{AgentName, CallId};
use crate::state::{RemotePlace, RunState};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A message of a person or a delegating agent: a run begins.
    Message {
        message: Arc<Message>,
        abilities: Abilities,
    },
    /// The tools or agents changed while the run is under way.
    Abilities {
        abilities: Abilities,
    },
    /// A piece of the model's turn. Pieces of any other turn are ignored.
    ModelDelta {
        turn: u32,
        delta: ModelDelta,
    },
    /// The model's turn is complete.
    ModelFinished {
        turn: u32,
        completion: Completion,
    },
    /// The model's turn failed, after the retries of the model layer.
    ModelFailed {
        turn: u32,
        error: ModelFailure,
    },
    ToolFinished {
        call: CallId,
        output: ToolOutput,
        /// How long the call took, in milliseconds.
        #[serde(default)]
        time_ms: u64,
    },
    /// The progress of an agent that a tool calls.
    ToolProgress {
        call: CallId,
        agent: AgentName,
        /// A sign, then one line.
        text: String,
    },
    /// A running call is of a tool that the client of the run answers.
    CallClient {
        call: CallId,
    },
    Delegate {
        call: CallId,
        update: DelegateUpdate,
    },
    /// A person answered.
    Decided {
        /// Decisions for all calls of one or more waiting questions; the other questions keep waiting. If a decision is about
        /// no waiting call, or does not fit it, or a question is decided in part, nothing changes and all questions are asked again.
        decisions: Vec<BoundDecision>,
    },
    /// A person's answer could not be parsed: nothing changes, and the questions are asked again.
    Undecided {
        /// Why, for people.
        reason: String,
    },
    Cancel,
    /// The process of the run died; this process continues from the saved state.
    Recovered,
    /// The run reached its deadline.
    Deadline,
    /// Little time is left before the deadline.
    TimeLeft {
        seconds: u64,
    },
}

/// A piece of a model turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum ModelDelta {
    Text {
        text: String,
    },
    CallStart {
        id: CallId,
        /// The tool's name.
        name: String,
    },
    /// The next piece of a call's arguments.
    CallArguments {
        id: CallId,
        text: String,
    },
}

/// A failed model turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub kind: caipe_model::ModelErrorKind,
    pub message: String,
}

impl From<&ModelError> for ModelFailure {
    fn from(error: &ModelError) -> Self {
        Self { kind: error.kind, message: error.to_string() }
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    pub content: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The exit code of the program that the call ran, if it ran one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The virtual files that the call has written, by path; `None` removes a file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Option<String>>,
    /// The files of the volume that a command has changed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub on_volume: BTreeSet<String>,
    /// What the call has used of a model, if it asked one. It counts for the run as a turn of its own model does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_use: Option<ModelUse>,
}

/// The tokens of a model that a tool has asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    /// As `provider/model`.
    pub model: String,
    pub usage: Usage,
}

impl ToolOutput {
    /// The result of a call that succeeded.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// The result of a call that failed.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, ..Self::default() }
    }
}

/// An update of a delegation, the same from either placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum DelegateUpdate {
    /// A remote agent accepted the task.
    Accepted {
        task: String,
        /// The remote conversation.
        context: String,
    },
    /// The state of an in-process agent, which is saved with that of its parent.
    Checkpoint {
        frame: Box<RunState>,
        /// The events up to that state. State and events are committed together, so that exactly the saved ends of calls
        /// were emitted. A recovered run needs the state only.
        #[serde(skip)]
        events: Vec<RunEvent>,
    },
    /// An event of the agent, for the clients.
    Event {
        event: RunEvent,
        /// The position in a remote agent's task after this event, so that a recovered run does not emit the event again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<RemotePlace>,
    },
    /// The shared files that the agent has changed, once at its end.
    Scratchpad {
        files: FileChanges,
    },
    /// What an in-process agent has used, once at its end and if the run that delegates is limited.
    Spent {
        spent: Spent,
    },
    /// The agent asks a person.
    Asks {
        form: Form,
    },
    Finished {
        outcome: DelegationOutcome,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum DelegationOutcome {
    Completed {
        text: String,
    },
    Failed {
        /// Why, for people and for the model.
        reason: String,
    },
    Canceled,
}

/// An action of the edge. The edge performs the effects of a decision in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Emit(RunEvent),
    /// Ask the model for the turn after `RunState::messages`.
    CallModel {
        /// The turn's number in the inputs that follow.
        turn: u32,
        /// Whether the model may call tools; if not, it must answer.
        tools: bool,
    },
    /// Run a tool. All `CallTool` and `Delegate` effects of one decision run concurrently.
    CallTool {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    /// Delegate a task.
    Delegate {
        call: CallId,
        agent: AgentName,
        prompt: String,
        /// The saved state to continue from; `None` starts from the beginning.
        resume: Option<Resume>,
    },
    /// Stop what this process does for these calls.
    Abort {
        calls: Vec<CallId>,
    },
    /// Cancel the task of a remote agent. Must be repeated after a crash until it is done.
    Withdraw {
        call: CallId,
        agent: AgentName,
        from: ResumePoint,
    },
    /// The run ended; [`EventKind::Finished`](crate::EventKind::Finished) was emitted just before.
    Finish,
}

/// How to resume a delegation whose run stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The saved state; without one it is unknown whether the agent has the task already.
    pub from: Option<ResumePoint>,
    /// The answer to the agent's question, if the delegation waited for one.
    pub answered: Option<Answered>,
}

/// The saved state of a delegation.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumePoint {
    /// A remote task.
    Remote {
        task: String,
        /// The remote conversation.
        context: String,
        place: RemotePlace,
    },
    /// The state of an in-process agent.
    Nested(Box<RunState>),
}

impl Input {
    /// Whether the state must be saved after this input. Without it, a crash loses what happens again, such as a piece of a
    /// model turn.
    pub const fn changes_state(&self) -> bool {
        !matches!(
            self,
            Self::ModelDelta { .. }
                | Self::ToolProgress { .. }
                | Self::CallClient { .. }
                | Self::Delegate { update: DelegateUpdate::Event { place: None, .. }, .. }
        )
    }
}

//! What goes into a decision and what comes out of it.

use std::sync::Arc;

use caipe_model::{Completion, Message, ModelError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::abilities::Abilities;
use crate::event::RunEvent;
use crate::form::{Decision, Form};
use crate::names::{AgentName, CallId};
use crate::state::{RemotePlace, RunState};

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A person, or a delegating agent, says something: a run begins.
    Message {
        message: Arc<Message>,
        /// What the agent may do in this run.
        abilities: Abilities,
    },
    /// The set of tools or agents changed while the run is under way.
    Abilities {
        /// What the agent may do from now on.
        abilities: Abilities,
    },
    /// A piece of the model's turn.
    ModelDelta {
        /// The turn's number; pieces of any other turn are ignored.
        turn: u32,
        /// The piece.
        delta: ModelDelta,
    },
    /// The model's turn is complete.
    ModelFinished { turn: u32, completion: Completion },
    /// The model's turn failed, after whatever retries the model layer makes.
    ModelFailed { turn: u32, error: ModelFailure },
    /// A tool answered or failed.
    ToolFinished { call: CallId, output: ToolOutput },
    /// An agent that a tool asks says something about its work.
    ToolProgress {
        call: CallId,
        agent: AgentName,
        /// What it says: a sign, then one line.
        text: String,
    },
    /// News of a delegation.
    Delegate { call: CallId, update: DelegateUpdate },
    /// A human answered.
    Decided {
        /// One decision for each call of [`Form::calls`] of each waiting question, in call order. Any other number, or a
        /// decision that does not fit its question, changes nothing: the questions are asked again.
        decisions: Vec<Decision>,
    },
    /// A human's answer could not be understood: nothing changes, and the questions are asked again.
    Undecided {
        /// Why, for people.
        reason: String,
    },
    /// The run shall stop.
    Cancel,
    /// The process that ran this died; this one takes over from what was saved.
    Recovered,
    /// The run's time is up: answer from what there is.
    Deadline,
}

/// A piece of a model turn, as far as the engine cares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum ModelDelta {
    Text {
        text: String,
    },
    /// A call begins.
    CallStart {
        id: CallId,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments.
    CallArguments {
        id: CallId,
        /// The new piece of JSON text.
        text: String,
    },
}

/// A failed model turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub kind: caipe_model::ModelErrorKind,
    /// What happened, for people.
    pub message: String,
}

impl From<&ModelError> for ModelFailure {
    fn from(error: &ModelError) -> Self {
        Self { kind: error.kind, message: error.to_string() }
    }
}

/// How a tool call ended at the edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    pub content: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// News of a delegation, the same from either placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum DelegateUpdate {
    /// A remote agent accepted the task.
    Accepted {
        task: String,
        /// The remote conversation.
        context: String,
    },
    /// An in-process agent's state, to be saved with ours.
    Checkpoint {
        /// The agent's state.
        frame: Box<RunState>,
        /// The events up to that state. State and events are committed together, so that every saved end of a call was
        /// emitted and no other. A recovered run needs the state only.
        #[serde(skip)]
        events: Vec<RunEvent>,
    },
    /// An event of the agent, for the clients.
    Event {
        /// The event as the agent emitted it.
        event: RunEvent,
        /// The position in a remote agent's task after this event: a replica that takes over does not emit it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<RemotePlace>,
    },
    Asks {
        /// The question.
        form: Form,
    },
    /// The delegation ended.
    Finished { outcome: DelegationOutcome },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum DelegationOutcome {
    /// With an answer.
    Completed {
        /// The answer.
        text: String,
    },
    /// Without one.
    Failed {
        /// Why, for people and for the model.
        reason: String,
    },
    Canceled,
}

/// What shall be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Emit(RunEvent),
    /// Ask the model for the turn after `RunState::messages`.
    CallModel {
        /// The turn's number, to be handed back with what the model says.
        turn: u32,
        /// Whether it may call tools; if not, it must answer.
        tools: bool,
    },
    /// Run a tool. All `CallTool` and `Delegate` effects of one decision run at once.
    CallTool {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    /// Hand a task to another agent.
    Delegate {
        call: CallId,
        agent: AgentName,
        prompt: String,
        /// The saved state to continue from; `None` starts from the beginning.
        resume: Option<Resume>,
    },
    /// Stop whatever runs for these calls, at the peer too.
    Abort {
        calls: Vec<CallId>,
    },
    /// Tell a remote agent that nobody will answer what it asked: its task is not wanted any more.
    Withdraw {
        /// The call that it works for.
        call: CallId,
        agent: AgentName,
        /// Where its task stands.
        from: ResumePoint,
    },
    /// The run is over; the event that says how was emitted just before.
    Finish,
}

/// Where a delegation stood when its run stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// [`CallStatus::Remote`](crate::CallStatus::Remote), [`CallStatus::Nested`](crate::CallStatus::Nested) or nothing saved:
    /// then it is unknown whether the agent has the task already.
    pub from: Option<ResumePoint>,
    /// What the human said, if that is what it waited for.
    pub answered: Option<Answered>,
}

/// What a human decided, and about what.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// What the agent had asked.
    pub form: Form,
    /// One decision for each call of [`Form::calls`].
    pub decisions: Vec<Decision>,
}

/// The saved state of a delegation.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumePoint {
    /// A remote task.
    Remote {
        task: String,
        /// The remote conversation.
        context: String,
        /// How far it was followed.
        place: RemotePlace,
    },
    /// An in-process agent's state.
    Nested(Box<RunState>),
}

/// What must be kept of an input for a crash to lose nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing but the events it caused: it happens again after a crash.
    Events,
    /// The input itself, appended to what is saved; applying it again gives the same state.
    Append,
    Snapshot,
}

impl Input {
    /// What must be kept of this input.
    pub fn durability(&self) -> Durability {
        match self {
            Self::ModelDelta { .. }
            | Self::ToolProgress { .. }
            | Self::Delegate { update: DelegateUpdate::Event { place: None, .. }, .. } => Durability::Events,
            Self::ToolFinished { .. } | Self::Delegate { .. } => Durability::Append,
            _ => Durability::Snapshot,
        }
    }
}

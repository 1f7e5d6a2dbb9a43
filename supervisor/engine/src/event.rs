//! The events of a run for its clients. Typed: names, texts and emojis belong to the wire binding alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::LimitKind;
use crate::file_rights::FileChanges;
use crate::form::Form;
use crate::names::{AgentName, CallId};
use crate::plan_step::{PlanCause, PlanStep};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The delegated agents from the outermost down to that of the event; empty for the agent that the user talks to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<AgentName>,
    pub kind: EventKind,
}

impl RunEvent {
    /// An event of the agent that the user talks to.
    pub const fn own(kind: EventKind) -> Self {
        Self { path: Vec::new(), kind }
    }

    /// The same event, emitted by the agent that delegated to `agent`.
    #[must_use]
    pub fn within(mut self, agent: &AgentName) -> Self {
        self.path.insert(0, agent.clone());
        self
    }

    /// Whether the event may be shown before it is stored: it belongs to a model turn that is repeated after a crash.
    pub const fn is_transient(&self) -> bool {
        matches!(self.kind, EventKind::Text { .. } | EventKind::Composing)
    }

    /// The agent of the event; `None` for the agent that the user talks to.
    pub fn agent(&self) -> Option<&AgentName> {
        self.path.last()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A model turn begins. Its text can be reset as a whole.
    TurnStarted,
    /// Text of the model.
    Text {
        /// The new text; never empty.
        text: String,
        role: TextRole,
    },
    /// Clients discard the text of the turn under way: the turn starts again.
    TextReset,
    /// The model began to write its final answer (structured mode).
    Composing,
    /// A tool call began.
    ToolStarted {
        call: CallId,
        tool: String,
    },
    /// A tool call ended. Every start has exactly one end.
    ToolFinished {
        call: CallId,
        tool: String,
        end: CallEnd,
        /// The result for clients, truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// A running call that the client answers, which is the agent that delegates the run.
    ClientCall {
        call: CallId,
        tool: String,
        arguments: Value,
    },
    DelegationStarted {
        call: CallId,
        agent: AgentName,
    },
    /// A delegation ended. Every start has exactly one end.
    DelegationFinished {
        call: CallId,
        agent: AgentName,
        end: CallEnd,
        /// The agent's answer, or the reason of its failure.
        text: String,
    },
    /// The progress of a foreign agent, in its own words, which name no call.
    Noticed {
        /// One line.
        text: String,
        /// The end that the text reports, if it reports one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<CallEnd>,
    },
    /// A budget or a guard restricted the run.
    Limited {
        limit: LimitKind,
        /// One line for people.
        text: String,
    },
    /// A step of the model's own to-do list began.
    TodoStarted {
        content: String,
    },
    /// A step of the model's own to-do list is done.
    TodoFinished {
        content: String,
    },
    /// The whole plan, after a change. The model can add and remove steps; a step keeps its id.
    Plan {
        steps: Vec<PlanStep>,
        cause: PlanCause,
        /// Whether this is the first plan of the run.
        first: bool,
    },
    /// A person's answer was rejected; the questions follow again.
    DecisionRefused {
        /// Why, for people.
        reason: String,
    },
    /// The run stops until a person answers.
    InputRequired {
        form: Form,
    },
    /// The shared files that the run has changed, for the run that delegates to it; just before the end.
    ScratchpadChanged {
        files: FileChanges,
    },
    /// The run ended.
    Finished {
        outcome: Outcome,
    },
}

/// The role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRole {
    Answer,
    /// The model's comments between calls.
    Narration,
    /// An answer or narration: the model has not marked it.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    Completed,
    Failed,
    Canceled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The run has an answer.
    Completed {
        /// The whole answer; empty if there is none.
        text: String,
        origin: AnswerOrigin,
    },
    Failed {
        /// Why, for people.
        reason: String,
    },
    Canceled,
    /// The run waits for a person; [`EventKind::InputRequired`] was emitted just before.
    InputRequired,
}

/// The origin of a final answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOrigin {
    /// The response tool (path A).
    Structured,
    /// Text after the marker (path B).
    Marked,
    /// Text of the model, or the answer of the only delegation (path C).
    Model,
    /// Text of the model after several delegations (path C).
    Synthesis,
    /// The results so far of a run that was cut short (path C).
    Partial,
    /// The results so far of a run whose model failed.
    Recovered,
}

/// A receiver of the events of the agent itself.
pub(crate) trait Emit {
    fn emit(&mut self, kind: EventKind);

    /// Adds a piece of text, unless it is empty.
    fn text(&mut self, role: TextRole, text: String) {
        if !text.is_empty() {
            self.emit(EventKind::Text { text, role });
        }
    }
}

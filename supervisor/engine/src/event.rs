//! The events of a run for its clients. Typed: names, texts and emojis belong to the wire binding alone.

use serde::{Deserialize, Serialize};

use crate::form::Form;
use crate::names::{AgentName, CallId};
use crate::plan_step::{PlanCause, PlanStep};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Whose event it is: empty for the agent that the user talks to, else the agents on the way down to it.
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

    /// The agent whose event it is, if not the one that the user talks to.
    pub fn agent(&self) -> Option<&AgentName> {
        self.path.last()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The model said something.
    Text {
        /// The new text; never empty.
        text: String,
        /// What it is part of.
        role: TextRole,
    },
    /// The text of the turn under way is void: the turn starts again.
    TextReset,
    /// The model began to write its final answer (structured mode).
    Composing,
    /// A tool call began.
    ToolStarted { call: CallId, tool: String },
    /// A tool call ended. Every start has exactly one end.
    ToolFinished {
        call: CallId,
        tool: String,
        end: CallEnd,
        /// What it returned, for those who show it; cut to a fixed size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// A task was handed to another agent.
    DelegationStarted { call: CallId, agent: AgentName },
    /// The agent is done. Every start has exactly one end.
    DelegationFinished {
        call: CallId,
        agent: AgentName,
        end: CallEnd,
        /// Its answer, or the reason of its failure.
        text: String,
    },
    /// A foreign agent reports on its work, in its own words, which name no call.
    Noticed {
        /// What it says: one line.
        text: String,
        /// How what it speaks of ended, if it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<CallEnd>,
    },
    /// A step of the model's own to-do list began.
    TodoStarted {
        /// The step's text.
        content: String,
    },
    /// A step of the model's own to-do list is done.
    TodoFinished {
        /// The step's text.
        content: String,
    },
    /// The plan, whole, after a change. Steps may come and go between two of these, when the model rewrites its list
    /// or hands over another task; a step keeps its id.
    Plan {
        /// All steps, in order.
        steps: Vec<PlanStep>,
        /// Why the plan is emitted.
        cause: PlanCause,
        /// Whether this is the run's first.
        first: bool,
    },
    /// An answer of a human could not be taken; the questions follow again.
    DecisionRefused {
        /// Why, for people.
        reason: String,
    },
    /// The run stops until a human answers.
    InputRequired {
        /// The question.
        form: Form,
    },
    /// The run is over.
    Finished { outcome: Outcome },
}

/// What a piece of text is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRole {
    Answer,
    /// What the model says on the way, between calls.
    Narration,
    /// Either; the model has not marked it.
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
    /// With an answer.
    Completed {
        /// The whole answer; empty if there is none.
        text: String,
        /// Where it comes from.
        origin: AnswerOrigin,
    },
    /// Without one.
    Failed {
        /// Why, for people.
        reason: String,
    },
    Canceled,
    /// It waits for a human; [`EventKind::InputRequired`] was emitted just before.
    InputRequired,
}

/// Where a final answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOrigin {
    /// The response tool (path A).
    Structured,
    /// Text after the marker (path B).
    Marked,
    /// Clean model text, or the words of the one agent that was asked (path C).
    Model,
    /// Model text after several agents were asked (path C).
    Synthesis,
    /// The run was cut short; this is what there is (path C).
    Partial,
    /// The model failed; this is what was gathered before.
    Recovered,
}

/// A receiver of the events of the agent itself.
pub(crate) trait Emit {
    /// Adds an event.
    fn emit(&mut self, kind: EventKind);

    /// Adds a piece of text, unless it is empty.
    fn text(&mut self, role: TextRole, text: String) {
        if !text.is_empty() {
            self.emit(EventKind::Text { text, role });
        }
    }
}

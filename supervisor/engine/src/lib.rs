//! One run of an agent as a state machine: no client, no clock, no randomness, no `async`.

mod event;
mod form;
mod io;
mod plan;
mod state;
mod text;

pub use event::{AnswerOrigin, CallEnd, EventKind, Outcome, RunEvent, TextRole};
pub use form::{ASK_TOOL, Decision, Form, FormField};
pub use io::{
    DelegateUpdate, DelegationOutcome, Durability, Effect, Input, ModelDelta, ModelFailure, Resume, ResumePoint, ToolOutput,
};
pub use plan::{Plan, PlanCause, PlanStep, StepStatus, Todo};
pub use state::{
    Abilities, AgentName, AnswerMode, CallId, CallKind, CallStatus, Counters, Guards, Limits, PendingCall, Phase, RunState,
};
pub use text::AnswerText;

//! One run of an agent as a state machine: no client, no clock, no randomness, no `async`.

mod conversation;
mod decide;
mod effects;
mod event;
mod form;
mod io;
mod plan;
mod state;
mod text;
mod tools;

pub use decide::decide;
pub use event::{AnswerOrigin, CallEnd, EventKind, Outcome, RunEvent, TextRole};
pub use form::{ANSWER_FIELD, APPROVE, ASK_TOOL, DECISION_FIELD, Decision, Form, FormField, REJECT};
pub use io::{
    Answered, DelegateUpdate, DelegationOutcome, Durability, Effect, Input, ModelDelta, ModelFailure,
    RemotePlace, Resume, ResumePoint, ToolOutput,
};
pub use plan::{Plan, PlanCause, PlanStep, PlanTask, StepStatus, Todo};
pub use state::{
    Abilities, AgentAnswer, AgentName, AnswerMode, CallId, CallKind, CallStatus, Counters, Guards, Limits,
    PendingCall, Phase, RunState,
};
pub use text::AnswerText;
pub use tools::glob::name_matches;
pub use tools::{EDGE_TOOLS, RESPONSE_TOOL, builtin_tools};

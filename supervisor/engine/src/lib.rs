//! One run of an agent as a state machine: no client, no clock, no randomness, no `async`.

mod abilities;
mod approved;
mod budget;
mod conversation;
mod decide;
mod digest;
mod effects;
mod event;
mod file_limits;
mod file_path;
mod file_rights;
mod form;
mod io;
mod loops;
mod names;
mod plan;
mod plan_step;
mod scratchpad;
mod source;
mod state;
mod text;
mod tool_budget;
mod tool_index;
mod tools;
mod verification;
mod volume;
mod workflow;
mod workspace;

pub use abilities::{Abilities, AnswerMode, GuardLimits, Limits};
pub use approved::{ApprovedCall, DeclaredCall};
pub use budget::{Budget, LimitKind, Price, RefusedValues, Spent, ToolTraits};
pub use conversation::Earlier;
pub use decide::decide;
pub use digest::CODE_CHARS;
pub use event::{AnswerOrigin, CallEnd, EventKind, Outcome, RunEvent, TextRole};
pub use file_limits::{FILE_BYTES, PATH_BYTES, TOTAL_BYTES};
pub use file_rights::{FileChanges, FileWrites, SCRATCHPAD, SCRATCHPAD_BYTES};
pub use form::{
    ALWAYS, ANSWER_FIELD, APPROVE, ASK_TOOL, Answered, BoundDecision, DECISION_FIELD, Decision, FieldType,
    Form, FormField, REJECT, REQUEST_INPUT_TOOL, RESPOND,
};
pub use io::{
    DelegateUpdate, DelegationOutcome, Effect, Input, ModelDelta, ModelFailure, ModelUse, Resume,
    ResumePoint, ToolOutput,
};
pub use loops::Loops;
pub use names::{AgentName, CallId};
pub use plan::{Plan, PlanTask, Todo};
pub use plan_step::{PlanCause, PlanStep, StepStatus};
pub use source::Source;
pub use state::{
    AgentAnswer, AlwaysAllowed, CallKind, CallStatus, Counters, Guards, PendingCall, Phase, RemotePlace,
    RunState,
};
pub use text::AnswerText;
pub use tool_budget::{ToolBudget, ToolSpent};
pub use tool_index::ToolIndex;
pub use tools::glob::name_matches;
pub use tools::{
    ApprovalPattern, FILE_TOOLS, FileResult, FileTree, RESPONSE_TOOL, WORKFLOW_TOOLS, WRITE_TOOLS,
    builtin_tools, is_builtin, missing_file, run_file_tool_on,
};
pub use verification::{Unverified, Verification};
pub use volume::{VOLUME, VolumeView};
pub use workflow::{USER_INPUT_AGENT, Workflow, WorkflowStep};
pub use workspace::{PROGRESS, check_progress};

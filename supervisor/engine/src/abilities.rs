//! What an agent may do in a run, and the limits of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, ToolTraits};
use crate::file_rights::FileWrites;
use crate::names::AgentName;
use crate::tool_index::ToolIndex;
use crate::verification::Verification;
use crate::workflow::Workflow;

/// What an agent may do. Names only: the edge sends descriptions and schemas to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "any combination is possible")]
pub struct Abilities {
    /// The tools that the edge can run.
    pub tools: BTreeSet<String>,
    /// The estimated tokens of the descriptions and schemas of those that the model reads at once.
    #[serde(default)]
    pub tool_tokens: u64,
    /// What is known of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub traits: BTreeMap<String, ToolTraits>,
    /// What a run may use.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// The agents that the agent may delegate to.
    pub agents: BTreeSet<AgentName>,
    /// Tools that a person must approve first, as in [`ApprovalPattern`](crate::ApprovalPattern).
    pub require_approval: Vec<String>,
    /// The tools that a person may allow for the rest of the conversation when approving a call.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allow_always: BTreeSet<String>,
    pub answer: AnswerMode,
    /// Whether the agent may ask the user with a form.
    pub forms: bool,
    /// The self-service workflows that the agent may start. Not stored: a run that continues gets them again, and one under
    /// way keeps its own copy of its workflow.
    #[serde(skip)]
    pub workflows: Arc<Vec<Workflow>>,
    /// The tools that the model must find by `find_tools` before it reads their descriptions; none if it reads all. Not stored
    /// either.
    #[serde(skip)]
    pub searched: Option<Arc<ToolIndex>>,
    pub limits: Limits,
    /// How the agent verifies its changes, if a run must not end without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Whether the model reads which virtual files there are when a run begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workspace: bool,
    /// Where the agent may write virtual files.
    #[serde(default, skip_serializing_if = "FileWrites::is_everywhere")]
    pub writes: FileWrites,
    /// Whether the files below [`VOLUME`](crate::VOLUME) are on a volume, which the edge reads and writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volume: bool,
    /// How many words the answers of agents shall have at most. Of an answer of more than twice as many, the model reads the
    /// beginning, and the whole is a shared file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answer_words: BTreeMap<AgentName, u32>,
    /// Whether every call that the agent can make may be repeated. A run that begins so keeps it: it gets no other tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeatable: bool,
}

impl Abilities {
    /// Whether every call of these tools and agents may be repeated.
    pub fn can_repeat_all(&self) -> bool {
        self.agents.is_empty() && self.tools.iter().all(|tool| self.can_repeat(tool))
    }

    fn can_repeat(&self, tool: &str) -> bool {
        let traits = self.traits_of(tool);
        traits.is_repeatable || traits.is_pause
    }

    /// The same for a run whose client has read whether its calls may be repeated: if so, without the others.
    #[must_use]
    pub fn within_run(mut self, is_repeatable: bool) -> Self {
        self.is_repeatable = is_repeatable;
        if is_repeatable {
            let tools = std::mem::take(&mut self.tools);
            self.tools = tools.into_iter().filter(|tool| self.can_repeat(tool)).collect();
            self.agents.clear();
            self.volume = false;
        }
        self
    }

    /// What is known of a tool.
    pub(crate) fn traits_of(&self, tool: &str) -> &ToolTraits {
        static UNKNOWN: LazyLock<ToolTraits> = LazyLock::new(ToolTraits::default);
        self.traits.get(tool).unwrap_or(&UNKNOWN)
    }
}

/// How a model marks its final answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// By the response tool (`USE_STRUCTURED_RESPONSE=true`, as upstream does).
    #[default]
    Structured,
    /// By `[FINAL ANSWER]` before it (`USE_STRUCTURED_RESPONSE=false`).
    Marker,
    /// Not at all: a text without calls is the answer. The mode of sub-agents.
    Plain,
}

/// The limits of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most steps; a model turn is one, a round of tools is one (`LANGGRAPH_RECURSION_LIMIT`).
    pub steps: u32,
    /// When a run that makes no progress is stopped.
    pub guards: GuardLimits,
    /// Tokens of the model's context, of which the conversation may fill a part (`MAX_CONTEXT_TOKENS`).
    pub context_tokens: u64,
    /// Newest messages that trimming never touches (`MIN_MESSAGES_TO_KEEP`).
    pub keep_messages: usize,
    /// Most characters of one tool result that the model reads (`MAX_TOOL_OUTPUT_CHARS`).
    pub tool_output_chars: usize,
    /// Most virtual files (`MAX_VIRTUAL_FILES`).
    pub files: usize,
    /// Most lines that the model reads of the output of a successful program, and of a search of virtual files; 0 means all.
    pub compact_lines: usize,
    /// Whether a model summarizes what no longer fits into the context.
    pub condense: bool,
}

/// When a run that makes no progress is reminded; a little later it is limited, then stopped. 0 switches a guard off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardLimits {
    /// Equal calls with equal results.
    pub repeated_calls: u32,
    /// Equal errors of one tool, without a success between them.
    pub repeated_errors: u32,
    /// Times that two calls alternate.
    pub ping_pong: u32,
    /// Model turns in a row with neither text nor a call.
    pub empty_turns: u32,
    /// Rounds of calls in which no step of an unfinished plan changes.
    pub plan_rounds: u32,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { repeated_calls: 3, repeated_errors: 3, ping_pong: 3, empty_turns: 3, plan_rounds: 12 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 500,
            guards: GuardLimits::default(),
            context_tokens: 100_000,
            keep_messages: 4,
            tool_output_chars: 50_000,
            files: 1000,
            compact_lines: 50,
            condense: false,
        }
    }
}

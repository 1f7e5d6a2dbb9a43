//! What an agent may do in a run, and the limits of the run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::names::AgentName;

/// What an agent may do. Names only: descriptions and schemas go to the model from the edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Abilities {
    /// The tools that the edge can run.
    pub tools: BTreeSet<String>,
    /// The agents that it may delegate to.
    pub agents: BTreeSet<AgentName>,
    /// Tools that a human must approve first: exact names or patterns with `*`.
    pub require_approval: Vec<String>,
    /// How the model marks its final answer.
    pub answer: AnswerMode,
    /// Whether the agent may ask the user with a form.
    pub forms: bool,
    /// The run's limits.
    pub limits: Limits,
}

/// How a model marks its final answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// It calls the response tool (`USE_STRUCTURED_RESPONSE=true`, as upstream does).
    #[default]
    Structured,
    /// It writes `[FINAL ANSWER]` first (`USE_STRUCTURED_RESPONSE=false`).
    Marker,
    /// Its text without calls is the answer; what sub-agents do.
    Plain,
}

/// The limits of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most steps; a model turn is one, a round of tools is one (`LANGGRAPH_RECURSION_LIMIT`).
    pub steps: u32,
    /// Model turns in a row that may bring neither text nor a call.
    pub empty_turns: u32,
    /// Size in tokens that the conversation may have before old parts are dropped (`MAX_CONTEXT_TOKENS`).
    pub context_tokens: u64,
    /// Newest messages that trimming never touches (`MIN_MESSAGES_TO_KEEP`).
    pub keep_messages: usize,
    /// Characters of one tool result that the model gets to read (`MAX_TOOL_OUTPUT_CHARS`).
    pub tool_output_chars: usize,
    /// Most virtual files (`MAX_VIRTUAL_FILES`).
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 500,
            empty_turns: 3,
            context_tokens: 100_000,
            keep_messages: 4,
            tool_output_chars: 50_000,
            files: 1000,
        }
    }
}

//! What a run may use, and what the engine knows of a tool besides its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the engine knows of a tool. A tool without an entry has the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolTraits {
    /// The budget that its calls count against: a key of [`Budget::tools`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Most characters of a result that the model reads, if fewer than the general limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_chars: Option<usize>,
    /// Most results of one call: its argument `limit` is lowered to this number, and set where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<u32>,
    /// Whether its results are documents. They are sources of the answer, and clients do not see them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_knowledge: bool,
    /// Whether a call whose result was lost is repeated: the tool only reads, or is idempotent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_repeatable: bool,
}

/// What one run of an agent may use; without a number, as much as it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Most calls of the tools that share a budget, by its key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u32>,
}

impl Budget {
    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// What stopped or restricted a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// The calls of one tool.
    ToolCalls,
}

impl LimitKind {
    /// A bounded name for logs and metric labels.
    pub const fn category(self) -> &'static str {
        match self {
            Self::ToolCalls => "tool_calls",
        }
    }
}

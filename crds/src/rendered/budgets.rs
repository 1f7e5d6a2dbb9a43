//! The budgets of runs and tools, and the prices of models.

use serde::{Deserialize, Serialize};

use crate::resource::derive::JsonSchema;

/// What runs may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// The budget of each run of the supervisor.
    #[serde(default)]
    pub run: Budget,
    /// The budgets of tools in each run.
    #[serde(default)]
    pub tools: Vec<ToolBudget>,
    /// What models cost, if a cost is limited.
    #[serde(default)]
    pub prices: Vec<ModelPrice>,
}

impl Budgets {
    /// Whether nothing is limited.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What one run may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Most calls of tools and agents.
    #[serde(default)]
    pub calls: Option<u32>,
    /// Most tokens.
    #[serde(default)]
    pub tokens: Option<u32>,
    /// Most money for models and for tools whose calls have a price, in picodollars.
    #[serde(default)]
    pub cost: Option<u64>,
    /// Most time, in milliseconds.
    #[serde(default)]
    pub time_ms: Option<u64>,
}

/// A budget that tools share in each run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolBudget {
    /// The tools, by name; `*` matches anything, and `SERVER/TOOL` names a tool of one server.
    pub tools: Vec<String>,
    /// Most calls of all these tools together; [`ToolBudget::ANY_CALLS`] if they are not limited.
    pub calls: u32,
    /// Most tokens of their results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Most money for their calls, in picodollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What a call costs, in picodollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<u64>,
    /// Most time of their calls, added up, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl ToolBudget {
    /// The number of calls that limits nothing. The field is always written, because readers require it.
    pub const ANY_CALLS: u32 = u32::MAX;
}

/// What a model costs, in micro-dollars for a million tokens, which are picodollars for each token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// Its name without the provider.
    pub model: String,
    /// For tokens that it reads.
    pub input: u64,
    /// For tokens in the provider's cache.
    pub cached: u64,
    /// For tokens that it writes.
    pub output: u64,
}

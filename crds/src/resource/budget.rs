//! `spec.budgets`: what runs may use, and what models cost. `spec.limits.guards`: when a run that makes no progress is stopped.

use serde::{Deserialize, Serialize};

use super::derive::{JsonSchema, KubeSchema};

/// What runs may use. Without a number, a run may use as much as it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// The budget of each request: the run of the supervisor, with the runs of agents in its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Budget>,
    /// The budget of each run of an agent that has no `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Budget>,
    /// The budgets of tools in each run. The first entry that covers a tool decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tools: Vec<ToolBudget>,
    /// What models cost. An entry replaces the built-in price of its model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub prices: Vec<ModelPrice>,
}

/// What one run may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Most calls of tools and agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub calls: Option<u32>,
    /// Most tokens that models read and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub tokens: Option<u32>,
    /// Most money for models, and for tools whose calls have a price, in US dollars, for example `"0.50"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub cost_usd: Option<String>,
    /// Most seconds. The default of a request is an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub seconds: Option<u32>,
}

/// A budget that tools share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolBudget {
    /// The tools, by name; `*` matches anything, and `SERVER/TOOL` names a tool of one server.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 128)))]
    pub tools: Vec<String>,
    /// Most calls of all these tools together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub calls: Option<u32>,
    /// Most tokens of their results together, estimated as a quarter of the bytes that the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub tokens: Option<u32>,
    /// Most money for their calls, in US dollars. Needs `callUsd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub cost_usd: Option<String>,
    /// Most seconds that their calls take, added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub seconds: Option<u32>,
    /// What a call costs, in US dollars. It also counts for the `costUsd` of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub call_usd: Option<String>,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// The name of the model, without its provider; of a scripted model, the name of the script without extension.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// For tokens that the model reads.
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub input_usd: String,
    /// For tokens that the provider has in its cache. The default is the price of `inputUsd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub cached_input_usd: Option<String>,
    /// For tokens that the model writes.
    #[schemars(length(min = 1, max = 13), regex(pattern = r"^[0-9]{1,6}([.][0-9]{1,6})?$"))]
    pub output_usd: String,
}

/// When a run that makes no progress is reminded, then limited, then stopped with an answer. 0 switches a guard off.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Guards {
    /// Equal calls with equal results.
    #[serde(default = "three")]
    #[schemars(range(max = 1000))]
    pub repeated_calls: u32,
    /// Equal errors of one tool, without a success between them.
    #[serde(default = "three")]
    #[schemars(range(max = 1000))]
    pub repeated_errors: u32,
    /// Times that a run calls the same two tools with the same arguments by turns.
    #[serde(default = "three")]
    #[schemars(range(max = 1000))]
    pub ping_pong: u32,
    /// Answers of the model in a row that contain neither text nor a call.
    #[serde(default = "three")]
    #[schemars(range(max = 1000))]
    pub empty_turns: u32,
    /// Rounds of calls in which no step of an unfinished plan changes.
    #[serde(default = "twelve")]
    #[schemars(range(max = 1000))]
    pub plan_rounds: u32,
}

impl Guards {
    /// Whether nothing differs from the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Guards {
    fn default() -> Self {
        let (three, plan_rounds) = (three(), twelve());
        Self {
            repeated_calls: three,
            repeated_errors: three,
            ping_pong: three,
            empty_turns: three,
            plan_rounds,
        }
    }
}

const fn three() -> u32 {
    3
}

const fn twelve() -> u32 {
    12
}

//! What a run may use, and what the engine knows of a tool besides its name.

use std::collections::BTreeMap;

use caipe_model::Usage;
use serde::{Deserialize, Serialize};

use crate::tool_budget::{self, ToolBudget};

/// What the engine knows of a tool. A tool without an entry has the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "any combination is possible")]
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
    /// Whether a call waits until earlier calls of the same turn have ended that have this trait too: they work on the same files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_order: bool,
    /// Whether a call only lets time pass. A model that calls it between equal calls polls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pause: bool,
    /// Calls that are never made, whatever a person approves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refuse: Vec<RefusedValues>,
}

/// Values of an argument with which a tool is never called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedValues {
    pub argument: String,
    /// The values, in any case; `*` matches anything. A value that is no text is refused too, because it cannot be judged.
    pub values: Vec<String>,
}

/// What one run of an agent may use; without a number, as much as it needs. The work of agents in the same process counts
/// for the run that delegates to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Most calls of tools and agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Most tokens that models read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most money for models and for tools whose calls have a price, in picodollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What models cost, by their names without the provider.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// The budgets that tools share, by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "tool_budget::by_key")]
    pub tools: BTreeMap<String, ToolBudget>,
}

impl Budget {
    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the run as a whole is limited.
    fn limits_run(&self) -> bool {
        self.calls.is_some() || self.tokens.is_some() || self.cost.is_some()
    }

    /// What is left of the budget of a run; `None` if only its tools are limited.
    pub(crate) fn after(&self, spent: &Spent) -> Option<Self> {
        let left = |most: Option<u64>, used: u64| most.map(|most| most.saturating_sub(used));
        self.limits_run().then(|| Self {
            calls: left(self.calls, spent.calls),
            tokens: left(self.tokens, spent.tokens),
            cost: left(self.cost, spent.cost),
            ..Self::default()
        })
    }

    /// Lowers the limits to those of `outer`, which is what is left for a run that is part of another.
    pub fn restrict(&mut self, outer: &Self) {
        let lower = |own: Option<u64>, outer: Option<u64>| own.into_iter().chain(outer).min();
        self.calls = lower(self.calls, outer.calls);
        self.tokens = lower(self.tokens, outer.tokens);
        self.cost = lower(self.cost, outer.cost);
    }
}

/// What a model costs, in picodollars for each token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For a token that the model reads.
    pub input: u64,
    /// For one that the provider has in its cache.
    pub cached: u64,
    /// For one that the model writes.
    pub output: u64,
}

impl Price {
    fn of(self, usage: Usage) -> u64 {
        let cached = usage.cache_read_tokens.min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - cached, self.input),
            (cached, self.cached),
            (usage.output_tokens, self.output),
        ];
        parts
            .into_iter()
            .fold(0, |sum: u64, (tokens, price)| sum.saturating_add(tokens.saturating_mul(price)))
    }
}

/// What a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub calls: u64,
    pub tokens: u64,
    /// In picodollars. A model or a tool without a price costs nothing.
    pub cost: u64,
}

impl Spent {
    /// Adds a turn of a model.
    pub(crate) fn add_turn(&mut self, budget: &Budget, model: &str, usage: Usage) {
        self.tokens = self.tokens.saturating_add(usage.input_tokens).saturating_add(usage.output_tokens);
        let name = model.split_once('/').map_or(model, |(_, name)| name);
        let price = budget.prices.get(name).copied().unwrap_or_default();
        self.cost = self.cost.saturating_add(price.of(usage));
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost.saturating_add(other.cost);
    }
}

/// What stopped or restricted a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// The calls of one tool, or of several that share a budget.
    ToolCalls,
    /// The results of such tools.
    ToolTokens,
    /// The prices of their calls.
    ToolCost,
    /// The time of their calls, added up.
    ToolTime,
    /// All calls of a run.
    Calls,
    Tokens,
    Cost,
    Time,
    RepeatedCalls,
    RepeatedErrors,
    PingPong,
    EmptyTurns,
    PlanRounds,
}

impl LimitKind {
    /// A bounded name for logs and metric labels.
    pub const fn category(self) -> &'static str {
        match self {
            Self::ToolCalls => "tool_calls",
            Self::ToolTokens => "tool_tokens",
            Self::ToolCost => "tool_cost",
            Self::ToolTime => "tool_time",
            Self::Calls => "calls",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
            Self::RepeatedCalls => "repeated_calls",
            Self::RepeatedErrors => "repeated_errors",
            Self::PingPong => "ping_pong",
            Self::EmptyTurns => "empty_turns",
            Self::PlanRounds => "plan_rounds",
        }
    }
}

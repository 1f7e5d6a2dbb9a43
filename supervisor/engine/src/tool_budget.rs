//! The budgets that tools share, and what is used of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// What the calls of the tools that share a budget may use in one run; without a number, as much as they need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolBudget {
    /// Most calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Most tokens of results. They are estimated from the text that the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most money for calls, in picodollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What a call costs, in picodollars. It also counts for the run.
    pub price: u64,
    /// Most time of calls, added up, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl From<u64> for ToolBudget {
    fn from(calls: u64) -> Self {
        Self { calls: Some(calls), ..Self::default() }
    }
}

/// What a run has used of the budget of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSpent {
    pub calls: u64,
    pub tokens: u64,
    /// In picodollars.
    pub cost: u64,
    pub time_ms: u64,
    /// The model read how much is left.
    pub(crate) warned: bool,
    /// The end of the budget was emitted.
    pub(crate) reported: bool,
}

impl From<u64> for ToolSpent {
    fn from(calls: u64) -> Self {
        Self { calls, ..Self::default() }
    }
}

/// Reads values by the keys of budgets. A run that was stored before there were other limits than calls has only their number.
pub(crate) fn by_key<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + From<u64>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored<T> {
        Calls(u64),
        Whole(T),
    }
    let stored = BTreeMap::<String, Stored<T>>::deserialize(deserializer)?;
    let value = |stored| match stored {
        Stored::Calls(calls) => T::from(calls),
        Stored::Whole(whole) => whole,
    };
    Ok(stored.into_iter().map(|(key, stored)| (key, value(stored))).collect())
}

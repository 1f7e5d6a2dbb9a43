//! What the guards remember of a run.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::digest;

/// Most different calls that are remembered.
const MOST_CALLS: usize = 200;

/// Most calls whose order is remembered.
const MOST_RECENT: usize = 64;

/// What the guards remember of a run. Calls and results are digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loops {
    /// Calls by tool and arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) calls: BTreeMap<String, Repeated>,
    /// The newest error of each tool that has not succeeded since.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) errors: BTreeMap<String, Repeated>,
    /// The newest calls in order.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) recent: VecDeque<String>,
    /// Empty turns of the model so far.
    pub(crate) empty_turns: u32,
    /// The to-do list after the newest round of calls.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) plan: String,
    /// Rounds of calls since that list changed.
    pub(crate) plan_rounds: u32,
}

/// A result that came several times in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Repeated {
    pub(crate) result: String,
    pub(crate) times: u32,
    /// Calls that were not run.
    pub(crate) refused: u32,
}

impl Repeated {
    fn count(&mut self, result: &str) -> u32 {
        let result = digest::short(result);
        if self.result == result {
            self.times += 1;
        } else {
            *self = Self { result, times: 1, refused: 0 };
        }
        self.times
    }
}

impl Loops {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Counts a call with its result. Returns how often in a row the call had this result.
    pub(crate) fn count_call(&mut self, signature: &str, result: &str) -> u32 {
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(signature) {
            self.calls.retain(|_, repeated| repeated.times > 1);
        }
        self.calls.entry(signature.to_owned()).or_default().count(result)
    }

    /// Counts an error of a tool, or its success. Returns how often in a row the tool had this error. Numbers in an error, such
    /// as ids and times, do not distinguish it.
    pub(crate) fn count_error(&mut self, tool: &str, error: Option<&String>) -> u32 {
        let Some(error) = error else {
            self.errors.remove(tool);
            return 0;
        };
        let kind: String = error.chars().filter(|c| !c.is_numeric()).collect();
        self.errors.entry(tool.to_owned()).or_default().count(&kind)
    }

    pub(crate) fn push(&mut self, signature: String) {
        self.recent.push_back(signature);
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_front();
        }
    }

    /// The calls at the end that two calls make by turns.
    fn alternating(&self) -> usize {
        let newest = || self.recent.iter().rev();
        let alternates = newest().zip(newest().skip(1)).zip(newest().skip(2));
        match alternates.take_while(|((last, middle), first)| last == first && last != middle).count() {
            0 => 0,
            count => count + 2,
        }
    }

    /// How often the newest two calls were made by turns.
    pub(crate) fn cycles(&self) -> u32 {
        u32::try_from(self.alternating() / 2).unwrap_or(u32::MAX)
    }

    /// Whether the newest call completes a cycle.
    pub(crate) fn has_full_cycle(&self) -> bool {
        self.alternating().is_multiple_of(2)
    }

    /// Whether a call is the next one of the alternation.
    pub(crate) fn continues(&self, signature: &str) -> bool {
        self.recent.len() >= 2 && self.recent[self.recent.len() - 2] == signature
    }
}

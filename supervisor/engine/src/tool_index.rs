//! An index of tools by the words of their names, parameters and descriptions. Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_model::ToolSpec;
use serde_json::{Map, Value};

/// Most tools that one search finds.
const MOST_FOUND: usize = 8;
/// Most characters of a description that a result shows.
const SUMMARY_CHARS: usize = 200;
/// What a word counts in a tool's name, in a parameter's name and in the description.
const WEIGHTS: (u32, u32, u32) = (3, 1, 1);
/// How soon further occurrences of a word stop counting, as `k1` of BM25.
const SATURATION: f64 = 1.2;

/// The tools that a model finds by words, because their descriptions are many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolIndex(BTreeMap<String, IndexedTool>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexedTool {
    summary: String,
    /// The weight of each word.
    words: BTreeMap<String, u32>,
    tokens: u64,
}

impl ToolIndex {
    /// An index of tools with the estimated tokens of their descriptions and schemas.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a ToolSpec, u64)>) -> Self {
        let indexed = |(spec, tokens): (&ToolSpec, u64)| {
            let summary = spec.description.trim().chars().take(SUMMARY_CHARS).collect();
            (spec.name.clone(), IndexedTool { summary, words: words_of(spec), tokens })
        };
        Self(tools.into_iter().map(indexed).collect())
    }

    /// Whether a tool is one of them.
    pub fn contains(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// The names of all, in order.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &String> {
        self.0.keys()
    }

    /// The beginning of a tool's description.
    pub(crate) fn summary(&self, tool: &str) -> &str {
        self.0.get(tool).map_or("", |tool| &tool.summary)
    }

    /// The estimated tokens of the descriptions and schemas of these tools.
    pub(crate) fn tokens_of(&self, tools: &[String]) -> u64 {
        tools.iter().filter_map(|tool| self.0.get(tool)).map(|tool| tool.tokens).sum()
    }

    /// The names of the tools that match best, the best first; of equal ones in the order of their names. A tool that the query
    /// names comes first.
    pub(crate) fn search(&self, query: &str) -> Vec<&str> {
        let words: BTreeSet<String> = words(query).collect();
        let rarity = |word: &String| {
            let having = self.0.values().filter(|tool| tool.words.contains_key(word)).count();
            (1.0 + f64_of(self.0.len()) / (1.0 + f64_of(having))).ln()
        };
        let words: Vec<(&String, f64)> = words.iter().map(|word| (word, rarity(word))).collect();
        let is_named = |name: &str| query.split(|c: char| !is_name(c)).any(|part| part == name);
        let score = |(name, tool): (&String, &IndexedTool)| {
            let of_word = |(word, rarity): &(&String, f64)| {
                let weight = f64::from(tool.words.get(*word).copied().unwrap_or_default());
                rarity * weight / (weight + SATURATION)
            };
            let named = if is_named(name) { f64_of(words.len()) * 10.0 } else { 0.0 };
            words.iter().map(of_word).sum::<f64>() + named
        };
        let mut found: Vec<(&str, f64)> = self
            .0
            .iter()
            .map(|tool| (tool.0.as_str(), score(tool)))
            .filter(|(_, score)| *score > 0.0)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.into_iter().take(MOST_FOUND).map(|(name, _)| name).collect()
    }
}

fn words_of(spec: &ToolSpec) -> BTreeMap<String, u32> {
    let mut weights = BTreeMap::<String, u32>::new();
    let (of_name, of_parameter, of_description) = WEIGHTS;
    let mut add = |text: &str, weight: u32| {
        for word in words(text) {
            let sum = weights.entry(word).or_default();
            *sum = sum.saturating_add(weight);
        }
    };
    add(&spec.name, of_name);
    add(&spec.description, of_description);
    let parameters = spec.schema.get("properties").and_then(Value::as_object);
    parameters.into_iter().flat_map(Map::keys).for_each(|parameter| add(parameter, of_parameter));
    weights
}

/// The words of a text in lower case, without the `s` of a plural: also the parts of names such as `list_pods` and `listPods`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        before = c;
    }
    let lower = spaced.to_lowercase();
    let words: Vec<String> = lower.split_whitespace().map(singular).collect();
    words.into_iter()
}

fn singular(word: &str) -> String {
    let stem = word.strip_suffix('s').filter(|stem| stem.chars().count() > 2 && !stem.ends_with('s'));
    stem.unwrap_or(word).to_owned()
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Counts of tools and words are far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "a rounded count is good enough for a score")]
const fn f64_of(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "tool_index_tests.rs"]
pub(crate) mod tests;

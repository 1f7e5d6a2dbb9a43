//! What agents remember about a person, as the server lists it at `/memory`.

use serde::Deserialize;
use serde_json::Value;

use crate::clean::one_line;

/// A fact, safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFact {
    pub id: String,
    /// The fact, who remembers it, and since when.
    pub line: String,
}

/// A page of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactList {
    pub facts: Vec<ListedFact>,
    /// Whether there are more than these.
    pub has_more: bool,
}

#[derive(Deserialize)]
struct Page {
    facts: Vec<Fact>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Fact {
    id: String,
    agent: String,
    #[serde(rename = "fact")]
    text: String,
    saved: String,
}

impl FactList {
    /// Reads a page; `None` if it is none.
    pub fn read(page: Value) -> Option<Self> {
        let Page { facts, next } = serde_json::from_value(page).ok()?;
        let listed = |Fact { id, agent, text, saved }: Fact| {
            let day: String = saved.chars().take_while(|c| *c != 'T').collect();
            let line = format!("{} ({}, {})", one_line(&text), one_line(&agent), one_line(&day));
            ListedFact { id: one_line(&id), line }
        };
        Some(Self { facts: facts.into_iter().map(listed).collect(), has_more: next.is_some() })
    }
}

/// How many facts were forgotten, as the server says.
pub fn forgotten(response: &Value) -> u64 {
    response["forgotten"].as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_one_line_each_and_safe_for_a_terminal() {
        let fact = json!({ "id": "a1", "agent": "jira", "fact": "likes\n\u{1b}[31mtea", "saved": "2026-11-28T10:00:00Z" });
        let list = FactList::read(json!({ "facts": [fact], "next": "a1" })).unwrap();
        assert!(list.has_more);
        let [fact] = list.facts.as_slice() else { panic!("{list:?}") };
        assert_eq!((fact.id.as_str(), fact.line.as_str()), ("a1", "likes tea (jira, 2026-11-28)"));
        assert_eq!(FactList::read(json!({ "facts": [] })).unwrap(), FactList::default());
        assert_eq!(FactList::read(json!({ "error": "not found" })), None);
        assert_eq!((forgotten(&json!({ "forgotten": 3 })), forgotten(&json!({}))), (3, 0));
    }
}

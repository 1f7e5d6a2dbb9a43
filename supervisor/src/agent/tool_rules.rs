//! The rules for groups of an agent's tools: budgets, sizes, and whether their results are documents. Pure.

use std::collections::BTreeMap;

use caipe_crds::rendered::Rag;
use caipe_crds::resource::budget::ToolBudget;
use caipe_engine::{ToolTraits, name_matches};

use crate::mcp::ToolsView;

/// A rule for the tools that its patterns cover. The first rule that sets a trait decides it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRule {
    /// `*` matches anything; against the names of a tool for the model, at its server, and with the server's name.
    pub tools: Vec<String>,
    /// Most calls of all these tools together in a run.
    pub calls: Option<u32>,
    /// The rest of the traits.
    pub traits: ToolTraits,
}

impl ToolRule {
    /// The rules for the tools of a knowledge base.
    pub fn of_knowledge(rag: &Rag) -> Vec<Self> {
        let capped = |tool: &str, calls, results| Self {
            tools: vec![tool.to_owned()],
            calls: Some(calls),
            traits: ToolTraits { results, ..ToolTraits::default() },
        };
        let documents = ToolTraits {
            output_chars: Some(rag.max_output_chars as usize),
            is_knowledge: true,
            is_repeatable: true,
            ..ToolTraits::default()
        };
        vec![
            capped("search", rag.search_max_calls, Some(rag.max_search_results)),
            capped("fetch_document", rag.fetch_document_max_calls, None),
            Self { tools: rag.tool_names.clone(), calls: None, traits: documents },
        ]
    }

    /// The rules for the budgets of tools.
    pub fn of_budgets(budgets: &[ToolBudget]) -> Vec<Self> {
        let rule = |ToolBudget { tools, calls }: &ToolBudget| Self {
            tools: tools.clone(),
            calls: Some(*calls),
            traits: ToolTraits::default(),
        };
        budgets.iter().map(rule).collect()
    }

    fn covers(&self, names: &[String]) -> bool {
        self.tools.iter().any(|pattern| names.iter().any(|name| name_matches(pattern, name)))
    }

    /// The key of its budget.
    fn key(&self) -> String {
        self.tools.join(",")
    }
}

/// What these rules say of the tools, by their names for the model, and the budgets of the tools.
pub(super) fn apply(
    rules: &[ToolRule],
    view: &ToolsView,
) -> (BTreeMap<String, ToolTraits>, BTreeMap<String, u32>) {
    let (mut traits, mut budget) = (BTreeMap::new(), BTreeMap::new());
    for tool in view.classified() {
        let mut known = ToolTraits::default();
        for rule in rules.iter().filter(|rule| rule.covers(&tool.names)) {
            if let Some(calls) = rule.calls.filter(|_| known.budget.is_none()) {
                known.budget = Some(rule.key());
                budget.insert(rule.key(), calls);
            }
            known.output_chars = known.output_chars.or(rule.traits.output_chars);
            known.results = known.results.or(rule.traits.results);
            known.is_knowledge |= rule.traits.is_knowledge;
            known.is_repeatable |= rule.traits.is_repeatable;
        }
        if known != ToolTraits::default() {
            traits.insert(tool.model_name.to_owned(), known);
        }
    }
    (traits, budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_of_a_knowledge_base_have_caps_and_sizes() {
        let rag = Rag {
            url: String::new(),
            headers: BTreeMap::new(),
            secrets_dir: None,
            search_max_calls: 5,
            fetch_document_max_calls: 10,
            max_output_chars: 10_000,
            max_search_results: 3,
            tool_names: vec!["search".to_owned(), "fetch_*".to_owned()],
        };
        let view =
            ToolsView::with_servers(&[("kb", &["search", "fetch_document", "fetch_url", "graph_query"])]);
        let (traits, budget) = apply(&ToolRule::of_knowledge(&rag), &view);
        assert_eq!(budget, [("search".to_owned(), 5), ("fetch_document".to_owned(), 10)].into());
        assert_eq!((traits["search"].results, traits["search"].output_chars), (Some(3), Some(10_000)));
        assert!(traits["fetch_url"].is_knowledge && traits["fetch_url"].budget.is_none());
        assert!(!traits.contains_key("graph_query"));
    }

    #[test]
    fn tools_share_the_budget_of_their_rule_and_the_first_rule_wins() {
        let rule = |tools: &str, calls| ToolRule {
            tools: vec![tools.to_owned()],
            calls: Some(calls),
            ..ToolRule::default()
        };
        let view = ToolsView::with_servers(&[("jira", &["get_issue", "get_user", "delete_issue"])]);
        let (traits, budget) = apply(&[rule("jira/get_*", 7), rule("*", 9)], &view);
        assert_eq!(budget, [("jira/get_*".to_owned(), 7), ("*".to_owned(), 9)].into());
        assert_eq!(traits["get_issue"].budget, traits["get_user"].budget);
        assert_eq!(traits["delete_issue"].budget.as_deref(), Some("*"));
    }
}

//! The rules for groups of an agent's tools: budgets, sizes, and whether their results are documents. Pure.

use std::collections::BTreeMap;

use caipe_crds::rendered::{McpServer, Rag, RefusedCalls, ToolBudget as Declared};
use caipe_engine::{RefusedValues, ToolBudget, ToolTraits, name_matches};

use crate::builtin::OfferedTool;

/// A rule for the tools that its patterns cover. The first rule that sets a trait decides it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRule {
    /// `*` matches anything; against the names of a tool for the model, at its server, and with the server's name.
    pub tools: Vec<String>,
    /// What all these tools together may use in a run.
    pub budget: Option<ToolBudget>,
    /// The rest of the traits.
    pub traits: ToolTraits,
}

impl ToolRule {
    /// The rules for the tools of a knowledge base.
    pub fn of_knowledge(rag: &Rag) -> Vec<Self> {
        let capped = |tool: &str, calls: u32, results| Self {
            tools: vec![tool.to_owned()],
            budget: Some(u64::from(calls).into()),
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
            Self { tools: rag.tool_names.clone(), budget: None, traits: documents },
        ]
    }

    /// The rules for the budgets of tools.
    pub fn of_budgets(budgets: &[Declared]) -> Vec<Self> {
        let budget = |declared: &Declared| ToolBudget {
            calls: (declared.calls < Declared::ANY_CALLS).then_some(declared.calls.into()),
            tokens: declared.tokens.map(u64::from),
            cost: declared.cost,
            price: declared.price.unwrap_or_default(),
            time_ms: declared.time_ms,
        };
        let rule = |declared: &Declared| Self {
            tools: declared.tools.clone(),
            budget: Some(budget(declared)),
            traits: ToolTraits::default(),
        };
        budgets.iter().map(rule).collect()
    }

    /// The rule for the tools that only read, as the agent's `readTools` declares: their calls may be repeated.
    pub fn of_read_tools(patterns: &[String]) -> Self {
        let traits = ToolTraits { is_repeatable: true, ..ToolTraits::default() };
        Self { tools: patterns.to_vec(), budget: None, traits }
    }

    /// The rules for the calls that the agent never makes.
    pub fn of_servers(servers: &[McpServer]) -> impl Iterator<Item = Self> {
        let rule = |server: &str, refused: &RefusedCalls| {
            let values = RefusedValues { argument: refused.argument.clone(), values: refused.values.clone() };
            let traits = ToolTraits { refuse: vec![values], ..ToolTraits::default() };
            Self { tools: vec![format!("{server}/{}", refused.tools)], budget: None, traits }
        };
        servers.iter().flat_map(move |server| server.refuse.iter().map(move |it| rule(&server.name, it)))
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
pub(super) fn apply<'a>(
    rules: &[ToolRule],
    tools: impl Iterator<Item = &'a OfferedTool>,
) -> (BTreeMap<String, ToolTraits>, BTreeMap<String, ToolBudget>) {
    let (mut traits, mut budgets) = (BTreeMap::new(), BTreeMap::new());
    for tool in tools {
        let mut known = tool.traits.clone();
        for rule in rules.iter().filter(|rule| rule.covers(&tool.names)) {
            if let Some(budget) = rule.budget.filter(|_| known.budget.is_none()) {
                known.budget = Some(rule.key());
                budgets.insert(rule.key(), budget);
            }
            known.output_chars = known.output_chars.or(rule.traits.output_chars);
            known.results = known.results.or(rule.traits.results);
            known.is_knowledge |= rule.traits.is_knowledge;
            known.is_repeatable |= rule.traits.is_repeatable;
            known.refuse.extend_from_slice(&rule.traits.refuse);
        }
        if known != ToolTraits::default() {
            traits.insert(tool.spec.name.clone(), known);
        }
    }
    (traits, budgets)
}

#[cfg(test)]
mod tests {
    use caipe_crds::rendered::McpTransport;

    use super::*;
    use crate::mcp::ToolsView;

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
        let (traits, budget) = apply(&ToolRule::of_knowledge(&rag), view.tools.iter());
        assert_eq!(
            budget,
            [("search".to_owned(), 5.into()), ("fetch_document".to_owned(), 10.into())].into()
        );
        assert_eq!((traits["search"].results, traits["search"].output_chars), (Some(3), Some(10_000)));
        assert!(traits["fetch_url"].is_knowledge && traits["fetch_url"].budget.is_none());
        assert!(!traits.contains_key("graph_query"));
    }

    #[test]
    fn calls_of_tools_that_are_declared_to_read_may_be_repeated() {
        let view = ToolsView::with_servers(&[("jira", &["get_issue", "jql", "delete_issue"])]);
        let rule = ToolRule::of_read_tools(&["jql".to_owned()]);
        let (traits, _) = apply(&[rule], view.tools.iter());
        assert!(traits.values().all(|traits| traits.is_repeatable));
        assert_eq!(traits.keys().collect::<Vec<_>>(), ["jql"], "a name alone declares nothing");
    }

    #[test]
    fn the_calls_that_a_server_lists_are_refused_for_its_tools_only() {
        let mut kubernetes =
            McpServer::new("kubernetes", McpTransport::Http { url: String::new(), headers: BTreeMap::new() });
        let values = vec!["Secret".to_owned()];
        kubernetes.refuse = vec![RefusedCalls {
            tools: "resources_*".to_owned(),
            argument: "kind".to_owned(),
            values: values.clone(),
        }];
        let rules: Vec<ToolRule> = ToolRule::of_servers(&[kubernetes]).collect();
        let view = ToolsView::with_servers(&[
            ("kubernetes", &["resources_get", "pods_get"]),
            ("own", &["resources_list"]),
        ]);
        let (traits, _) = apply(&rules, view.tools.iter());
        assert_eq!(traits.keys().collect::<Vec<_>>(), ["resources_get"]);
        assert_eq!(traits["resources_get"].refuse, [RefusedValues { argument: "kind".to_owned(), values }]);
    }

    #[test]
    fn tools_share_the_budget_of_their_rule_and_the_first_rule_wins() {
        let rule = |tools: &str, calls: u64| ToolRule {
            tools: vec![tools.to_owned()],
            budget: Some(calls.into()),
            ..ToolRule::default()
        };
        let view = ToolsView::with_servers(&[("jira", &["get_issue", "get_user", "delete_issue"])]);
        let (traits, budget) = apply(&[rule("jira/get_*", 7), rule("*", 9)], view.tools.iter());
        assert_eq!(budget, [("jira/get_*".to_owned(), 7.into()), ("*".to_owned(), 9.into())].into());
        assert_eq!(traits["get_issue"].budget, traits["get_user"].budget);
        assert_eq!(traits["delete_issue"].budget.as_deref(), Some("*"));
    }
}

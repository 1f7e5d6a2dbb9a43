use std::sync::Arc;

use super::*;
use crate::names::AgentName;

fn tool(name: &str, description: &str, parameters: &[&str]) -> ToolSpec {
    let properties: Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object", "properties": properties}),
    }
}

fn index() -> ToolIndex {
    let tools = [
        tool("list_pods", "List the pods of a namespace.", &["namespace"]),
        tool("deletePod", "Delete a pod.", &["namespace", "name"]),
        tool("get_logs", "Read the log lines of a container.", &["namespace", "pod", "since"]),
        tool("create_issue", "Open a ticket in a project.", &["project", "title"]),
        tool("search_issues", "Find tickets by words.", &["query"]),
    ];
    ToolIndex::new(tools.iter().map(|tool| (tool, 10)))
}

#[test]
fn tools_are_found_by_words_of_their_names_descriptions_and_parameters() {
    for (query, expected) in [
        ("list pods", Some("list_pods")),
        ("LIST PODS!", Some("list_pods")),
        ("delete a pod", Some("deletePod")),
        ("logs of a container", Some("get_logs")),
        ("open a ticket", Some("create_issue")),
        ("find tickets", Some("search_issues")),
        ("since", Some("get_logs")),
        ("pods, and get_logs", Some("get_logs")),
        ("invoice", None),
        ("", None),
        ("\u{1F600} ...", None),
    ] {
        assert_eq!(index().search(query).first().copied(), expected, "{query}");
    }
}

#[test]
fn found_tools_stay_found_in_the_order_of_the_searches() {
    let mut state = RunState::new(AgentName::new("a"));
    let find = |state: &mut RunState, query: &str| {
        find(state, json!({ "query": query }).as_object().unwrap_or(&Map::new()))
    };
    assert!(find(&mut state, "pods").unwrap_err().contains("available already"));
    state.abilities.searched = Some(Arc::new(index()));
    let found = find(&mut state, "open a ticket").unwrap();
    assert!(found.contains("- `create_issue`: Open a ticket in a project."), "{found}");
    assert_eq!(state.found.first().map(String::as_str), Some("create_issue"));
    let before = state.found.clone();
    find(&mut state, "delete pods, open a ticket").unwrap();
    assert!(state.found.starts_with(&before) && state.found.contains(&"deletePod".to_owned()));
    assert_eq!(index().tokens_of(&state.found), 10 * u64::try_from(state.found.len()).unwrap());
    assert!(find(&mut state, "invoice").unwrap().starts_with("No tool matches."));
    assert!(find(&mut state, "  ").unwrap_err().contains("`query`"));
}

#[test]
fn the_description_names_the_tools_within_its_bound() {
    let named = spec(&index()).description;
    assert!(named.contains("create_issue, deletePod, get_logs, list_pods, search_issues."), "{named}");
    let many: Vec<ToolSpec> = (0..1000).map(|at| tool(&format!("tool_number_{at:04}"), "", &[])).collect();
    let index = ToolIndex::new(many.iter().map(|tool| (tool, 1)));
    let described = spec(&index).description;
    assert!(described.len() < NAMES_CHARS + 1000 && described.ends_with(" more."), "{described}");
    assert_eq!(index.search("tool number").len(), MOST_FOUND);
}

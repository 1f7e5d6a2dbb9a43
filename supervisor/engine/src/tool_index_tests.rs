use serde_json::json;

use super::*;

pub(crate) fn tool(name: &str, description: &str, parameters: &[&str]) -> ToolSpec {
    let properties: Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object", "properties": properties}),
    }
}

pub(crate) fn index() -> ToolIndex {
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
fn a_search_finds_no_more_than_its_bound() {
    let many: Vec<ToolSpec> = (0..1000).map(|at| tool(&format!("tool_number_{at:04}"), "", &[])).collect();
    assert_eq!(ToolIndex::new(many.iter().map(|tool| (tool, 1))).search("tool number").len(), MOST_FOUND);
}

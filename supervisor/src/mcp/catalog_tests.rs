use std::collections::HashSet;

use proptest::prelude::*;
use rmcp::model::Tool;
use serde_json::{Map, json};

use super::{NAME_CHARS, ServerPhase, ServerState, ToolsView, offers, unique_names};
use crate::mcp::tool_list::{MalformedTool, ToolList};
use crate::mcp::{ServerSpec, Transport};

fn tool(name: &str) -> Tool {
    serde_json::from_value(json!({"name": name, "inputSchema": {"properties": {}, "required": ["a", "b"]}}))
        .unwrap()
}

fn list(tools: Vec<Tool>) -> ToolList {
    ToolList { tools, malformed: Vec::new() }
}

fn malformed(name: &str) -> MalformedTool {
    MalformedTool { name: Some(name.to_owned()), position: 1, reason: "missing field".to_owned() }
}

fn spec(name: &str) -> ServerSpec {
    ServerSpec::new(name, Transport::http("http://x"))
}

fn ready(name: &str, tools: &[&str]) -> ServerState {
    let tools = tools.iter().map(|name| tool(name)).collect();
    let mut state = ServerState::starting(name);
    (state.status.phase, state.settled) = (ServerPhase::Ready, true);
    state.offers = offers(&spec(name), list(tools)).0;
    state
}

#[test]
fn names_tools_by_themselves_where_that_is_enough() {
    for (tools, expected) in [
        (vec![("jira", "get"), ("git", "log")], vec!["get", "log"]),
        (vec![("jira", "get"), ("git", "get"), ("git", "log")], vec!["jira_get", "git_get", "log"]),
        (vec![("files", "read_file"), ("files", "wait")], vec!["files_read_file", "files_wait"]),
        (vec![("a.b", "x.y"), ("c", "x y")], vec!["a_b_x_y", "c_x_y"]),
        // A made-up name does not take another tool's own.
        (vec![("a", "x"), ("b", "x"), ("c", "a_x")], vec!["a_x_2", "b_x", "a_x"]),
        (
            vec![("write", "file"), ("b", "file"), ("c", "RESPONSEFORMAT")],
            vec!["write_file_2", "b_file", "c_RESPONSEFORMAT"],
        ),
        // Servers of the same name.
        (vec![("a", "x"), ("a", "x")], vec!["a_x", "a_x_2"]),
    ] {
        assert_eq!(unique_names(tools.iter().copied()), expected, "{tools:?}");
    }
}

proptest! {
    #[test]
    fn names_are_unique_and_acceptable(
        tools in prop::collection::vec(("([ab.]{0,40}|write)", "([xy_.-]{1,3}|[xyü]{60,80}|task|file)"), 0..40),
    ) {
        let pairs = tools.iter().map(|(server, tool)| (server.as_str(), tool.as_str()));
        let names = unique_names(pairs.clone());
        prop_assert_eq!(names.len(), tools.len());
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for name in &names {
            let acceptable = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            prop_assert!(!name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(acceptable), "{}", name);
            prop_assert!(!super::is_builtin(name));
        }
        prop_assert_eq!(unique_names(pairs), names);
    }
}

#[test]
fn offers_each_tool_once_and_makes_its_schema_an_object() {
    let mut spec = spec("x");
    spec.deny = vec!["secret*".into()];
    let tools = vec![tool("b"), tool("secret_a"), tool("b"), tool("a"), tool("")];
    let (offers, ignored_tools) = offers(&spec, list(tools));
    assert!(ignored_tools.is_empty(), "{ignored_tools:?}");
    let view = ToolsView::of(&[ServerState { offers, ..ServerState::starting("x") }]);
    let names: Vec<&str> = view.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(view.tools[0].spec.schema["type"], "object");
}

#[test]
fn ignores_a_tool_with_a_huge_schema_and_cuts_descriptions() {
    let huge = json!({"name": "huge", "inputSchema": {"description": "x".repeat(100_000)}});
    let long = json!({"name": "long", "description": "ü".repeat(10_000), "inputSchema": {}});
    let tools = [huge, long].map(|tool| serde_json::from_value(tool).unwrap()).to_vec();
    let (offers, ignored_tools) = offers(&spec("x"), list(tools));
    assert_eq!(ignored_tools, ["tool \"huge\" is ignored: its schema is larger than 64 KiB"]);
    let view = ToolsView::of(&[ServerState { offers, ..ServerState::starting("x") }]);
    assert_eq!(view.tools.len(), 1);
    assert_eq!(view.tools[0].spec.description.chars().count(), 8_000);
}

#[test]
fn reports_a_malformed_tool_only_if_the_declaration_permits_it() {
    let mut spec = spec("x");
    spec.deny = vec!["secret*".into()];
    let malformed = ["secret_a", "b"].map(malformed).into();
    let (_, ignored_tools) = offers(&spec, ToolList { tools: Vec::new(), malformed });
    assert_eq!(ignored_tools, ["tool \"b\" is ignored: missing field"]);
}

#[test]
fn names_a_bounded_number_of_ignored_tools() {
    let tools = (0..600).map(|number| tool(&format!("t{number}"))).collect();
    let malformed = (0..30).map(|number| malformed(&format!("m{number}"))).collect();
    let (offers, ignored_tools) = offers(&spec("x"), ToolList { tools, malformed });
    assert_eq!((offers.len(), ignored_tools.len()), (512, 21));
    assert_eq!(ignored_tools[20], "11 more tools are ignored");
}

#[test]
fn is_settled_once_every_server_is_ready_or_has_failed() {
    assert!(ToolsView::of(&[]).settled);
    assert!(!ToolsView::of(&[ready("a", &[]), ServerState::starting("b")]).settled);
    assert!(ToolsView::of(&[ready("a", &[]), ready("b", &[])]).settled);
}

#[test]
fn leads_a_call_to_the_tools_own_name() {
    let view = ToolsView::of(&[ready("a", &["x", "only"]), ready("b", &["x"])]);
    let route = view.route("b_x").unwrap();
    assert_eq!((route.server, route.tool.as_str()), (1, "x"));
    assert!(view.route("x").is_none());
    let arguments: Map<_, _> = [("b".to_owned(), json!(null))].into_iter().collect();
    assert_eq!(route.missing(&arguments), ["a"]);
}

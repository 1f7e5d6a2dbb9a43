use std::sync::Arc;

use super::*;
use crate::names::AgentName;
use crate::tool_index::tests::{index, tool};

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
}

//! What an agent may do, and what its model reads about it.

use std::collections::BTreeSet;
use std::sync::Arc;

use caipe_engine::{Abilities, AgentName, EDGE_TOOLS, Limits, REQUEST_INPUT_TOOL, RunState};
use caipe_model::{Scripted, ToolSpec};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Agent, PreambleCache, Role, ToolPolicy, offered};
use crate::delegation::RunInfo;
use crate::mcp::Toolbox;

pub(crate) fn worker() -> Agent {
    let script = "turns: [{ reply: { text: done } }]";
    Agent {
        name: AgentName::new("helper"),
        title: "Helper".to_owned(),
        description: String::new(),
        prompt: "You help.".to_owned(),
        role: Role::Worker,
        model: Arc::new(Scripted::from_yaml("test", script).unwrap()),
        toolbox: Toolbox::start(Vec::new(), &std::collections::BTreeMap::new(), CancellationToken::new())
            .into(),
        a2a: None,
        streaming: true,
        limits: Limits::default(),
        require_approval: vec!["delete_*".to_owned()],
        allow_always: Vec::new(),
        tool_policy: ToolPolicy::unrestricted(),
        tool_rules: Vec::new(),
        budget: caipe_engine::Budget::default(),
        time_limit: None,
        preambles: PreambleCache::default(),
    }
}

fn names(specs: &[ToolSpec]) -> Vec<&str> {
    specs.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn every_model_is_offered_the_tools_that_the_edge_runs_and_the_form() {
    let agent = worker();
    let mut state = RunState::new(agent.name.clone());
    state.abilities = agent.abilities(&RunInfo::default());
    let request = agent.request(&state, true);
    for tool in EDGE_TOOLS.into_iter().chain([REQUEST_INPUT_TOOL]) {
        assert!(names(&request.tools).contains(&tool), "{tool}: {:?}", names(&request.tools));
    }
    assert!(request.system.starts_with("Agent: helper\n\nYou help."), "{}", request.system);
    assert!(agent.request(&state, false).tools.is_empty());
    assert_eq!(state.abilities.require_approval, ["delete_*"]);
}

#[test]
fn a_servers_tool_takes_the_place_of_a_built_in_one() {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "of a server".to_owned(),
        schema: json!({"type": "object"}),
    };
    let tools = BTreeSet::from(["jq".to_owned(), "search".to_owned()]);
    let abilities = Abilities { tools, ..Abilities::default() };
    let offered = offered(&abilities, &[tool("jq"), tool("search"), tool("gone since")]);
    let of_server: Vec<_> = offered.iter().filter(|tool| tool.description == "of a server").collect();
    assert_eq!(of_server.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["jq", "search"]);
    let all = names(&offered);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no name twice: {all:?}");
}

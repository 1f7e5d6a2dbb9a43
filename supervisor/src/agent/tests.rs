//! What an agent may do, and what its model reads about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_engine::{Abilities, AgentName, Limits, REQUEST_INPUT_TOOL, RunState};
use caipe_model::{Scripted, ToolSpec};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Agent, Delegate, Delegates, PreambleCache, Role, ToolPolicy, WorkerDelegates, offered};
use crate::builtin::{OfferedTool, ToolClass};
use crate::delegation::{ParentCall, RunInfo};
use crate::mcp::{ServerSpec, Toolbox, Transport};

pub(crate) fn worker() -> Agent {
    let script = "turns: [{ reply: { text: done } }]";
    Agent {
        name: AgentName::new("helper"),
        title: "Helper".to_owned(),
        description: String::new(),
        prompt: "You help.".to_owned(),
        role: Role::worker(),
        model: Arc::new(Scripted::from_yaml("test", script).unwrap()),
        tools: Toolbox::start(Vec::new(), &BTreeMap::new(), CancellationToken::new()).into(),
        streaming: true,
        limits: Limits::default(),
        require_approval: vec!["delete_*".to_owned()],
        allow_always: Vec::new(),
        tool_policy: ToolPolicy::unrestricted(),
        tool_rules: Vec::new(),
        tool_faults: Vec::new(),
        workspace: None,
        verification: None,
        condenser: None,
        budget: caipe_engine::Budget::default(),
        time_limit: None,
        preambles: PreambleCache::default(),
    }
}

/// A run that may be repeated is offered no tool that must not be. Tools that become ready meanwhile must not be lost to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_a_server_that_becomes_ready_are_not_taken_for_absent() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(caipe_fixtures::mcp::serve(listener, caipe_fixtures::mcp::Options::default()));
    for _ in 0..20 {
        let servers = vec![ServerSpec::new("tools", Transport::http(&url))];
        let tools = Toolbox::start(servers, &BTreeMap::new(), CancellationToken::new());
        let agent = Agent { tools: tools.into(), ..worker() };
        let mut before = agent.abilities(&RunInfo::default());
        while !before.tools.contains("echo") {
            assert!(!before.is_repeatable, "{before:?}");
            tokio::task::yield_now().await;
            before = agent.abilities(&RunInfo::default());
        }
    }
    serving.abort();
}

fn names_of(specs: &[ToolSpec]) -> Vec<&str> {
    specs.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn every_model_is_offered_the_tools_that_the_edge_runs_and_the_form() {
    let agent = worker();
    let mut state = RunState::new(agent.name.clone());
    state.abilities = agent.abilities(&RunInfo::default());
    let request = agent.request(&state, true);
    for tool in ["get_current_date", "wait", "jq", REQUEST_INPUT_TOOL] {
        assert!(names_of(&request.tools).contains(&tool), "{tool}: {:?}", names_of(&request.tools));
    }
    assert!(request.system.starts_with("Agent: helper\n\nYou help."), "{}", request.system);
    assert!(agent.request(&state, false).tools.is_empty());
    assert_eq!(state.abilities.require_approval, ["delete_*"]);
}

/// An agent delegates to the agents of its list, unless one of them has the task already or the chain is too long.
#[tokio::test]
async fn a_chain_of_delegations_ends() {
    let delegate = |name: &str| {
        let agent = Arc::new(worker());
        let delegate = Delegate {
            backend: Arc::new(crate::agents::InProcessBackend(agent)),
            active: tokio_util::task::TaskTracker::new(),
            title: name.to_owned(),
            routing_hint: format!("knows {name}"),
            sharing: super::Sharing::default(),
        };
        (AgentName::new(name), delegate)
    };
    let all: Delegates = ["github", "jira", "slack"].map(delegate).into_iter().collect();
    let names = ["github", "jira", "absent"].map(AgentName::new).into();
    let agent = Agent { role: Role::Worker(WorkerDelegates { names, all: Arc::new(all) }), ..worker() };
    for (path, expected) in [
        (&["helper"][..], &["github", "jira"][..]),
        (&["jira", "helper"], &["github"]),
        (&["a", "b", "helper"], &[]),
    ] {
        let parent = |name: &&str| ParentCall { call: "c".to_owned(), agent: AgentName::new(name) };
        let run = RunInfo { parents: path.iter().map(parent).collect(), ..RunInfo::default() };
        let mut state = RunState::new(agent.name.clone());
        state.abilities = agent.abilities(&run);
        let agents: Vec<&str> = state.abilities.agents.iter().map(AgentName::as_str).collect();
        assert_eq!(agents, expected, "{path:?}");
        let request = agent.request(&state, true);
        assert_eq!(names_of(&request.tools).contains(&"task"), !expected.is_empty(), "{path:?}");
        for name in ["github", "jira", "slack"] {
            let line = format!("- `{name}`: knows {name}");
            assert_eq!(
                request.system.contains(&line),
                expected.contains(&name),
                "{path:?}: {}",
                request.system
            );
        }
    }
    assert!(agent.lease(&AgentName::new("jira"), None).is_some());
    assert!(agent.lease(&AgentName::new("slack"), None).is_none(), "it is not in the list");
}

#[test]
fn where_two_sources_offer_a_tool_the_last_one_counts() {
    let source = |of: &str, names: &[&str]| -> Arc<[OfferedTool]> {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: of.to_owned(),
            schema: json!({"type": "object"}),
        };
        names.iter().map(tool).map(|spec| OfferedTool::new(spec, ToolClass::Read)).collect()
    };
    let agents = source("agents", &["a2a_list", "a2a_call"]);
    let tools = [agents, source("server", &["a2a_call", "gone since", "search"])].into_iter().collect();
    let names = ["a2a_call", "a2a_list", "search"].map(str::to_owned);
    let mut state = RunState::new(AgentName::new("a"));
    state.abilities = Abilities { tools: names.into(), ..Abilities::default() };
    let offered = offered(&state, &tools);
    let ours = offered.iter().filter(|tool| state.abilities.tools.contains(&tool.name));
    let ours: Vec<_> = ours.map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
    assert_eq!(ours, [("a2a_list", "agents"), ("a2a_call", "server"), ("search", "server")]);
}

#[tokio::test]
async fn of_many_tools_the_model_reads_those_that_it_has_found() {
    let tool = |at: usize| {
        let spec = ToolSpec {
            name: format!("{}_thing_{at:03}", ["list", "create", "delete"][at % 3]),
            description: format!(
                "Works on things of kind {at}. {}",
                "It needs an account with rights. ".repeat(12)
            ),
            schema: json!({"type": "object", "properties": {format!("field_{at}"): {"type": "string"}}}),
        };
        let tool = OfferedTool::new(spec, ToolClass::Read);
        OfferedTool { names: vec![tool.spec.name.clone()], ..tool }
    };
    let (agent, size) = (worker(), |specs: &[ToolSpec]| -> u64 {
        specs.iter().map(|spec| OfferedTool::new(spec.clone(), ToolClass::Read).tokens).sum()
    });
    let few: Vec<OfferedTool> = (0..20).map(tool).collect();
    assert!(agent.searched(few.iter()).is_none());
    let many: Arc<[OfferedTool]> = (0..200).map(tool).collect();
    let tools = [many.clone()].into_iter().collect();
    let mut state = RunState::new(agent.name.clone());
    state.abilities.tools = many.iter().map(|tool| tool.spec.name.clone()).collect();
    let all = size(&offered(&state, &tools));
    state.abilities.searched = agent.searched(many.iter());
    let before = offered(&state, &tools);
    assert!(!names_of(&before).iter().any(|name| name.contains("_thing_")), "{:?}", names_of(&before));
    assert!(names_of(&before).contains(&"find_tools"));
    assert!(size(&before) * 8 < all, "{} of {all} tokens", size(&before));
    state.found = ["list_thing_006", "gone", "create_thing_001"].map(str::to_owned).into();
    let after = names_of(&offered(&state, &tools)).join(" ");
    let expected = [names_of(&before), vec!["list_thing_006", "create_thing_001"]].concat().join(" ");
    assert_eq!(after, expected, "in the order in which they were found, after all that stays");
}

//! Calls of the destructive tools of a real server, which must wait for a person.

use std::collections::BTreeSet;
use std::sync::Arc;

use caipe_crds::resource::agent::AgentMode;
use caipe_engine::{AgentName, Effect, Input, Limits, Phase, RunState, decide};
use caipe_fixtures::mcp::DESTRUCTIVE;
use caipe_model::{Completion, FinishReason, Message, Part, Role, Scripted, ToolCall, Usage};
use caipe_supervisor::agent::{Agent, PreambleCache, Role as AgentRole, ToolPolicy};
use caipe_supervisor::builtin::is_builtin;
use caipe_supervisor::delegation::RunInfo;
use caipe_supervisor::mcp::{ServerSpec, Toolbox};
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::harness::tests;
use crate::support::{PATIENCE, environment, stand_in};

tests![
    asks_for_each_destructive_tool_of_a_deceptive_server,
    asks_for_each_tool_that_two_servers_offer,
    asks_for_a_tool_that_the_server_adds_later,
    asks_by_mode_whatever_a_deceptive_server_claims,
];

/// An agent with these servers, whose tools have been listed.
async fn agent(servers: impl IntoIterator<Item = ServerSpec>, require_approval: &[&str]) -> Agent {
    let script = "turns: [{ reply: { text: done } }]";
    let toolbox = Toolbox::start(servers.into_iter().collect(), &environment(), CancellationToken::new());
    let agent = Agent {
        name: AgentName::new("files"),
        title: "Files".to_owned(),
        description: String::new(),
        prompt: String::new(),
        role: AgentRole::worker(),
        model: Arc::new(Scripted::from_yaml("test", script).unwrap()),
        tools: toolbox.into(),
        streaming: true,
        limits: Limits::default(),
        require_approval: require_approval.iter().map(|pattern| (*pattern).to_owned()).collect(),
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
    };
    agent.settled(&CancellationToken::new()).await;
    agent
}

/// The tools whose calls run without a person, by their names for the model.
fn free(agent: &Agent, demanded: &[&str]) -> BTreeSet<String> {
    let demanded: Vec<String> = demanded.iter().map(|pattern| (*pattern).to_owned()).collect();
    let tools = agent.tools.servers.view().tools.clone();
    tools.iter().map(|tool| tool.spec.name.clone()).filter(|tool| runs(agent, &demanded, tool)).collect()
}

/// Whether a call runs at once; otherwise it waits for a person.
fn runs(agent: &Agent, demanded: &[String], tool: &str) -> bool {
    let mut state = RunState::new(agent.name.clone());
    let message = Arc::new(Message::text(Role::User, "clean up"));
    let run = RunInfo { require_approval: demanded.into(), ..RunInfo::default() };
    let effects = decide(&mut state, Input::Message { message, abilities: agent.abilities(&run) });
    let turn = effects.iter().find_map(|effect| match effect {
        Effect::CallModel { turn, .. } => Some(*turn),
        _ => None,
    });
    let call = ToolCall { id: "c".to_owned(), name: tool.to_owned(), arguments: "{}".to_owned() };
    let message = Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)], extra: None };
    let (reason, usage, model) = (FinishReason::ToolCalls, Usage::default(), String::new());
    let completion = Completion { message, reason, usage, model };
    let effects = decide(&mut state, Input::ModelFinished { turn: turn.unwrap(), completion });
    let runs = effects.iter().any(|effect| matches!(effect, Effect::CallTool { .. }));
    assert_ne!(runs, state.phase == Phase::Waiting, "{tool}: {effects:?}");
    runs
}

/// The tools of the stand-in that change nothing.
const HARMLESS: [&str; 9] = ["add", "big", "change", "echo", "env", "fail", "mixed", "slow", "structured"];

fn harmless() -> BTreeSet<String> {
    HARMLESS.map(str::to_owned).into()
}

async fn asks_for_each_destructive_tool_of_a_deceptive_server() {
    let destructive: BTreeSet<&str> = DESTRUCTIVE.into();
    for required in [
        vec!["*delete*all", "write_file"],
        vec!["*DELETE*", "files/write_*"],
        vec!["files/*delete*", "files_write_file"],
        vec!["*DELETE*all*", "Write_File"],
    ] {
        let agent = agent([stand_in("files", &["--mode", "deceptive"])], &required).await;
        let offered = agent.tools.servers.view().tools.len();
        assert_eq!(offered, HARMLESS.len() + destructive.len(), "the name that comes twice is one tool");
        assert_eq!(free(&agent, &[]), harmless(), "{required:?}");
        agent.tools.servers.shutdown().await;
    }
    // The patterns of a supervisor that delegates to this process, beside those of its own.
    let agent = agent([stand_in("files", &["--mode", "deceptive"])], &["write_file"]).await;
    assert_eq!(free(&agent, &["*delete*"]), harmless());
    let deleting = free(&agent, &[]);
    assert!(deleting.len() > harmless().len() && !deleting.contains("files_write_file"), "{deleting:?}");
    agent.tools.servers.shutdown().await;
}

async fn asks_for_each_tool_that_two_servers_offer() {
    let two = || ["one", "two"].map(|name| stand_in(name, &["--mode", "deceptive"]));
    let agent = agent(two(), &["*delete*", "write_file"]).await;
    let expected = HARMLESS.iter().flat_map(|tool| ["one", "two"].map(|server| format!("{server}_{tool}")));
    assert_eq!(free(&agent, &[]), expected.collect());
    agent.tools.servers.shutdown().await;

    let agent = self::agent(two(), &["one/*"]).await;
    let free = free(&agent, &[]);
    assert!(!free.is_empty() && free.iter().all(|tool| tool.starts_with("two_")), "{free:?}");
    agent.tools.servers.shutdown().await;
}

async fn asks_for_a_tool_that_the_server_adds_later() {
    let agent = agent([stand_in("files", &["--mode", "deceptive"])], &["files/added"]).await;
    assert!(agent.faults().iter().any(|fault| fault.contains("`files/added` matches no tool")));
    let mut views = agent.tools.servers.watch();
    let output = agent.tools.servers.call("change", Map::new(), CancellationToken::new()).await;
    assert!(!output.is_error, "{}", output.content);
    let is_listed = views.wait_for(|view| view.tools.iter().any(|tool| tool.spec.name == "added"));
    drop(tokio::time::timeout(PATIENCE, is_listed).await.expect("the list changes").unwrap());
    assert!(!free(&agent, &[]).contains("added"));
    assert!(agent.faults().is_empty(), "{:?}", agent.faults());
    agent.tools.servers.shutdown().await;
}

async fn asks_by_mode_whatever_a_deceptive_server_claims() {
    let mut agent = agent([stand_in("files", &["--mode", "deceptive"])], &[]).await;
    let policy = |mode| ToolPolicy { mode, read_tools: vec!["echo".to_owned()], auto_approve: Vec::new() };
    agent.tool_policy = policy(AgentMode::Ask);
    let echo = BTreeSet::from(["echo".to_owned()]);
    assert_eq!(free(&agent, &[]), echo, "a tool that nothing is known of asks");
    agent.tool_policy = policy(AgentMode::ReadOnly);
    let mut offered = agent.abilities(&RunInfo::default()).tools;
    offered.retain(|tool| !is_builtin(tool));
    assert_eq!(offered, echo, "the model sees no other tool of the server, and the engine refuses it");
    agent.tool_policy = policy(AgentMode::Full);
    let deleting: Vec<String> = free(&agent, &[]).into_iter().filter(|tool| tool.contains("elete")).collect();
    assert!(deleting.is_empty(), "{deleting:?}");
    assert!(free(&agent, &[]).is_superset(&harmless()));
    agent.tools.servers.shutdown().await;
}

//! The part of a prompt about missing tools.

use std::collections::BTreeMap;

use caipe_crds::prompt::AgentLine;
use caipe_crds::rendered::{A2aTools, Memory, RenderedWorkspace};
use caipe_crds::resource::tool_domains::MemoryTools;
use caipe_crds::{RenderedSpec, default_resource};

use super::{own_prompt, supervisor_prompt, whole_prompt, without_memory, worker_prompt};
use crate::mcp::{ServerPhase, ServerStatus};

fn server(name: &str, phase: ServerPhase, tools: usize, message: Option<&str>) -> ServerStatus {
    let (name, message) = (name.to_owned(), message.map(str::to_owned));
    ServerStatus {
        name,
        phase,
        tools,
        message,
        ignored_tools: Vec::new(),
        protocol_version: None,
        credentials: None,
    }
}

#[test]
fn the_prompt_of_a_worker_has_its_name_and_its_text() {
    let ready = server("github", ServerPhase::Ready, 3, None);
    let own = "Mind the gap.\n\n";
    let text = "Agent: github\n\nMind the gap.";
    assert_eq!(worker_prompt("github", own, &[], Some("Ask."), &[ready]), format!("{text}\n\nAsk."));
    assert_eq!(worker_prompt("github", own, &[], None, &[]), text);
}

#[test]
fn the_whole_prompt_of_an_agent_lists_its_delegates_only() {
    let mut spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    spec.agents.iter_mut().filter(|agent| agent.name == "jira").for_each(|agent| {
        agent.delegates = vec!["github".to_owned()];
    });
    let prompt = whole_prompt(&spec, "jira").unwrap();
    assert!(prompt.contains("\n- `github`: ") && !prompt.contains("\n- `gitlab`: "), "{prompt}");
    assert!(!whole_prompt(&spec, "github").unwrap().contains("with the tool `task`"));
}

#[test]
fn an_agent_that_only_calls_other_agents_knows_its_mode_too() {
    let mut spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let mut asks = |a2a: Option<A2aTools>| {
        let agent = spec.agents.iter_mut().find(|agent| agent.name == "jira").unwrap();
        (agent.mcp, agent.a2a) = (Vec::new(), a2a);
        whole_prompt(&spec, "jira").unwrap().contains("the system asks a person for approval")
    };
    assert!(!asks(None));
    assert!(asks(Some(A2aTools::default())));
}

#[test]
fn a_missing_server_is_named_with_its_reason_and_nothing_may_be_made_up() {
    let cases = [
        (
            ServerPhase::Failed,
            0,
            Some("no such program."),
            "are not available right now: no such program. If",
        ),
        (ServerPhase::Starting, 0, None, "are not available right now. If"),
        (ServerPhase::Restarting, 4, Some("it ended"), "may be out of date right now: it ended. If"),
    ];
    for (phase, tools, message, expected) in cases {
        let prompt =
            worker_prompt("jira", "Be kind.", &[], Some("Ask."), &[server("jira", phase, tools, message)]);
        assert!(prompt.contains(&format!("The tools of the server \"jira\" {expected}")), "{prompt}");
        assert!(prompt.ends_with("never make up their results."), "{prompt}");
    }
}

#[test]
fn the_prompt_of_the_supervisor_lists_the_agents() {
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let jira =
        AgentLine { name: "jira", title: "Jira", routing_hint: "tickets and sprints", shares_files: false };
    let prompt = supervisor_prompt(&spec, &[jira], &[]);
    assert!(prompt.starts_with("Agent: supervisor\n\n"), "{prompt}");
    assert!(prompt.contains("tickets and sprints"), "{prompt}");
    assert!(!supervisor_prompt(&spec, &[], &[]).contains("tickets and sprints"));
}

#[test]
fn an_agent_with_a_memory_knows_when_to_search_and_when_to_save() {
    let mut spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let remembers = |spec: &RenderedSpec, name| whole_prompt(spec, name).unwrap().contains("# Memory\n\n");
    assert!(!remembers(&spec, "jira") && !remembers(&spec, "supervisor"));
    spec.agents.iter_mut().filter(|agent| agent.name == "jira").for_each(|agent| {
        agent.memory = Some(MemoryTools {});
    });
    spec.memory = Some(Memory { ttl_minutes: None, max_results: 1, supervisor: false, store: None });
    assert!(remembers(&spec, "jira") && !remembers(&spec, "supervisor") && !remembers(&spec, "github"));
    spec.memory = Some(Memory { ttl_minutes: None, max_results: 1, supervisor: true, store: None });
    assert!(remembers(&spec, "supervisor"));
}

#[test]
fn a_run_without_the_functions_reads_nothing_of_a_memory() {
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let mut agent = spec.agent("jira").unwrap().clone();
    let plain = own_prompt(&agent);
    agent.memory = Some(MemoryTools {});
    assert_ne!(own_prompt(&agent), plain);
    assert_eq!(without_memory(&own_prompt(&agent)).trim_end(), plain.trim_end());
    assert_eq!(without_memory(&plain), plain);
}

#[test]
fn an_agent_knows_which_of_its_files_outlive_the_conversation() {
    let mut spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let mut prompt = |directory: Option<&str>| {
        let directory = directory.map(str::to_owned);
        let workspace = RenderedWorkspace { directory, ..RenderedWorkspace::default() };
        spec.agents.iter_mut().for_each(|agent| agent.workspace = Some(workspace.clone()));
        whole_prompt(&spec, "jira").unwrap()
    };
    let without = prompt(None);
    assert!(without.contains("read /PROGRESS.json") && !without.contains("/workspace"), "{without}");
    let with = prompt(Some("/data/x"));
    assert!(with.contains("read /workspace/PROGRESS.json") && with.contains("# Lasting Files"), "{with}");
    assert!(!with.contains("/data/x") && !with.contains("{FOLDER}"), "{with}");
}

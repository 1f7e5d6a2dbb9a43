//! One agent for a process of its own.

use super::*;
use crate::rendered::Placement;
use crate::resolve_agent;

fn resolve_single(
    resource: &CaipeSupervisor,
    name: &str,
    variables: Vars<'_>,
) -> Result<RenderedSpec, String> {
    resolve_agent(resource, &env(variables), name)
        .map(|resolved| resolved.spec)
        .map_err(|faults| faults.to_string())
}

#[test]
fn an_agent_is_resolved_without_the_others_and_wherever_it_would_run() {
    let two = resource("agents: [{ name: jira }, { name: github }]\ndistributedAgents: [all]");
    // Missing variables of other agents do not matter.
    let variables: Vars<'_> = &[("GITHUB_MCP_MODE", "http"), ("DISTRIBUTED_AGENTS", "all")];
    let spec = resolve_single(&two, " JIRA ", variables).unwrap();
    assert_eq!(spec.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["jira"]);
    assert!(!spec.agents[0].mcp.is_empty() && !spec.agents[0].system_prompt.is_empty());
    assert_eq!(spec.agents[0].placement, Placement::InProcess {}, "its address is unknown");
    let spec = resolve_single(&two, "jira", &[("JIRA_AGENT_URL", "http://jira:8004/")]).unwrap();
    assert_eq!(
        spec.agents[0].placement,
        Placement::Remote { url: "http://jira:8004".to_owned(), headers: BTreeMap::new() }
    );
}

#[test]
fn an_agent_that_cannot_be_served_is_refused_with_the_reason() {
    let own = "identity: { inline: { description: d, systemPrompt: p } }";
    let file = resource(&format!(
        "agents: [{{ name: jira, enabled: false }}, {{ name: mine, image: i }}, {{ name: x, {own} }}]"
    ));
    let cases: &[(&CaipeSupervisor, &str, Vars<'_>, &str)] = &[
        (&file, "nobody", &[], "spec.agents: there is no agent `nobody`: name one of jira, mine, x"),
        (&file, "github", &[], "there is no agent `github`"),
        (&file, "jira", &[], "$ENABLE_JIRA: agent `jira` is disabled"),
        (&file, "x", &[("ENABLE_X", "false")], "$ENABLE_X: agent `x` is disabled"),
        (&file, "mine", &[], "spec.agents[mine]: agent `mine` is another program"),
        (&default_resource(), "netutils", &[], "agent `netutils` is another program"),
        (&default_resource(), "nobody", &[], "name one of github, gitlab"),
        (&default_resource(), "jira", &[("JIRA_MCP_MODE", "http")], "$JIRA_MCP_HOST: is not set"),
    ];
    for (resource, name, variables, says) in cases {
        let refused = resolve_single(resource, name, variables).unwrap_err();
        assert!(refused.contains(says), "{name}: {refused}");
    }
    assert!(resolve_single(&file, "jira", &[("ENABLE_JIRA", "true")]).is_ok());
    assert!(
        resolve_single(&default_resource(), "aigateway", &[]).is_ok(),
        "an in-process agent may run in a process of its own"
    );
}

#[test]
fn a_rendered_spec_serves_its_remote_agents_too() {
    let all = resource(
        "agents: [{ name: jira }, { name: theirs, external: { url: 'https://a.example' } }]\ndistributedAgents: [all]",
    );
    let spec = resolve_for(&all, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    let (jira, agent) = spec.clone().for_agent("Jira").unwrap();
    assert_eq!((jira.agents.as_slice(), &agent), (&spec.agents[..1], &spec.agents[0]));
    assert!(matches!(jira.agents[0].placement, Placement::Remote { .. }) && !jira.agents[0].mcp.is_empty());
    assert_eq!(jira.hash, jira.content_hash());
    for (name, says) in [("nobody", "name one of jira, theirs"), ("theirs", "runs outside")] {
        let refused = spec.clone().for_agent(name).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn what_a_remote_agent_lacks_on_this_machine_is_no_fault_of_the_supervisor() {
    let jira = resource("agents: [{ name: jira }]\ndistributedAgents: [jira]");
    let variables: Vars<'_> = &[("JIRA_AGENT_HOST", "jira"), ("MCP_MODE", "http")];
    let spec = resolve(&jira, &env(variables)).unwrap().spec;
    assert!(spec.agents[0].mcp.is_empty() && !spec.agents[0].system_prompt.is_empty());
    assert_eq!(faults(&jira, &[("MCP_MODE", "http"), ("DISTRIBUTED_AGENTS", "nobody")]).len(), 1);
}

use std::collections::BTreeMap;

use crate::default_resource;
use crate::resolve::{resolve, resolve_agent};
use crate::resource::CaipeSupervisor;

const AUTH: &str = "auth: { oauth2: { issuer: a, audience: b, jwksUri: 'http://c' } }";

/// A resource with these agents; each remote one has an address.
fn resource(agents: &str) -> CaipeSupervisor {
    let text = format!("{{ {AUTH}, model: {{ provider: openai, name: m }}, agents: [{agents}] }}");
    CaipeSupervisor { spec: serde_saphyr::from_str(&text).unwrap(), ..default_resource() }
}

fn env() -> BTreeMap<String, String> {
    let url = |name: &str| (format!("{}_AGENT_URL", name.to_uppercase()), format!("http://{name}.test"));
    ["jira", "github", "slack", "argocd"].map(url).into()
}

fn faults(agents: &str) -> Vec<String> {
    match resolve(&resource(agents), &env()) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.as_slice().iter().map(ToString::to_string).collect(),
    }
}

const ALL_REMOTE: &str = "placement: Remote";

#[test]
fn a_chain_ends_and_is_short_and_every_agent_in_it_can_be_reached() {
    let named = |chain: &[(&str, &str)], rest: &str| {
        let agent = |(name, delegates): &(&str, &str)| {
            format!("{{ name: {name}, delegates: [{delegates}], {rest} }}")
        };
        chain.iter().map(agent).collect::<Vec<_>>().join(", ")
    };
    let three = [("jira", "github"), ("github", "slack"), ("slack", ""), ("argocd", "' GitHub '")];
    for rest in [ALL_REMOTE, "placement: InProcess"] {
        assert_eq!(faults(&named(&three, rest)), Vec::<String>::new(), "{rest}");
    }
    for (agents, expected) in [
        (
            named(&[("jira", "github"), ("github", "jira")], ALL_REMOTE),
            "spec.agents[jira].delegates: jira -> github -> jira is a cycle: an agent must not get its own task back",
        ),
        (
            named(
                &[("jira", "github"), ("github", "slack"), ("slack", "argocd"), ("argocd", "")],
                ALL_REMOTE,
            ),
            "spec.agents[jira].delegates: jira -> github -> slack -> argocd is too deep: a chain has at most 3 agents",
        ),
        (
            named(&[("jira", "jira")], ALL_REMOTE),
            "spec.agents[0]: an agent does not delegate to itself: remove it from delegates",
        ),
        (
            named(&[("jira", "githib")], ALL_REMOTE),
            "spec.agents[jira].delegates: there is no agent `githib`: correct the name, or add the agent to spec.agents",
        ),
        (
            "{ name: jira, delegates: [github], placement: Remote }, { name: github, placement: InProcess }"
                .to_owned(),
            "spec.agents[jira].delegates: `jira` is remote and cannot reach `github`, which runs in the supervisor's process: \
             place both alike, or `github` remotely",
        ),
        (
            "{ name: jira, delegates: [github], placement: Remote }, \
             { name: github, placement: Remote, approvers: [{ group: g }] }"
                .to_owned(),
            "spec.agents[jira].delegates: `jira` is remote, and its approvers would decide the calls of `github`: give both the \
             same approvers, or place `jira` in-process",
        ),
        (
            "{ name: jira, external: { url: 'http://jira.test' }, delegates: [github] }, { name: github }"
                .to_owned(),
            crate::resource::rules::AGENT_FOREIGN_TOOLS,
        ),
    ] {
        let faults = faults(&agents);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{agents}: {faults:?}");
    }
    let mixed = "{ name: jira, delegates: [github], placement: InProcess }, \
                 { name: github, placement: Remote, approvers: [{ group: g }] }";
    assert_eq!(faults(mixed), Vec::<String>::new(), "the supervisor reaches all and knows all approvers");
}

#[test]
fn a_disabled_delegate_is_left_out() {
    let agents =
        "{ name: jira, delegates: [github], placement: InProcess }, { name: github, enabled: false }";
    let resolved = resolve(&resource(agents), &env()).unwrap();
    assert!(resolved.spec.agents[0].delegates.is_empty());
    let warning =
        "spec.agents[jira].delegates: the agent `github` is not enabled, so nothing is delegated to it";
    assert!(resolved.warnings.iter().any(|it| it.to_string() == warning), "{:?}", resolved.warnings);
}

#[test]
fn the_spec_of_an_agents_own_process_has_the_agents_that_it_can_reach() {
    let agents = "{ name: jira, delegates: [github], placement: Remote }, { name: slack, placement: Remote }, \
                  { name: github, placement: Remote, delegates: [slack], requireApproval: [x] }";
    let resource = resource(agents);
    let whole = resolve(&resource, &env()).unwrap().spec;
    let alone = whole.clone().for_agent("jira").unwrap().0;
    for spec in
        [alone.clone(), resolve_agent(&resource, &env(), "jira").unwrap().spec.for_agent("jira").unwrap().0]
    {
        let names: Vec<&str> = spec.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["jira", "github"]);
        let github = &spec.agents[1];
        assert_eq!(
            github.require_approval,
            ["x"],
            "the agent sends the approvals that the resource requires"
        );
        assert!(github.delegates.is_empty() && github.mcp.is_empty() && !github.is_foreign());
    }
    assert_eq!(alone.clone().for_agent("jira").unwrap().0, alone, "its own spec stays as it is");
    let mut env = env();
    env.remove("GITHUB_AGENT_URL");
    let fault = resolve_agent(&resource, &env, "jira").unwrap_err().to_string();
    assert!(fault.contains("reaches `github` at an address only: set GITHUB_AGENT_URL"), "{fault}");
}

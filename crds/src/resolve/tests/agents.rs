use super::*;
use crate::rendered::Placement;

#[test]
fn placement_by_variables_and_by_the_resource_is_one_rule() {
    let here = "agents: [{ name: argocd }, { name: jira }]";
    let addresses =
        [("ARGOCD_AGENT_HOST", "argocd.example"), ("JIRA_AGENT_URL", "https://jira.example/a2a/")];
    let cases: &[(&str, Vars<'_>, &[&str])] = &[
        ("", &[], &[]),
        ("distributedAgents: [ArgoCD]", &[], &["argocd"]),
        ("distributedAgents: [all]", &[], &["argocd", "jira"]),
        ("defaultPlacement: Remote", &[], &["argocd", "jira"]),
        ("distributedAgents: [argocd]\ndefaultPlacement: Remote", &[], &["argocd"]),
        ("", &[("DISTRIBUTED_AGENTS", "argocd")], &["argocd"]),
        ("distributedAgents: [argocd]", &[("DISTRIBUTED_AGENTS", "jira")], &["jira"]),
        ("distributedAgents: [argocd]", &[("DISTRIBUTED_AGENTS", " , ")], &["argocd"]),
        ("defaultPlacement: Remote", &[("DISTRIBUTED_MODE", "false")], &[]),
        ("defaultPlacement: InProcess", &[("DISTRIBUTED_MODE", "true")], &["argocd", "jira"]),
        ("distributedAgents: [argocd]", &[("DISTRIBUTED_MODE", "true")], &["argocd"]),
        ("", &[("DISTRIBUTED_MODE", "yes")], &["argocd", "jira"]),
        ("distributedAgents: [all]", &[("ENABLE_ARGOCD", "false")], &["jira"]),
    ];
    for (spec, variables, expected) in cases {
        let mut all = variables.to_vec();
        all.extend(addresses);
        let spec = resolve(&resource(&format!("{here}\n{spec}")), &env(&all)).unwrap().spec;
        let remote = spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::Remote { .. }));
        assert_eq!(&remote.map(|agent| agent.name.as_str()).collect::<Vec<_>>(), expected, "{variables:?}");
    }
}

#[test]
fn the_placement_of_an_agent_decides_before_the_lists_of_the_resource() {
    let given = "agents: [{ name: argocd, placement: Remote }, { name: jira, placement: InProcess }, { name: github }]";
    let cases: &[(&str, Vars<'_>, &[&str])] = &[
        ("", &[], &["argocd"]),
        ("defaultPlacement: Remote", &[], &["argocd", "github"]),
        ("distributedAgents: [jira]", &[], &["argocd"]),
        ("distributedAgents: [all]", &[], &["argocd", "github"]),
        ("", &[("DISTRIBUTED_MODE", "true")], &["argocd", "github"]),
        ("", &[("DISTRIBUTED_AGENTS", "jira")], &["jira"]),
        ("", &[("DISTRIBUTED_AGENTS", "all")], &["argocd", "jira", "github"]),
        ("", &[("ENABLE_ARGOCD", "false")], &[]),
    ];
    for (spec, variables, expected) in cases {
        let resource = resource(&format!("{given}\n{spec}"));
        let mut all = variables.to_vec();
        all.extend(["ARGOCD_AGENT_HOST", "JIRA_AGENT_HOST", "GITHUB_AGENT_HOST"].map(|name| (name, "there")));
        let spec = resolve(&resource, &env(&all)).unwrap().spec;
        let remote = spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::Remote { .. }));
        assert_eq!(&remote.map(|agent| agent.name.as_str()).collect::<Vec<_>>(), expected, "{variables:?}");
    }
}

#[test]
fn enable_takes_out_and_calls_in() {
    let cases: &[(&str, Vars<'_>, &[&str])] = &[
        ("agents: [{ name: jira }, { name: slack, enabled: false }]", &[], &["jira"]),
        ("agents: [{ name: jira }]", &[("ENABLE_JIRA", "False")], &[]),
        ("agents: [{ name: jira, enabled: false }]", &[("ENABLE_JIRA", "1")], &["jira"]),
        (
            "agents: [{ name: jira }]",
            &[("ENABLE_ARGOCD", "true"), ("ENABLE_TRACING", "true")],
            &["jira", "argocd"],
        ),
        ("agents: [{ name: jira }]", &[("ENABLE_JIRA", " ")], &["jira"]),
        ("agents: []", &[], &[]),
    ];
    for (spec, variables, expected) in cases {
        let spec = resolve(&resource(spec), &env(variables)).unwrap().spec;
        assert_eq!(&spec.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_remote_agent_has_the_address_of_the_variables_and_no_default() {
    let jira = resource("agents: [{ name: jira }]\ndistributedAgents: [jira]");
    let cases = [
        (vec![("JIRA_AGENT_HOST", "jira")], "http://jira:8000"),
        (vec![("JIRA_AGENT_HOST", "jira"), ("JIRA_AGENT_PORT", "8004")], "http://jira:8004"),
        (vec![("JIRA_AGENT_URL", "https://x/y/"), ("JIRA_AGENT_HOST", "jira")], "https://x/y"),
    ];
    for (variables, expected) in cases {
        let spec = resolve(&jira, &env(&variables)).unwrap().spec;
        assert_eq!(
            spec.agents[0].placement,
            Placement::Remote { url: expected.to_owned(), headers: BTreeMap::new() }
        );
    }
    for variables in [vec![], vec![("JIRA_AGENT_PORT", "8004")], vec![("JIRA_AGENT_URL", " ")]] {
        let faults = faults(&jira, &variables);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("$JIRA_AGENT_URL: agent `jira` is remote and has no address"),
            "{faults:?}"
        );
    }
    let in_cluster = resolve_for(&jira, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    let headers = env(&[("Authorization", "Bearer ${CAIPE_OWN_AGENT_KEY}")]);
    let service = Placement::Remote { url: "http://platform-jira.ns.svc:8000".to_owned(), headers };
    assert_eq!(in_cluster.agents[0].placement, service);
}

#[test]
fn each_remote_agent_without_an_address_is_named() {
    let faults = faults(&default_resource(), &[("DISTRIBUTED_AGENTS", "all"), ("ENABLE_SLACK", "no")]);
    assert_eq!(faults.len(), 12, "14 without slack and aigateway: {faults:#?}");
    assert!(faults.iter().all(|fault| !fault.contains("slack") && !fault.contains("aigateway")));
}

#[test]
fn an_in_process_only_agent_is_refused_by_name_and_exempt_from_all() {
    let gateway = resource("agents: [{ name: aigateway }]");
    let refused = faults(&gateway, &[("DISTRIBUTED_AGENTS", "aigateway")]);
    assert!(refused[0].contains("`aigateway` can only run in-process"), "{refused:?}");
    for (spec, variables, path) in [
        ("", [("DISTRIBUTED_AGENTS", "all")], "$DISTRIBUTED_AGENTS"),
        ("", [("DISTRIBUTED_MODE", "true")], "$DISTRIBUTED_MODE"),
        ("defaultPlacement: Remote", [("DISTRIBUTED_MODE", "")], "spec.defaultPlacement"),
        ("distributedAgents: [all]", [("DISTRIBUTED_MODE", "")], "spec.distributedAgents"),
    ] {
        let gateway = resource(&format!("agents: [{{ name: aigateway }}]\n{spec}"));
        let resolved = resolve(&gateway, &env(&variables)).unwrap();
        assert_eq!(resolved.spec.agents[0].placement, Placement::InProcess {});
        let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
        let expected = format!("{path}: `aigateway` supports no remote placement");
        assert!(warnings.iter().any(|warning| warning.starts_with(&expected)), "{warnings:?}");
    }
}

#[test]
fn an_unknown_name_in_the_list_is_a_warning() {
    let resolved = resolve(&default_resource(), &env(&[("DISTRIBUTED_AGENTS", "agrocd")])).unwrap();
    let warnings: Vec<_> = resolved.warnings.iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|warning| warning.starts_with("$DISTRIBUTED_AGENTS: there is no agent `agrocd`")),
        "{warnings:?}"
    );
}

#[test]
fn an_external_agent_is_remote_with_its_token_as_a_template() {
    let external = resource(
        "agents: [{ name: pipelines, external: { url: 'https://agents.example.com/pipelines', secretRef: { name: t, key: PIPELINES_TOKEN } } }]",
    );
    let agent = resolve(&external, &BTreeMap::new()).unwrap().spec.agents.remove(0);
    let headers = env(&[("Authorization", "Bearer ${PIPELINES_TOKEN}")]);
    assert_eq!(
        agent.placement,
        Placement::Remote { url: "https://agents.example.com/pipelines".to_owned(), headers }
    );
    assert_eq!(agent.description, "pipelines: operations and management");
    assert!(agent.mcp.is_empty() && agent.system_prompt.is_empty());
}

#[test]
fn agents_that_are_known_only_remotely_are_remote_whatever_is_distributed() {
    for name in ["netutils", "victorops", "petstore", "jarvis"] {
        let alone = resource(&format!("agents: [{{ name: {name} }}]"));
        let variable = format!("{}_AGENT_URL", name.to_uppercase());
        let lost = faults(&alone, &[]);
        assert!(
            lost[0].starts_with(&format!("${variable}: agent `{name}` is remote and has no address")),
            "{lost:?}"
        );
        for distributed in ["", "jira", "all", name] {
            let variables = [("DISTRIBUTED_AGENTS", distributed), (variable.as_str(), "http://there:1")];
            let spec = resolve(&alone, &env(&variables)).unwrap().spec;
            assert!(
                matches!(&spec.agents[0].placement, Placement::Remote { url, .. } if url == "http://there:1")
            );
        }
    }
}

#[test]
fn an_approval_that_can_guard_no_listed_tool_is_a_warning() {
    let warnings = |tools: &str, approvals: &str| {
        let given = format!(
            "agents: [{{ name: files, identity: {{ inline: {{ description: d, systemPrompt: p }} }}, tools: {tools}, \
             requireApproval: {approvals}, mcp: [{{ name: disk, http: {{ url: 'http://disk/mcp' }} }}] }}]"
        );
        let resolved = resolve(&resource(&given), &BTreeMap::new()).unwrap();
        let warnings = resolved.warnings.iter().map(ToString::to_string);
        warnings.filter(|warning| warning.contains("requireApproval")).collect::<Vec<_>>()
    };
    let found = warnings("['read_*', write_file]", "['write_*', 'Delete_*', disk_write_file, jq]");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("spec.agents[files].requireApproval: `Delete_*` matches none"), "{found:?}");
    let known =
        "['disk/*', 'DISK/write_file', 'disk/wipe_disk', 'wipe_disk', ' wipe disk ', 'supprim\u{e9}']";
    assert_eq!(warnings("[write_file, 'wipe disk']", known), Vec::<String>::new());
    assert_eq!(warnings("[write_file]", "['tape/write_file', 'a2a_call*']").len(), 2);
    assert!(warnings("[]", "['delete_*']").is_empty(), "which tools there are is known when they run");
}

#[test]
fn an_approval_for_a_tool_of_the_supervisor_is_refused() {
    for (tools, pattern, expected) in [
        ("[]", "a2a_call", true),
        ("[]", "A2A_Call_Streaming", true),
        ("[write_file]", "a2a_list", true),
        ("[a2a_call]", "a2a_call", false),
        ("['a2a_*']", "a2a_call", false),
        ("[]", "disk/a2a_call", false),
        ("[]", "a2a_*", false),
    ] {
        let given = format!(
            "agents: [{{ name: files, identity: {{ inline: {{ description: d, systemPrompt: p }} }}, tools: {tools}, \
             requireApproval: ['{pattern}'], mcp: [{{ name: disk, http: {{ url: 'http://disk/mcp' }} }}] }}]"
        );
        let resolved = resolve(&resource(&given), &BTreeMap::new());
        let faults = resolved.err().map(|faults| faults.to_string()).unwrap_or_default();
        let path = format!("spec.agents[files].requireApproval: `{pattern}` is a tool of the supervisor");
        assert_eq!(faults.contains(&path), expected, "{tools} {pattern}: {faults}");
    }
}

#[test]
fn sections_change_the_prompt_of_an_agent_that_this_program_runs() {
    let sections = "prompts: { sections: [{ title: Projects, text: OPS }, { title: Changing things }] }";
    let prompt = |agent: &str| {
        let spec = resolve(
            &resource(&format!("agents: [{{ {agent}, {sections} }}]")),
            &env(&[("ATLASSIAN_TOKEN", "t"), ("ATLASSIAN_API_URL", "https://j.example")]),
        )
        .unwrap()
        .spec;
        spec.agents[0].system_prompt.clone()
    };
    let jira = prompt("name: jira");
    assert!(jira.contains("# Projects\n\nOPS\n\n# Answering\n"), "{jira}");
    assert!(jira.contains("# Finding things\n") && !jira.contains("# Changing things"), "{jira}");
    let own = prompt("name: own, identity: { inline: { description: d, systemPrompt: You help. } }");
    assert_eq!(own, "You help.\n\n# Projects\n\nOPS\n\n");
    for agent in ["name: other, external: { url: 'https://a.example' }", "name: netutils, placement: Remote"]
    {
        let found = faults(
            &resource(&format!("agents: [{{ {agent}, {sections} }}]")),
            &[("NETUTILS_AGENT_URL", "http://n")],
        );
        let name = if agent.contains("other") { "other" } else { "netutils" };
        let fault = format!(
            "spec.agents[{name}].prompts: the agent is another program with a prompt of its own: remove prompts"
        );
        assert_eq!(found, [fault]);
    }
}

/// In a cluster the volume is in the agent's own pod, also if a list outside of the agent places it; elsewhere it is a directory.
#[test]
fn the_volume_of_a_workspace_is_where_the_agent_runs() {
    let directory = |spec: &RenderedSpec| spec.agents[0].workspace.as_ref().unwrap().directory.clone();
    let own = |placement: &str| {
        resource(&format!(
            "{placement}\nagents: [{{ name: jira, workspace: {{ volume: {{ size: 5Gi }} }} }}]"
        ))
    };
    let there = resolve_for(&own("distributedAgents: [jira]"), &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    assert_eq!(directory(&there).as_deref(), Some("/workspace"));
    let refused = resolve_for(&own("distributedAgents: []"), &BTreeMap::new(), &cluster(&[])).unwrap_err();
    let refused: Vec<String> = refused.into_iter().map(|fault| fault.to_string()).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].starts_with(
            "spec.agents[jira].workspace.volume: the volume of a workspace belongs to a single pod"
        ),
        "{refused:?}"
    );
    let here = |variables: Vars<'_>| resolve(&own("distributedAgents: []"), &env(variables)).unwrap().spec;
    assert_eq!(directory(&here(&[])).as_deref(), Some(".caipe/workspaces/jira"));
    assert_eq!(directory(&here(&[("CAIPE_DATA_DIR", "/d")])).as_deref(), Some("/d/workspaces/jira"));
    let none = resolve(&resource("agents: [{ name: jira, workspace: {} }]"), &env(&[])).unwrap().spec;
    assert_eq!(directory(&none), None);
}

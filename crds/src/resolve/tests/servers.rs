use super::*;
use crate::rendered::{McpTransport, Placement};
use crate::resource::agent::AgentMode;

#[test]
fn tool_servers_of_the_catalogue_follow_the_mode() {
    let argocd = resource("agents: [{ name: argocd }]");
    let url = |variables: &[(&str, &str)]| match &resolve(&argocd, &env(variables)).unwrap().spec.agents[0]
        .mcp[0]
        .transport
    {
        McpTransport::Http { url, .. } => url.clone(),
        McpTransport::Stdio { command, .. } => command.clone(),
    };
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "npx"),
        (&[("MCP_MODE", "STDIO")], "npx"),
        (&[("MCP_MODE", "http"), ("ARGOCD_MCP_MODE", "stdio")], "npx"),
        (&[("CAIPE_TOOLS_DIR", "/opt/tools/")], "/opt/tools/bin/argocd-mcp"),
        (&[("MCP_MODE", "http"), ("MCP_HOST", "mcp")], "http://mcp:8000/mcp"),
        (
            &[
                ("MCP_MODE", "stdio"),
                ("ARGOCD_MCP_MODE", "streamable_http"),
                ("ARGOCD_MCP_HOST", "a"),
                ("ARGOCD_MCP_PORT", "1"),
                ("MCP_HOST", "b"),
                ("MCP_PORT", "2"),
            ],
            "http://a:1/mcp",
        ),
    ];
    for (variables, expected) in cases {
        assert_eq!(&url(variables), expected, "{variables:?}");
    }
    let lost = faults(&argocd, &[("MCP_MODE", "http")]);
    assert!(lost[0].starts_with("$ARGOCD_MCP_HOST: is not set"), "{lost:?}");
}

/// The environment of an agent's first tool server, as a child process.
fn child_env(agent: &str) -> BTreeMap<String, String> {
    let spec = resolve(&resource(&format!("agents: [{{ name: {agent} }}]")), &env(&[])).unwrap().spec;
    match spec.agents[0].mcp[0].transport.clone() {
        McpTransport::Stdio { env, .. } => env,
        McpTransport::Http { headers, .. } => headers,
    }
}

#[test]
fn the_address_of_a_server_of_ones_own_reaches_the_tool_server() {
    for (agent, variable, template) in [
        ("github", "GITHUB_HOST", "${GITHUB_API_URL:-https://github.com}"),
        ("gitlab", "GITLAB_API_URL", "${GITLAB_API_URL:-https://${GITLAB_HOST:-gitlab.com}/api/v4}"),
        ("jira", "JIRA_URL", "${ATLASSIAN_API_URL}"),
        ("confluence", "CONFLUENCE_URL", "${CONFLUENCE_API_URL}"),
        ("argocd", "ARGOCD_BASE_URL", "${ARGOCD_API_URL}"),
        ("aws", "AWS_DEFAULT_REGION", "${AWS_REGION}"),
        ("pagerduty", "PAGERDUTY_API_HOST", "${PAGERDUTY_API_URL:-https://api.pagerduty.com}"),
        ("komodor", "KOMODOR_API_BASE_URL", "${KOMODOR_API_URL:-https://api.komodor.com}"),
    ] {
        assert_eq!(child_env(agent)[variable], template, "{agent}");
    }
}

#[test]
fn in_a_cluster_a_program_of_the_catalogue_has_pods_of_its_own_with_the_agents_key() {
    let spec = "agents: [{ name: aws }, { name: splunk }]";
    let there = resolve_for(&resource(spec), &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    let http = |url: &str, key: &str| {
        let headers = env(&[("Authorization", &format!("Bearer ${{{key}}}"))]);
        McpTransport::Http { url: url.to_owned(), headers }
    };
    let servers = there.agents[0].mcp.iter().map(|server| server.transport.clone());
    let url = |server: &str| {
        format!("http://{}.ns.svc:8101/mcp", crate::names::tool_server("platform", "aws", server))
    };
    let expected = ["eks", "cloudwatch"].map(|server| http(&url(server), "CAIPE_TOOLS_KEY"));
    assert_eq!(servers.collect::<Vec<_>>(), expected);
    assert_eq!(there.agents[0].mcp[0].start_timeout_ms, Some(60_000));
    assert_eq!(there.agents[0].required_env, ["AWS_REGION"]);
    let splunk = &there.agents[1].mcp[0].transport;
    assert_eq!(*splunk, http("${SPLUNK_API_URL}/services/mcp", "SPLUNK_TOKEN"));
}

#[test]
fn the_mode_and_the_lists_of_tools_are_rendered() {
    let spec = "agents: [{ name: pagerduty, mode: ReadOnly, readTools: [peek], autoApprove: [poke] }, { name: komodor }]";
    let agents = resolve(&resource(spec), &env(&[])).unwrap().spec.agents;
    let (read_only, ask) = (&agents[0], &agents[1]);
    assert_eq!((read_only.mode, ask.mode), (AgentMode::ReadOnly, AgentMode::Ask));
    assert_eq!(
        (read_only.read_tools.join(","), read_only.auto_approve.join(",")),
        ("peek".into(), "poke".into())
    );
    assert_eq!(ask.mcp[0].reads, ["trigger_klaudia_rca"]);
    let McpTransport::Stdio { args, .. } = &read_only.mcp[0].transport else { panic!("{read_only:?}") };
    assert!(!args.contains(&"--enable-write-tools".to_owned()), "{args:?}");
}

#[test]
fn the_notes_of_a_server_go_with_it() {
    let prompt =
        |spec: &str| resolve(&resource(spec), &env(&[])).unwrap().spec.agents.remove(0).system_prompt;
    assert!(prompt("agents: [{ name: gitlab }]").contains("Merging, deleting and pushing are off."));
    let own = "agents: [{ name: gitlab, mcp: [{ name: own, stdio: { command: serve } }] }]";
    assert!(!prompt(own).contains("are off."));
}

#[test]
fn the_catalogues_allow_list_goes_with_its_servers() {
    let built_in = crate::catalogue::find("gitlab").unwrap().tools();
    let cases = [
        ("agents: [{ name: gitlab }]", built_in),
        ("agents: [{ name: gitlab, tools: ['get_*'] }]", vec!["get_*".to_owned()]),
        ("agents: [{ name: gitlab, mcp: [{ name: own, stdio: { command: serve } }] }]", vec![]),
        ("agents: [{ name: jira }]", vec![]),
    ];
    for (spec, expected) in cases {
        let spec = resolve(&resource(spec), &BTreeMap::new()).unwrap().spec;
        assert_eq!(spec.agents[0].tools, expected);
    }
}

#[test]
fn an_agent_of_ones_own_with_every_form_of_tool_server() {
    let own = resource(
        "agents:
- name: run-books
  identity: { inline: { description: Reads runbooks, systemPrompt: You read runbooks. } }
  secretRef: { name: keys }
  env: [{ name: REGION, value: eu }, { name: KEY, secretKeyRef: { name: s, key: k } }]
  mcp:
  - name: child
    stdio: { command: serve, args: ['--region', '${REGION}', '${OTHER:-x}'], env: [{ name: TOKEN, value: '${TOKEN}' }], cwd: /srv }
  - name: endpoint
    http: { url: 'https://${REGION}.example/mcp', headersFrom: [{ name: Authorization, prefix: 'Bearer ', secretKeyRef: { name: s, key: API_KEY } }] }
  requireApproval: ['delete_*']
  tools: ['get_*', 'delete_*']",
    );
    let agent = resolve(&own, &BTreeMap::new()).unwrap().spec.agents.remove(0);
    assert_eq!((agent.title.as_str(), agent.routing_hint.as_str()), ("Run Books", "Reads runbooks"));
    assert_eq!(agent.required_env, ["API_KEY", "KEY", "TOKEN"]);
    assert_eq!(agent.secrets_dir, None);
    let expected = McpTransport::Stdio {
        command: "serve".to_owned(),
        args: ["--region", "eu", "${OTHER:-x}"].map(str::to_owned).to_vec(),
        env: env(&[("REGION", "eu"), ("KEY", "${KEY}"), ("TOKEN", "${TOKEN}")]),
        cwd: Some("/srv".to_owned()),
    };
    assert_eq!(agent.mcp[0].transport, expected);
    let headers = env(&[("Authorization", "Bearer ${API_KEY}")]);
    assert_eq!(
        agent.mcp[1].transport,
        McpTransport::Http { url: "https://eu.example/mcp".to_owned(), headers }
    );
    let there = resolve_for(&own, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    assert_eq!(there.agents[0].secrets_dir.as_deref(), Some("/var/run/caipe/secrets/agents/run-books"));
}

/// Keys of Secrets may have what the name of a variable may not.
#[test]
fn a_key_of_a_secret_is_a_variable_whatever_it_is_called() {
    for (key, variable) in [
        ("API_KEY", "API_KEY"),
        ("token", "token"),
        ("redis-password", "redis_password"),
        (".dockerconfigjson", "_dockerconfigjson"),
        ("1-key.of-2", "_1_key_of_2"),
    ] {
        let header = format!("{{ name: X-Key, secretKeyRef: {{ name: s, key: {key} }} }}");
        let own = resource(&format!(
            "agents:
- name: own
  identity: {{ inline: {{ description: d, systemPrompt: s }} }}
  env: [{{ name: OWN, secretKeyRef: {{ name: s, key: {key} }} }}]
  mcp: [{{ name: a, http: {{ url: 'http://a', headersFrom: [{header}] }} }}]
- name: theirs
  external: {{ url: 'http://b', secretRef: {{ name: t, key: {key} }} }}"
        ));
        for target in [Target::Local, cluster(&[])] {
            let agents = resolve_for(&own, &BTreeMap::new(), &target).unwrap().spec.agents;
            let McpTransport::Http { headers, .. } = &agents[0].mcp[0].transport else { panic!("{key}") };
            assert_eq!(headers["X-Key"], format!("${{{variable}}}"));
            assert!(agents[0].required_env.contains(&variable.to_owned()), "{:?}", agents[0].required_env);
            let Placement::Remote { headers, .. } = &agents[1].placement else { panic!("{key}") };
            assert_eq!(headers["Authorization"], format!("Bearer ${{{variable}}}"));
        }
    }
}

#[test]
fn a_child_process_with_an_image_is_behind_a_bridge_in_a_cluster_only() {
    let own = resource(
        "agents:
- name: own
  identity: { inline: { description: d, systemPrompt: s } }
  mcp: [{ name: fs, stdio: { image: 'node:24', command: serve } }]",
    );
    let here = resolve(&own, &BTreeMap::new()).unwrap().spec;
    assert!(
        matches!(&here.agents[0].mcp[0].transport, McpTransport::Stdio { command, .. } if command == "serve")
    );
    let there = resolve_for(&own, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    let port = crate::resolve::bridge_ports::ports(&own.spec)[&("own".to_owned(), "fs".to_owned())];
    let url = format!("http://127.0.0.1:{port}/mcp");
    assert_eq!(there.agents[0].mcp[0].transport, McpTransport::Http { url, headers: BTreeMap::new() });
}

#[test]
fn containers_and_config_maps_need_a_cluster() {
    let spec = "agents:
- name: own
  identity: { configMapRef: { name: id } }
  mcp: [{ name: side, container: { image: i, port: 9000 } }, { name: shared, container: { image: i, port: 8000, path: /x, placement: Service } }]
prompts: { systemPrompt: { configMapRef: { name: id, key: supervisor } } }";
    let resource = resource(spec);
    let here = faults(&resource, &[]);
    assert_eq!(here.len(), 4, "{here:#?}");
    let maps = cluster(&[(
        "id",
        &[("description", "d"), ("systemPrompt", "s"), ("supervisor", "p"), ("title", "T")],
    )]);
    let spec = resolve_for(&resource, &BTreeMap::new(), &maps).unwrap().spec;
    assert_eq!(spec.supervisor.system_prompt.as_deref(), Some("p"));
    let agent = &spec.agents[0];
    assert_eq!((agent.title.as_str(), agent.system_prompt.as_str()), ("T", "s"));
    let urls: Vec<_> = agent.mcp.iter().map(|server| server.transport.clone()).collect();
    let http = |url: &str| McpTransport::Http { url: url.to_owned(), headers: BTreeMap::new() };
    assert_eq!(
        urls,
        [http("http://127.0.0.1:9000/mcp"), http("http://platform-own-shared-c95a60.ns.svc:8000/x")]
    );
    let lost = resolve_for(&resource, &BTreeMap::new(), &cluster(&[])).unwrap_err().to_string();
    assert!(lost.contains("there is no key `supervisor` in ConfigMap `id`"), "{lost}");

    let resolved = resolve_for(&resource, &BTreeMap::new(), &Target::ClusterUnread).unwrap();
    let warnings = resolved.warnings.iter().map(ToString::to_string);
    let warnings: Vec<String> = warnings.filter(|warning| warning.contains("ConfigMap")).collect();
    let expected = |path| format!("{path}: ConfigMap `id` is not checked: only the cluster has it");
    let paths = ["spec.agents[own].identity.configMapRef", "spec.prompts.systemPrompt.configMapRef"];
    assert_eq!(warnings, paths.map(expected));
}

#[test]
fn the_documents_of_an_agent_can_be_in_a_config_map() {
    let resource = resource("agents:\n- name: own\n  identity: { configMapRef: { name: id } }");
    let resolved = |identity: &str| {
        let texts =
            [("IDENTITY.md", identity), ("CONTEXT.md", "Clusters are in Oslo."), ("description", "unused")];
        resolve_for(&resource, &BTreeMap::new(), &cluster(&[("id", &texts)]))
    };
    let spec = resolved("---\nroutingHint: When it drips.\n---\n# Plumber\n\nMends pipes.\n").unwrap().spec;
    let agent = &spec.agents[0];
    assert_eq!((&*agent.title, &*agent.description), ("Plumber", "Mends pipes."));
    assert_eq!(agent.routing_hint, "When it drips.");
    assert_eq!(agent.system_prompt, "# Plumber\n\nMends pipes.\n\nClusters are in Oslo.");
    for (identity, fault) in [
        ("---\nshell: {}\n---\n# A\n\nB.", "IDENTITY.md: shell: a ConfigMap does not configure an agent"),
        ("---\nname: other\n---\n# A\n\nB.", "is `other`, and the agent that was asked for is `own`"),
        (" ", "IDENTITY.md: is empty"),
    ] {
        let faults = resolved(identity).unwrap_err().to_string();
        assert!(
            faults.contains("spec.agents[own].identity.configMapRef") && faults.contains(fault),
            "{faults}"
        );
    }
}

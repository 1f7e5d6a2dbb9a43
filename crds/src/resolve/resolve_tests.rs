use std::collections::BTreeMap;

use super::*;
use crate::rendered::{AnswerMode, Home, McpTransport, Store};
use crate::resource::model::Provider;
use crate::{default_resource, read_resource};

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn resource(spec: &str) -> CaipeSupervisor {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let yaml = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: platform }}\nspec:\n{spec}"
    );
    read_resource(&yaml).unwrap_or_else(|faults| panic!("{faults}\n{yaml}"))
}

fn default_spec(variables: &[(&str, &str)]) -> RenderedSpec {
    resolve(&default_resource(), &env(variables)).unwrap_or_else(|faults| panic!("{faults}")).spec
}

fn faults(resource: &CaipeSupervisor, variables: &[(&str, &str)]) -> Vec<String> {
    let faults = resolve(resource, &env(variables)).map(|resolved| resolved.spec).unwrap_err();
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

fn cluster(config_maps: &[(&str, &[(&str, &str)])]) -> Surroundings {
    let maps = config_maps.iter().map(|(name, keys)| ((*name).to_owned(), env(keys)));
    Surroundings::Cluster { namespace: "ns".to_owned(), config_maps: maps.collect() }
}

#[test]
fn without_a_file_and_without_variables_the_core_agents_run_here() {
    let spec = default_spec(&[]);
    assert_eq!(spec.agents.len(), 14);
    assert!(spec.agents.iter().all(|agent| agent.home == Home::InProcess {} && !agent.mcp.is_empty()));
    assert_eq!(spec.answer_mode, AnswerMode::Structured);
    assert_eq!(
        (spec.limits.recursion, spec.limits.max_context_tokens, spec.limits.min_messages_to_keep),
        (500, 100_000, 4)
    );
    assert_eq!((spec.rag, spec.store, spec.epoch), (None, Store::Sqlite {}, 0));
}

#[test]
fn placement_by_variables_and_by_the_resource_is_one_rule() {
    let here = "agents: [{ name: argocd }, { name: jira }]";
    let addresses =
        [("ARGOCD_AGENT_HOST", "argocd.example"), ("JIRA_AGENT_URL", "https://jira.example/a2a/")];
    let cases: &[(&str, &[(&str, &str)], &[&str])] = &[
        ("", &[], &[]),
        ("distributedAgents: [ArgoCD]", &[], &["argocd"]),
        ("distributedAgents: [all]", &[], &["argocd", "jira"]),
        ("distributedMode: true", &[], &["argocd", "jira"]),
        ("distributedAgents: [argocd]\ndistributedMode: true", &[], &["argocd"]),
        ("", &[("DISTRIBUTED_AGENTS", "argocd")], &["argocd"]),
        ("distributedAgents: [argocd]", &[("DISTRIBUTED_AGENTS", "jira")], &["jira"]),
        ("distributedAgents: [argocd]", &[("DISTRIBUTED_AGENTS", " , ")], &["argocd"]),
        ("distributedMode: true", &[("DISTRIBUTED_MODE", "false")], &[]),
        ("", &[("DISTRIBUTED_MODE", "yes")], &["argocd", "jira"]),
        ("distributedAgents: [all]", &[("ENABLE_ARGOCD", "false")], &["jira"]),
    ];
    for (spec, variables, expected) in cases {
        let mut all = variables.to_vec();
        all.extend(addresses);
        let spec = resolve(&resource(&format!("{here}\n{spec}")), &env(&all)).unwrap().spec;
        let remote = spec.agents.iter().filter(|agent| matches!(agent.home, Home::Remote { .. }));
        assert_eq!(&remote.map(|agent| agent.name.as_str()).collect::<Vec<_>>(), expected, "{variables:?}");
    }
}

#[test]
fn enable_takes_out_and_calls_in() {
    let cases: &[(&str, &[(&str, &str)], &[&str])] = &[
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
fn a_remote_agent_is_where_the_variables_say_and_never_here_by_default() {
    let jira = resource("agents: [{ name: jira }]\ndistributedAgents: [jira]");
    let cases = [
        (vec![("JIRA_AGENT_HOST", "jira")], "http://jira:8000"),
        (vec![("JIRA_AGENT_HOST", "jira"), ("JIRA_AGENT_PORT", "8004")], "http://jira:8004"),
        (vec![("JIRA_AGENT_URL", "https://x/y/"), ("JIRA_AGENT_HOST", "jira")], "https://x/y"),
    ];
    for (variables, expected) in cases {
        let spec = resolve(&jira, &env(&variables)).unwrap().spec;
        assert_eq!(spec.agents[0].home, Home::Remote { url: expected.to_owned(), headers: BTreeMap::new() });
    }
    for variables in [vec![], vec![("JIRA_AGENT_PORT", "8004")], vec![("JIRA_AGENT_URL", " ")]] {
        let faults = faults(&jira, &variables);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("$JIRA_AGENT_URL: agent `jira` is remote and has no address"),
            "{faults:?}"
        );
    }
    let in_cluster = resolve_in(&jira, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    let service =
        Home::Remote { url: "http://platform-jira.ns.svc:8000".to_owned(), headers: BTreeMap::new() };
    assert_eq!(in_cluster.agents[0].home, service);
}

#[test]
fn each_remote_agent_without_an_address_is_named() {
    let faults = faults(&default_resource(), &[("DISTRIBUTED_AGENTS", "all"), ("ENABLE_SLACK", "no")]);
    assert_eq!(faults.len(), 12, "14 without slack and aigateway: {faults:#?}");
    assert!(faults.iter().all(|fault| !fault.contains("slack") && !fault.contains("aigateway")));
}

#[test]
fn an_agent_with_a_local_form_only_is_refused_by_name_and_excused_from_all() {
    let gateway = resource("agents: [{ name: aigateway }]");
    let refused = faults(&gateway, &[("DISTRIBUTED_AGENTS", "aigateway")]);
    assert!(refused[0].contains("`aigateway` can only run in-process"), "{refused:?}");
    let resolved = resolve(&gateway, &env(&[("DISTRIBUTED_AGENTS", "all")])).unwrap();
    assert_eq!(resolved.spec.agents[0].home, Home::InProcess {});
    assert!(
        resolved.warnings.iter().any(|warning| warning.message.contains("`aigateway` has no remote form"))
    );
}

#[test]
fn an_unknown_name_in_the_list_is_a_warning() {
    let resolved = resolve(&default_resource(), &env(&[("DISTRIBUTED_AGENTS", "agrocd")])).unwrap();
    let warnings: Vec<_> = resolved.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.contains("no agent `agrocd`")), "{warnings:?}");
}

#[test]
fn bad_values_are_faults_that_name_the_variable_all_at_once() {
    let variables = [
        ("LANGGRAPH_RECURSION_LIMIT", "many"),
        ("MAX_CONTEXT_TOKENS", "-1"),
        ("MIN_MESSAGES_TO_KEEP", "4.5"),
        ("USE_STRUCTURED_RESPONSE", "maybe"),
        ("ENABLE_STREAMING", "2"),
        ("ENABLE_JIRA", "enabled"),
        ("DISTRIBUTED_MODE", "some"),
        ("AGENT_CONNECTIVITY_TIMEOUT", "5s"),
        ("AGENT_CONNECTIVITY_RETRY_DELAY", "NaN"),
        ("A2A_TIMEOUT", "-1"),
        ("EXTERNAL_URL", "localhost:8000"),
        ("LANGGRAPH_CHECKPOINT_TYPE", "postgres"),
        ("LLM_PROVIDER", "skynet"),
        ("ARGOCD_MCP_MODE", "carrier-pigeon"),
        ("ENABLE_RAG", "perhaps"),
    ];
    let faults = faults(&default_resource(), &variables);
    for (name, _) in variables {
        assert!(faults.iter().any(|fault| fault.starts_with(&format!("${name}: "))), "{name}: {faults:#?}");
    }
    assert_eq!(faults.len(), variables.len(), "{faults:#?}");
}

#[test]
fn numbers_and_switches_of_the_environment_win() {
    let spec = default_spec(&[
        ("LANGGRAPH_RECURSION_LIMIT", " 50 "),
        ("MAX_CONTEXT_TOKENS", "2000"),
        ("MIN_MESSAGES_TO_KEEP", "7"),
        ("USE_STRUCTURED_RESPONSE", "FALSE"),
        ("ENABLE_STREAMING", "0"),
        ("EXTERNAL_URL", "https://caipe.example"),
        ("A2A_TIMEOUT", "1.5"),
        ("AGENT_CONNECTIVITY_MAX_RETRIES", "0"),
        ("AGENT_CONNECTIVITY_REFRESH_INTERVAL", "60"),
        ("SKIP_AGENT_CONNECTIVITY_CHECK", "true"),
        ("AGENT_CONNECTIVITY_ENABLE_BACKGROUND", "false"),
    ]);
    assert_eq!(
        (spec.limits.recursion, spec.limits.max_context_tokens, spec.limits.min_messages_to_keep),
        (50, 2000, 7)
    );
    assert_eq!(
        (spec.answer_mode, spec.streaming, spec.limits.agent_timeout_ms),
        (AnswerMode::Marker, false, 1500)
    );
    assert_eq!(spec.supervisor.external_url.as_deref(), Some("https://caipe.example"));
    let probing = &spec.connectivity;
    assert_eq!((probing.check, probing.background, probing.max_retries), (false, false, 0));
    assert_eq!(probing.refresh_interval_ms, 60_000);
}

#[test]
fn the_knowledge_base() {
    let with = resource("rag: { url: 'http://rag:9446/', searchMaxCalls: 7 }");
    let cases: Vec<(CaipeSupervisor, Vec<(&str, &str)>, Option<(&str, u32)>)> = vec![
        (default_resource(), vec![], None),
        (default_resource(), vec![("RAG_SERVER_URL", "http://x:1")], None),
        (default_resource(), vec![("ENABLE_RAG", "true")], Some(("http://localhost:9446", 5))),
        (
            default_resource(),
            vec![("ENABLE_RAG", "true"), ("RAG_SERVER_URL", "http://x:1")],
            Some(("http://x:1", 5)),
        ),
        (with.clone(), vec![], Some(("http://rag:9446", 7))),
        (with.clone(), vec![("SEARCH_MAX_CALLS", "2")], Some(("http://rag:9446", 2))),
        (with, vec![("ENABLE_RAG", "false")], None),
    ];
    for (resource, variables, expected) in cases {
        let rag = resolve(&resource, &env(&variables)).unwrap().spec.rag;
        let found = rag.as_ref().map(|rag| (rag.url.as_str(), rag.search_max_calls));
        assert_eq!(found, expected, "{variables:?}");
    }
}

#[test]
fn the_store() {
    let redis = |spec: RenderedSpec| match spec.store {
        Store::Redis(store) => (store.url, store.required, store.secrets_dir),
        other => panic!("{other:?}"),
    };
    assert_eq!(default_spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "memory")]).store, Store::Memory {});
    let by_variables =
        [("LANGGRAPH_CHECKPOINT_TYPE", "Redis"), ("LANGGRAPH_CHECKPOINT_REDIS_URL", "redis://:secret@r")];
    assert_eq!(
        redis(default_spec(&by_variables)),
        ("${LANGGRAPH_CHECKPOINT_REDIS_URL}".to_owned(), false, None)
    );
    let declared = resource("store: { redis: { secretRef: { name: r }, required: true } }");
    let here = resolve(&declared, &env(&[("REDIS_URL", "redis://r")])).unwrap().spec;
    assert_eq!(redis(here), ("${REDIS_URL}".to_owned(), true, None));
    let there = resolve_in(&declared, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    assert_eq!(redis(there).2.as_deref(), Some("/var/run/caipe/secrets/store"));
    let missing = faults(&default_resource(), &[("LANGGRAPH_CHECKPOINT_TYPE", "mongodb")]);
    assert!(missing[0].contains("MONGODB_URI"), "{missing:?}");
    assert!(faults(&declared, &[])[0].starts_with("$REDIS_URL: is not set"));
}

#[test]
fn the_model() {
    let openai = "model: { provider: openai, name: gpt-5, baseUrl: 'http://a', temperature: 0.5, fallbacks: [{ provider: anthropic-claude, name: c }] }";
    let scripted = "model: { provider: scripted, script: { path: turns.yaml } }";
    type Expected<'a> = Vec<(Provider, Option<&'a str>, Option<&'a str>)>;
    use Provider::{AnthropicClaude, AwsBedrock, AzureOpenAi, OpenAi, Scripted};
    let fallback = (AnthropicClaude, Some("c"), None);
    let cases: Vec<(&str, Vec<(&str, &str)>, Expected<'_>)> = vec![
        ("agents: []", vec![], vec![]),
        (openai, vec![], vec![(OpenAi, Some("gpt-5"), Some("http://a")), fallback]),
        (
            openai,
            vec![("OPENAI_MODEL_NAME", "gpt-6")],
            vec![(OpenAi, Some("gpt-6"), Some("http://a")), fallback],
        ),
        (
            openai,
            vec![("OPENAI_ENDPOINT", "http://b")],
            vec![(OpenAi, Some("gpt-5"), Some("http://b")), fallback],
        ),
        (
            openai,
            vec![("LLM_PROVIDER", "aws-bedrock"), ("AWS_BEDROCK_MODEL_ID", "m")],
            vec![(AwsBedrock, Some("m"), None), fallback],
        ),
        (scripted, vec![], vec![(Scripted, None, None)]),
        (
            scripted,
            vec![("LLM_PROVIDER", "Azure-OpenAI"), ("AZURE_OPENAI_DEPLOYMENT", "d")],
            vec![(AzureOpenAi, Some("d"), None)],
        ),
        (
            "agents: []",
            vec![
                ("LLM_PROVIDER", "openai"),
                ("SUPERVISOR_LLM_PROVIDER", "anthropic"),
                ("OPENAI_MODEL_NAME", "o"),
                ("ANTHROPIC_MODEL_NAME", "a"),
            ],
            vec![(AnthropicClaude, Some("a"), None)],
        ),
        (
            "agents: []",
            vec![("LLM_PROVIDER", "openai"), ("OPENAI_MODEL_NAME", "o"), ("SUPERVISOR_MODEL", "s")],
            vec![(OpenAi, Some("s"), None)],
        ),
    ];
    for (spec, variables, expected) in cases {
        let spec =
            resolve(&resource(spec), &env(&variables)).unwrap_or_else(|faults| panic!("{faults}")).spec;
        let found = spec
            .models
            .iter()
            .map(|model| (model.provider, model.name.as_deref(), model.base_url.as_deref()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{variables:?}");
    }
}

#[test]
fn a_model_without_a_name_or_a_script_is_a_fault() {
    let unnamed = faults(&default_resource(), &[("LLM_PROVIDER", "openai")]);
    assert!(unnamed[0].starts_with("$OPENAI_MODEL_NAME: is not set"), "{unnamed:?}");
    let scriptless = faults(&default_resource(), &[("LLM_PROVIDER", "scripted")]);
    assert!(scriptless[0].starts_with("$SCRIPTED_MODEL_FILE: is not set"), "{scriptless:?}");
}

#[test]
fn no_model_at_all_is_a_warning() {
    let resolved = resolve(&default_resource(), &BTreeMap::new()).unwrap();
    assert!(resolved.spec.models.is_empty());
    assert!(resolved.warnings.iter().any(|warning| warning.message.contains("no language model")));
}

#[test]
fn an_agent_may_have_a_model_of_its_own() {
    let spec = "model: { provider: openai, name: big }\nagents: [{ name: jira, model: { provider: openai, name: small } }, { name: slack }]";
    let of = |variables: &[(&str, &str)]| {
        let spec = resolve(&resource(spec), &env(variables)).unwrap().spec;
        spec.agents.into_iter().map(|agent| agent.model.and_then(|model| model.name)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [Some("small".to_owned()), None]);
    assert_eq!(of(&[("SUBAGENT_SLACK_MODEL", "tiny")]), [Some("small".to_owned()), Some("tiny".to_owned())]);
    assert_eq!(of(&[("SUBAGENT_JIRA_MODEL", "tiny")]), [Some("tiny".to_owned()), None]);
}

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
        (&[("MCP_MODE", "http"), ("MCP_HOST", "mcp")], "http://mcp:8000/mcp/"),
        (
            &[
                ("MCP_MODE", "stdio"),
                ("ARGOCD_MCP_MODE", "streamable_http"),
                ("ARGOCD_MCP_HOST", "a"),
                ("ARGOCD_MCP_PORT", "1"),
                ("MCP_HOST", "b"),
                ("MCP_PORT", "2"),
            ],
            "http://a:1/mcp/",
        ),
    ];
    for (variables, expected) in cases {
        assert_eq!(&url(variables), expected, "{variables:?}");
    }
    let lost = faults(&argocd, &[("MCP_MODE", "http")]);
    assert!(lost[0].starts_with("$ARGOCD_MCP_HOST: is not set"), "{lost:?}");
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
    let there = resolve_in(&own, &BTreeMap::new(), &cluster(&[])).unwrap().spec;
    assert_eq!(there.agents[0].secrets_dir.as_deref(), Some("/var/run/caipe/secrets/agents/run-books"));
}

#[test]
fn an_external_agent_is_remote_with_its_token_as_a_template() {
    let external = resource(
        "agents: [{ name: pipelines, external: { url: 'https://agents.example.com/pipelines', secretRef: { name: t, key: PIPELINES_TOKEN } } }]",
    );
    let agent = resolve(&external, &BTreeMap::new()).unwrap().spec.agents.remove(0);
    let headers = env(&[("Authorization", "Bearer ${PIPELINES_TOKEN}")]);
    assert_eq!(agent.home, Home::Remote { url: "https://agents.example.com/pipelines".to_owned(), headers });
    assert_eq!(agent.description, "pipelines: operations and management");
    assert!(agent.mcp.is_empty() && agent.system_prompt.is_empty());
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
    let spec = resolve_in(&resource, &BTreeMap::new(), &maps).unwrap().spec;
    assert_eq!(spec.supervisor.system_prompt.as_deref(), Some("p"));
    let agent = &spec.agents[0];
    assert_eq!((agent.title.as_str(), agent.system_prompt.as_str()), ("T", "s"));
    let urls: Vec<_> = agent.mcp.iter().map(|server| server.transport.clone()).collect();
    let http = |url: &str| McpTransport::Http { url: url.to_owned(), headers: BTreeMap::new() };
    assert_eq!(urls, [http("http://127.0.0.1:9000/mcp"), http("http://platform-own-shared.ns.svc:8000/x")]);
    let lost = resolve_in(&resource, &BTreeMap::new(), &cluster(&[])).unwrap_err().to_string();
    assert!(lost.contains("there is no key `supervisor` in ConfigMap `id`"), "{lost}");
}

#[test]
fn no_value_of_a_variable_that_could_be_secret_is_rendered() {
    let mut variables = BTreeMap::new();
    for entry in crate::catalogue::entries() {
        variables.extend(entry.env.iter().map(|it| (it.name.clone(), "hunter2".to_owned())));
    }
    variables.extend(env(&[
        ("OPENAI_API_KEY", "hunter2"),
        ("LANGGRAPH_CHECKPOINT_TYPE", "redis"),
        ("REDIS_URL", "redis://hunter2"),
    ]));
    let spec = resolve(&default_resource(), &variables).unwrap().spec;
    assert!(!serde_json::to_string(&spec).unwrap().contains("hunter2"));
}

#[test]
fn the_hash_is_that_of_the_content_alone() {
    let spec = default_spec(&[]);
    assert_eq!(spec.hash, spec.content_hash());
    assert_eq!(spec.hash.len(), 64);
    assert_eq!(default_spec(&[]).hash, spec.hash);
    let moved = RenderedSpec { epoch: 7, hash: String::new(), ..spec.clone() };
    assert_eq!(moved.content_hash(), spec.hash);
    assert_ne!(default_spec(&[("MAX_CONTEXT_TOKENS", "2000")]).hash, spec.hash);
    let text = serde_json::to_string_pretty(&spec).unwrap();
    let back: RenderedSpec = serde_json::from_str(&text).unwrap();
    assert_eq!((back.content_hash(), &back), (spec.hash.clone(), &spec));
    let back: RenderedSpec = serde_saphyr::from_str(&serde_saphyr::to_string(&spec).unwrap()).unwrap();
    assert_eq!(back, spec);
}

use super::*;
use crate::rendered::{AnswerMode, Placement, Store};

#[test]
fn without_a_file_and_without_variables_the_core_agents_run_here() {
    let spec = default_spec(&[]);
    assert_eq!(spec.agents.len(), 14);
    assert!(
        spec.agents.iter().all(|agent| agent.placement == Placement::InProcess {} && !agent.mcp.is_empty())
    );
    assert_eq!(spec.answer_mode, AnswerMode::Structured);
    assert_eq!(
        (spec.limits.recursion, spec.limits.max_context_tokens, spec.limits.min_messages_to_keep),
        (500, 100_000, 4)
    );
    assert_eq!((spec.store, spec.epoch), (Store::Sqlite {}, 0));
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
    assert_eq!(probing.refresh_interval_ms, Some(60_000));
}

#[test]
fn variables_of_features_that_are_missing_are_refused() {
    let cases = [
        (
            "LANGGRAPH_CHECKPOINT_TYPE",
            "Postgres",
            "$LANGGRAPH_CHECKPOINT_TYPE: `postgres` is unknown: set it to sqlite, redis, mongodb or memory",
        ),
        (
            "LANGGRAPH_CHECKPOINT_TYPE",
            "redsi",
            "$LANGGRAPH_CHECKPOINT_TYPE: `redsi` is unknown: set it to sqlite, redis, mongodb or memory",
        ),
    ];
    for (name, value, fault) in cases {
        assert_eq!(faults(&default_resource(), &[(name, value)]), [fault]);
    }
    let harmless = [("RAG_SERVER_URL", "http://x:1"), ("REDIS_URL", "redis://r")];
    assert_eq!(default_spec(&harmless).store, Store::Sqlite {});
}

#[test]
fn the_fault_of_a_variable_shows_the_start_of_its_value() {
    for (value, shown) in [("x".repeat(40), "x".repeat(40)), ("x".repeat(41), format!("{}…", "x".repeat(40)))]
    {
        let expected = format!("$ENABLE_STREAMING: must be true or false, not \"{shown}\"");
        assert_eq!(faults(&default_resource(), &[("ENABLE_STREAMING", &value)]), [expected]);
    }
}

#[test]
fn the_knowledge_base_of_the_resource_and_of_the_environment() {
    let with = resource("rag: { url: 'http://rag:9446/', searchMaxCalls: 2 }");
    let without = default_resource();
    let cases = [
        (&without, vec![("RAG_SERVER_URL", "http://x:1")], None),
        (&without, vec![("ENABLE_RAG", "true")], Some(("http://localhost:9446/mcp", 5))),
        (
            &without,
            vec![("ENABLE_RAG", "1"), ("RAG_SERVER_URL", "http://x:1/mcp")],
            Some(("http://x:1/mcp", 5)),
        ),
        (&with, vec![], Some(("http://rag:9446/mcp", 2))),
        (&with, vec![("SEARCH_MAX_CALLS", "7")], Some(("http://rag:9446/mcp", 7))),
        (&with, vec![("RAG_SERVER_URL", "https://kb.example/x/")], Some(("https://kb.example/x/mcp", 2))),
        (&with, vec![("ENABLE_RAG", "false")], None),
    ];
    for (resource, variables, expected) in cases {
        let rag = resolve(resource, &env(&variables)).unwrap().spec.rag;
        let found = rag.as_ref().map(|rag| (rag.url.as_str(), rag.search_max_calls));
        assert_eq!(found, expected, "{variables:?}");
    }
    let variables = [
        ("ENABLE_RAG", "true"),
        ("FETCH_DOCUMENT_MAX_CALLS", "4"),
        ("RAG_MAX_OUTPUT_CHARS", "500"),
        ("RAG_MAX_SEARCH_RESULTS", "9"),
        ("RAG_TOOL_NAMES", " search, find ,"),
    ];
    let rag = default_spec(&variables).rag.unwrap();
    assert_eq!((rag.fetch_document_max_calls, rag.max_output_chars, rag.max_search_results), (4, 500, 9));
    assert_eq!(rag.tool_names, ["search", "find"]);
    assert_eq!(default_spec(&[("ENABLE_RAG", "true")]).rag.unwrap().tool_names.len(), 5);
    let unreadable = [("ENABLE_RAG", "true"), ("SEARCH_MAX_CALLS", "0"), ("RAG_SERVER_URL", "rag:9446")];
    assert_eq!(faults(&default_resource(), &unreadable).len(), 2);
}

#[test]
fn the_headers_of_the_knowledge_base_name_variables() {
    let header = "{ name: Authorization, prefix: 'Bearer ', secretKeyRef: { name: kb, key: kb-key } }";
    let with = resource(&format!("rag: {{ url: 'http://rag', headersFrom: [{header}] }}"));
    let rag = resolve(&with, &env(&[])).unwrap().spec.rag.unwrap();
    assert_eq!(rag.headers, [("Authorization".to_owned(), "Bearer ${kb_key}".to_owned())].into());
    assert_eq!(rag.secrets_dir, None, "the environment has it");
    let rag = resolve_for(&with, &env(&[]), &cluster(&[])).unwrap().spec.rag.unwrap();
    assert_eq!(rag.secrets_dir.as_deref(), Some("/var/run/caipe/secrets/rag"));
}

#[test]
fn the_tools_for_agents_of_others() {
    let agents = "agents: [{ name: jira }, { name: pipelines, external: { url: 'https://p.example' } }]";
    let with = resource(&format!("{agents}\na2a: {{ allow: [ '*.example', '10.0.0.0/8' ] }}"));
    let without = resource(agents);
    let registered = vec!["pipelines"];
    let cases = [
        (&without, vec![], None),
        (&without, vec![("CAIPE_A2A_ALLOW", "x")], None),
        (&without, vec![("CAIPE_A2A_TOOLS", "true")], Some((registered.clone(), vec![]))),
        (&with, vec![], Some((registered.clone(), vec!["*.example", "10.0.0.0/8"]))),
        (&with, vec![("CAIPE_A2A_ALLOW", " a:1 ,, *")], Some((registered, vec!["a:1", "*"]))),
        (&with, vec![("CAIPE_A2A_TOOLS", "false")], None),
        (&with, vec![("ENABLE_PIPELINES", "false")], Some((vec![], vec!["*.example", "10.0.0.0/8"]))),
    ];
    for (resource, variables, expected) in cases {
        let tools = resolve(resource, &env(&variables)).unwrap().spec.a2a;
        let found = tools.map(|tools| (tools.agents, tools.allow));
        let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected = expected.map(|(agents, allow)| (texts(agents), texts(allow)));
        assert_eq!(found, expected, "{variables:?}");
    }
}

#[test]
fn an_agent_that_the_resource_names_has_the_tools_for_agents_of_others() {
    let agents = "agents: [{ name: jira, delegates: [pipelines] }, { name: github }, { name: argocd, enabled: false }, \
                  { name: pipelines, external: { url: 'https://p.example' } }, { name: other, external: { url: 'https://o.example' } }]";
    let with = |names: &str| {
        let resource = resource(&format!("{agents}\na2a: {{ allow: [ '*.example' ], agents: [{names}] }}"));
        resolve(&resource, &BTreeMap::new())
    };
    let resolved = with("Jira, github, argocd").unwrap();
    let of = |spec: &RenderedSpec, name: &str| {
        let tools = spec.agent(name).unwrap().a2a.clone();
        tools.map(|tools| (tools.agents.join(" "), tools.allow.join(" ")))
    };
    let allow = "*.example".to_owned();
    assert_eq!(of(&resolved.spec, "jira"), Some(("pipelines".to_owned(), allow.clone())));
    assert_eq!(of(&resolved.spec, "github"), Some((String::new(), allow.clone())));
    assert_eq!(of(&resolved.spec, "pipelines"), None);
    assert!(
        resolved
            .warnings
            .iter()
            .any(|it| it.to_string().contains("spec.a2a.agents[2]: the agent `argocd` is not"))
    );
    let (alone, own) = resolved.spec.for_agent("jira").unwrap();
    assert_eq!((of(&alone, "jira"), alone.a2a), (Some(("pipelines".to_owned(), allow)), None));
    assert_eq!(own.a2a.unwrap().agents, ["pipelines"]);
    for (name, fault) in [("pipelines", "is another program"), ("jirra", "there is no agent `jirra`")] {
        let faults = with(name).unwrap_err().to_string();
        assert!(faults.contains("spec.a2a.agents[0]: ") && faults.contains(fault), "{faults}");
    }
    let required = resource("agents: [{ name: jira, requireApproval: [a2a_call] }]\na2a: { agents: [jira] }");
    let warnings = resolve(&required, &BTreeMap::new()).unwrap().warnings;
    assert!(!warnings.iter().any(|it| it.to_string().contains("requireApproval")), "{warnings:?}");
}

#[test]
fn the_store() {
    assert_eq!(default_spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "memory")]).store, Store::Memory {});
    assert_eq!(default_spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "SQLite")]).store, Store::Sqlite {});
}

#[test]
fn conversations_stay_as_long_as_the_resource_says() {
    for (store, expected) in [("", None), ("retentionDays: 7", Some(7)), ("retentionDays: 0", Some(0))] {
        let resource = resource(&format!("store: {{ {store} }}"));
        assert_eq!(resolve(&resource, &env(&[])).unwrap().spec.retention_days, expected, "{store}");
    }
}

#[test]
fn no_value_of_a_variable_that_could_be_secret_is_rendered() {
    let mut variables = BTreeMap::new();
    for entry in crate::catalogue::entries() {
        variables.extend(entry.env.iter().map(|it| (it.name.clone(), "hunter2".to_owned())));
    }
    variables.extend(env(&[("OPENAI_API_KEY", "hunter2")]));
    let spec = resolve(&default_resource(), &variables).unwrap().spec;
    assert!(!serde_json::to_string(&spec).unwrap().contains("hunter2"));
}

#[test]
fn pages_and_tokens_of_callers_are_for_the_supervisor_alone() {
    let spec = resource(
        "server: { corsOrigins: ['http://localhost:3000', 'https://portal.example.com'] }
auth: { oauth2: { issuer: a, audience: b, jwksUri: 'https://a/keys', requiredScopes: ['api://caipe/.default'] } }
agents: [{ name: jira }]",
    );
    let spec = resolve(&spec, &env(&[])).unwrap().spec;
    assert_eq!(spec.cors_origins, ["http://localhost:3000", "https://portal.example.com"]);
    assert_eq!(spec.oauth2.as_ref().unwrap().required_scopes, ["api://caipe/.default"]);
    let (single, _) = spec.for_agent("jira").unwrap();
    assert!(single.cors_origins.is_empty() && single.oauth2.is_none());
}

#[test]
fn an_origin_or_a_scope_of_another_form_is_a_fault() {
    for (spec, path) in [
        ("server: { corsOrigins: ['*'] }", "spec.server.corsOrigins[0]: must be a web origin"),
        (
            "server: { corsOrigins: ['http://a', 'http://a/'] }",
            "spec.server.corsOrigins[1]: must be a web origin",
        ),
        ("server: { corsOrigins: ['http://a:65536'] }", "spec.server.corsOrigins[0]: must be a web origin"),
        (
            "auth: { oauth2: { issuer: a, audience: b, jwksUri: 'https://a', requiredScopes: ['a b'] } }",
            "spec.auth.oauth2.requiredScopes[0]: must be a scope",
        ),
    ] {
        let yaml = format!(
            "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: a }}\nspec: {{ {spec} }}\n"
        );
        let faults = read_resource(&yaml).unwrap_err().to_string();
        assert!(faults.contains(path), "{spec}: {faults}");
    }
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

#[test]
fn mongodb_is_the_store_if_the_resource_or_a_variable_says_so() {
    let by_variable = default_spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "MongoDB")]).store;
    let store = |database: &str, ttl_minutes, required, secrets_dir: Option<&str>| Store::Mongodb {
        database: database.to_owned(),
        ttl_minutes,
        required,
        secrets_dir: secrets_dir.map(str::to_owned),
    };
    assert_eq!(by_variable, store("platform-engineer", None, false, None));
    let declared = resource(
        "store: { mongodb: { secretRef: { name: a }, database: shared, ttlMinutes: 60, required: true } }",
    );
    let spec = resolve_for(&declared, &super::env(&[]), &Target::ClusterUnread).unwrap().spec;
    assert_eq!(spec.store, store("shared", Some(60), true, Some("/var/run/caipe/secrets/store")));
    // A variable decides, and the resource's settings are those of another store.
    let redis =
        resolve_for(&declared, &super::env(&[("LANGGRAPH_CHECKPOINT_TYPE", "redis")]), &Target::Local);
    assert!(matches!(redis.unwrap().spec.store, Store::Redis { required: false, .. }));
    // A remote agent keeps its own tasks.
    let agent = spec.agents[0].name.clone();
    assert_eq!(spec.for_agent(&agent).unwrap().0.store, Store::Sqlite {});
}

#[test]
fn a_remote_agent_can_have_a_store_of_its_own() {
    let text = |more: &str| format!("agents: [{{ name: jira, placement: Remote, {more} }}]");
    let of = |more: &str| {
        let resource = resource(&text(more));
        let spec = resolve_for(&resource, &super::env(&[]), &Target::ClusterUnread).unwrap().spec;
        assert_eq!(spec.store, Store::Sqlite {}, "the supervisor's is another one");
        let (alone, _) = spec.for_agent("jira").unwrap();
        assert_eq!(alone.clone().for_agent("jira").unwrap().0, alone, "its own spec stays as it is");
        alone.store
    };
    let name = resource("agents: []").metadata.name.unwrap();
    let default = format!("default.{name}.jira");
    let redis = |database: &str, ttl_minutes, required| Store::Redis {
        database: database.to_owned(),
        ttl_minutes,
        required,
        secrets_dir: Some("/var/run/caipe/secrets/store".to_owned()),
    };
    assert_eq!(of("enabled: true"), Store::Sqlite {});
    let own = "store: { redis: { secretRef: { name: a } } }";
    assert_eq!(of(own), redis(&default, None, false));
    assert_eq!(of(&format!("{own}, replicas: 2")), redis(&default, None, true));
    let settings = "store: { redis: { secretRef: { name: a }, database: b, ttlMinutes: 5 } }";
    assert_eq!(of(settings), redis("b", Some(5), false));
    let mongodb = of("store: { mongodb: { secretRef: { name: a } } }");
    assert!(matches!(mongodb, Store::Mongodb { database, .. } if database == default));
}

#[test]
fn redis_is_the_store_if_the_resource_or_a_variable_says_so() {
    let redis = |database: &str, ttl_minutes, required, secrets_dir: Option<&str>| Store::Redis {
        database: database.to_owned(),
        ttl_minutes,
        required,
        secrets_dir: secrets_dir.map(str::to_owned),
    };
    let by_variable = default_spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "Redis")]).store;
    assert_eq!(by_variable, redis("platform-engineer", None, false, None));
    let declared = resource("store: { redis: { secretRef: { name: a }, ttlMinutes: 60, required: true } }");
    let name = declared.metadata.name.clone().unwrap();
    let spec = |env: &[(&str, &str)], target: &Target| {
        resolve_for(&declared, &super::env(env), target).unwrap().spec
    };
    assert_eq!(spec(&[], &Target::Local).store, redis(&name, Some(60), true, None));
    let mut elsewhere = declared.clone();
    elsewhere.metadata.namespace = Some("team".to_owned());
    let found = resolve_for(&elsewhere, &super::env(&[]), &Target::Local).unwrap().spec.store;
    assert_eq!(found, redis(&format!("team.{name}"), Some(60), true, None));
    let mounted = Some("/var/run/caipe/secrets/store");
    assert_eq!(
        spec(&[], &Target::ClusterUnread).store,
        redis(&format!("default.{name}"), Some(60), true, mounted)
    );
    let forever = spec(&[("LANGGRAPH_CHECKPOINT_TTL_MINUTES", "0")], &Target::Local);
    assert_eq!(forever.store, redis(&name, None, true, None));
    assert_eq!(spec(&[("LANGGRAPH_CHECKPOINT_TYPE", "sqlite")], &Target::Local).store, Store::Sqlite {});
    assert_eq!(spec(&[("LANGGRAPH_DEV", "1")], &Target::Local).store, Store::Memory {});
    // A remote agent keeps its own tasks.
    let agent = spec(&[], &Target::ClusterUnread).agents[0].name.clone();
    assert_eq!(spec(&[], &Target::ClusterUnread).for_agent(&agent).unwrap().0.store, Store::Sqlite {});
}

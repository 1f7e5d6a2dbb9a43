use super::*;
use crate::read_rendered;
use crate::resolve::Resolved;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn model() -> ModelChoice {
    ModelChoice {
        provider: Provider::OpenAi,
        name: Some("gpt-5".to_owned()),
        base_url: Some("https://models.example.com/v1".to_owned()),
        secrets_dir: Some("/var/run/caipe/secrets/model".to_owned()),
        temperature: Some(0.5),
        max_output_tokens: Some(4096),
        script: Some("/etc/caipe/script/script.yaml".to_owned()),
    }
}

fn servers() -> Vec<McpServer> {
    let stdio = McpTransport::Stdio {
        command: "npx".to_owned(),
        args: texts(&["-y", "server"]),
        env: map("TOKEN", "${TOKEN}"),
        cwd: Some("/work".to_owned()),
    };
    let http = McpTransport::Http {
        url: "http://localhost:9000/mcp".to_owned(),
        headers: map("Authorization", "Bearer ${TOKEN}"),
    };
    [("local", stdio), ("search", http)].map(|(name, transport)| McpServer::new(name, transport)).into()
}

fn agent(name: &str, placement: Placement) -> RenderedAgent {
    RenderedAgent {
        a2a: None,
        name: name.to_owned(),
        title: "Jira".to_owned(),
        description: "Issues.".to_owned(),
        routing_hint: "For issues.".to_owned(),
        system_prompt: "You work with issues.".to_owned(),
        placement,
        mcp: servers(),
        tools: texts(&["get_*"]),
        find_tools_above: None,
        skills: None,
        shell: None,
        web: None,
        workspace: None,
        max_turns: None,
        max_answer_words: None,
        verification: None,
        introspection: None,
        models: None,
        tasks: None,
        memory: None,
        require_approval: texts(&["delete_*"]),
        // The golden files are from before these fields.
        allow_always: Vec::new(),
        approvers: Vec::new(),
        delegates: Vec::new(),
        // The golden files are from before these fields.
        mode: AgentMode::Ask,
        read_tools: Vec::new(),
        auto_approve: Vec::new(),
        budget: None,
        store: None,
        required_env: texts(&["TOKEN"]),
        secrets_dir: Some("/var/run/caipe/secrets/agents/jira".to_owned()),
        model: Some(model()),
    }
}

fn connectivity() -> Connectivity {
    Connectivity {
        check: true,
        background: true,
        timeout_ms: 5000,
        max_retries: 3,
        retry_delay_ms: 2000,
        startup_delay_ms: 1000,
        refresh_interval_ms: Some(1500),
        fast_check_timeout_ms: 2000,
    }
}

/// A spec with a value for each field of the first versions.
fn full() -> RenderedSpec {
    let remote = Placement::Remote {
        url: "http://platform-jira.ns.svc:8000".to_owned(),
        headers: map("X-Key", "${KEY}"),
    };
    RenderedSpec {
        schema_version: 0,
        minimum_reader: 0,
        epoch: 7,
        hash: String::new(),
        supervisor: SupervisorIdentity {
            name: "Platform".to_owned(),
            description: "Answers questions.".to_owned(),
            system_prompt: Some("You answer questions.".to_owned()),
            skill_examples: texts(&["Which pods fail?"]),
            external_url: Some("https://caipe.example.com".to_owned()),
        },
        models: vec![model()],
        answer_mode: AnswerMode::Marker,
        streaming: true,
        condensation: None,
        limits: Limits {
            recursion: 500,
            max_context_tokens: 100_000,
            min_messages_to_keep: 10,
            max_tool_output_chars: 20_000,
            compact_output_lines: 50,
            model_timeout_ms: 300_000,
            tool_timeout_ms: 60_000,
            agent_timeout_ms: 300_000,
            mcp_start_timeout_ms: 30_000,
            guards: Guards::default(),
        },
        // The golden files are from before this field.
        rag: None,
        budgets: Budgets::default(),
        a2a: Some(A2aTools { agents: texts(&["pipelines"]), allow: texts(&["*.example.com"]) }),
        skills: None,
        store: Store::Memory {},
        // The golden files are from before this field.
        retention_days: None,
        memory: None,
        connectivity: connectivity(),
        oauth2: Some(OAuth2 {
            issuer: "https://issuer.example.com".to_owned(),
            audience: "caipe".to_owned(),
            jwks_uri: "https://issuer.example.com/keys".to_owned(),
            required_scopes: texts(&["caipe.use"]),
        }),
        // The golden files are from before these fields.
        approvers: Vec::new(),
        workflows: Vec::new(),
        cors_origins: texts(&["https://portal.example.com"]),
        agents: vec![agent("github", Placement::InProcess {}), agent("jira", remote)],
    }
    .sealed()
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// `rendered-0.yaml` is from before there were versions.
#[test]
fn a_spec_of_each_earlier_version_means_the_same() {
    for (name, version) in [("rendered-0.yaml", 0), ("rendered-1.yaml", 1)] {
        let Resolved { spec, warnings } = read_rendered(&golden(name)).unwrap();
        assert_eq!(
            (spec.schema_version, spec.minimum_reader, warnings),
            (version, version, vec![]),
            "{name}"
        );
        assert_eq!(
            spec,
            RenderedSpec { schema_version: version, minimum_reader: version, ..full() },
            "{name}"
        );
    }
}

#[test]
fn this_program_writes_the_newest_golden_file() {
    let newest = golden(&format!("rendered-{SCHEMA_VERSION}.yaml"));
    assert_eq!(serde_saphyr::to_string(&full()).unwrap(), newest);
}

/// As an operator writes it that is one version ahead, with nothing that an older pod would misunderstand.
#[test]
fn a_spec_of_the_next_version_means_the_same_without_its_unknown_fields() {
    let Resolved { spec, warnings } = read_rendered(&golden("rendered-next.yaml")).unwrap();
    let hash = "a hash that covers the unknown fields".to_owned();
    let known = RenderedSpec { schema_version: SCHEMA_VERSION + 1, hash, ..full() };
    assert_eq!(spec, known);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let paths = "agents[].mcp[].retries, agents[].placement.region, limits.parallelAgents, tracing;";
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(paths), "{warnings:?}");
}

#[test]
fn a_spec_that_needs_a_newer_reader_is_refused_before_anything_else() {
    let next = golden("rendered-next.yaml");
    let cases = [
        (
            "minimumReader: 1",
            "minimumReader: 2",
            "minimumReader: the spec has schema version 2, and this program",
        ),
        (
            "memory:",
            "tape:",
            "store: unknown variant `tape`, expected one of `sqlite`, `memory`, `redis`, `mongodb`; the spec has schema version 2",
        ),
        ("streaming: true", "streaming: often", "; the spec has schema version 2"),
        ("minimumReader: 1", "minimumReader: soon", "minimumReader: invalid type"),
    ];
    for (from, to, expected) in cases {
        let error = read_rendered(&next.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let own = golden("rendered-1.yaml").replacen("memory:", "tape:", 1);
    let error = read_rendered(&own).unwrap_err().to_string();
    assert!(error.contains("`tape`") && !error.contains("schema version"), "{error}");
}

#[test]
fn the_hash_covers_neither_versions_nor_what_a_reader_ignores() {
    let before = read_rendered(&golden("rendered-0.yaml")).unwrap().spec;
    assert_eq!(full().hash, before.hash, "an upgrade of the operator alone is no new epoch");
    // The pod of an agent reads a spec that the operator has reduced to it.
    let (alone, _) = full().for_agent("jira").unwrap();
    let written = RenderedSpec { schema_version: 2, hash: "of a newer operator".to_owned(), ..alone };
    let (read, agent) = written.clone().for_agent("jira").unwrap();
    assert_eq!((read, agent.name.as_str()), (written, "jira"));
}

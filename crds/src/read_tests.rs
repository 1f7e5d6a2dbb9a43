use proptest::prelude::*;

use super::*;

fn file(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: {API_VERSION}\nkind: {KIND}\nmetadata: {{ name: platform }}\nspec:\n  replicas: 1\n  {spec}\n"
    )
}

fn faults(yaml: &str) -> Vec<String> {
    read_resource(yaml).err().into_iter().flatten().map(|fault| fault.to_string()).collect()
}

const EXAMPLE: &str = r#"
model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
distributedAgents: [argocd]
agents:
  - name: argocd
    secretRef: { name: argocd-token }
    resources: { requests: { memory: 64Mi } }
  - name: jira
    requireApproval: ["create_*", "delete_*"]
  - name: runbooks
    identity: { configMapRef: { name: runbooks-identity } }
    mcp:
      - name: search
        http: { url: http://rag:9446/mcp }
  - name: pipelines
    external: { url: https://agents.example.com/pipelines, secretRef: { name: pipelines-token } }
limits: { recursion: 500 }
store: { sqlite: { size: 2Gi } }
"#;

#[test]
fn the_example_is_read_and_survives_a_round_trip() {
    let resource = read_resource(&file(EXAMPLE)).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(resource.spec.agents().len(), 4);
    assert_eq!(resource.spec.limits, crate::resource::settings::Limits::default());
    let again = serde_saphyr::to_string(&resource).unwrap();
    let back = read_resource(&again).unwrap_or_else(|faults| panic!("{faults}\n{again}"));
    assert_eq!(back, resource);
}

#[test]
fn defaults_are_those_of_the_schema() {
    let resource =
        read_resource("apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {name: a}\nspec: {}")
            .unwrap();
    assert_eq!(resource.spec, crate::default_resource().spec);
}

#[test]
fn a_value_that_the_schema_forbids_is_reported_with_its_path() {
    let cases = [
        ("agnets: []", "spec.agnets: unknown key: did you mean `agents`?"),
        ("distributed_agents: []", "spec.distributed_agents: unknown key: did you mean `distributedAgents`?"),
        ("limits: { recursion: lots }", "spec.limits.recursion: expected a whole number, found a text"),
        ("limits: { recursion: 0 }", "spec.limits.recursion: must be at least 1"),
        (
            "limits: { recursion: 1.5 }",
            "spec.limits.recursion: expected a whole number, found a number (quote it if a text is meant)",
        ),
        ("agents: {}", "spec.agents: expected a list, found a map"),
        (
            "agents: [{ name: yes }]",
            "spec.agents[0].name: expected a text, found true or false (quote it if a text is meant)",
        ),
        ("agents: [{}]", "spec.agents[0]: `name` is missing"),
        (
            "agents: [{ name: jira }, { name: jira }]",
            "spec.agents[1].name: is taken by entry 0 already: names must differ",
        ),
        (
            "card: { externalUrl: 'caipe:80' }",
            "spec.card.externalUrl: must be an http:// or https:// URL with a host and, if any, a port up to 65535",
        ),
        (
            "model: { provider: openia, name: x }",
            "spec.model.provider: must be one of openai, azure-openai, anthropic-claude, google-gemini, gcp-vertexai, aws-bedrock, ollama, groq, scripted",
        ),
        ("podTemplate: []", "spec.podTemplate: expected a map, found a list"),
        (
            "agents: [{ name: Tide, image: a }]",
            "spec.agents[0].name: must be a-z, 0-9 and `-`, begin with a letter and not end in `-`",
        ),
        (
            "auth: { sharedKey: { secretKeyRef: { name: a, key: b c } } }",
            "spec.auth.sharedKey.secretKeyRef.key: must be letters, digits, `-`, `_` and `.`",
        ),
        ("image: ''", "spec.image: must have at least 1 character"),
    ];
    for (spec, expected) in cases {
        assert_eq!(faults(&file(spec)), [expected], "{spec}");
    }
}

#[test]
fn a_null_is_as_good_as_nothing() {
    let spec = "agents:\nlimits:\nmodel: ~\nconnectivity: { timeoutSeconds: null }";
    let resource = read_resource(&file(spec)).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((resource.spec.agents, resource.spec.connectivity.timeout_seconds), (None, 5));
    assert_eq!(faults(&file("agents: [~]")), ["spec.agents[0]: expected a map, found nothing"]);
}

#[test]
fn an_unknown_agent_is_reported_with_the_known_ones() {
    let found = faults(&file("agents: [{ name: agrocd }]"));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("spec.agents[0].name: `agrocd` is not in the catalogue"), "{found:?}");
    assert!(found[0].contains("argocd"), "{found:?}");
}

#[test]
fn what_can_be_read_is_checked_further_without_the_faulty_parts() {
    let spec = "limits: { recursion: many }\nmodel: { provider: openai }\nagents: [{ name: jirra }]";
    let found = faults(&file(spec));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("spec.limits.recursion: expected"), "{found:#?}");
    assert!(found.iter().any(|fault| fault.starts_with("spec.agents[0].name: `jirra`")), "{found:#?}");
    let partial = read_partially(&file("agents: [{ name: jira, tools: 5 }]")).unwrap();
    let later = ["spec.agents[0].tools: x", "spec.agents[0]: x", "$DISTRIBUTED_AGENTS: x"];
    let later = later.map(|text| text.split_once(": ").map(|(path, text)| Fault::new(path, text)).unwrap());
    let paths: Vec<String> = partial.with(later).into_iter().map(|fault| fault.path).collect();
    assert_eq!(paths, ["spec.agents[0].tools", "$DISTRIBUTED_AGENTS"], "what may only follow is left out");
}

#[test]
fn a_fault_of_the_yaml_is_in_words_for_its_author() {
    let twice = faults("spec: {}\nspec: {}");
    assert!(twice[0].contains("duplicate mapping key `spec`") && !twice[0].contains("Options"), "{twice:?}");
}

#[test]
fn all_faults_are_reported_at_once() {
    let found = faults(
        "apiVersion: v1\nkind: Pod\nmetadata: { name: a }\nspec: { rpelicas: 1, limits: { recursion: 0 }, store: { sqlite: {}, redis: { secretRef: { name: x } } } }",
    );
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn a_file_that_is_no_resource() {
    let cases = [
        ("", "expected a map"),
        ("[]", "expected a map"),
        ("a: b: c", "failed to read the YAML"),
        ("spec: {}\nspec: {}", "failed to read the YAML"),
        ("apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nspec: {}", "`metadata` is missing"),
        (
            "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: { name: [a] }\nspec: {}",
            "metadata.name",
        ),
    ];
    for (yaml, expected) in cases {
        let found = faults(yaml).join("\n");
        assert!(found.contains(expected), "{yaml:?}: {found}");
    }
    let large = format!("# {}", "x".repeat(MAX_FILE_BYTES));
    assert!(faults(&large)[0].contains("larger than"));
}

#[test]
fn an_escape_hatch_takes_anything() {
    let spec = "podTemplate: { spec: { tolerations: [{ key: a }], hostAliases: [] } }";
    let resource = read_resource(&file(spec)).unwrap();
    let template = resource.spec.pod_template.unwrap();
    assert_eq!(template.0["spec"]["tolerations"][0]["key"], "a");
}

proptest! {
    #[test]
    fn an_agents_name_is_a_label_or_a_fault(name in "[a-zA-Z0-9_.-]{0,40}") {
        let label = name.len() <= 32
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let reserved = ["all", "rag", "supervisor"].contains(&name.as_str());
        let yaml = file(&format!("agents: [{{ name: '{name}', image: x }}]"));
        prop_assert_eq!(faults(&yaml).is_empty(), label && !reserved, "{}", name);
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[\\PC\n]{0,200}") {
        let _ = read_resource(&text);
    }
}

fn rendered_text() -> String {
    let spec = crate::resolve(&crate::default_resource(), &std::collections::BTreeMap::new()).unwrap().spec;
    serde_json::to_string(&RenderedSpec { epoch: 4, ..spec }).unwrap()
}

#[test]
fn the_kind_of_a_document_follows_from_its_content() {
    let Document::Rendered(resolved) = read_document(&rendered_text()).unwrap() else {
        panic!("a rendered spec")
    };
    assert_eq!((resolved.spec.epoch, resolved.spec.agents.len()), (4, 14));
    assert!(resolved.warnings.is_empty());
    let Document::Resource(resource) = read_document(&file(EXAMPLE)).unwrap() else { panic!("a resource") };
    assert_eq!(resource.spec.agents().len(), 4);
    let neither = read_document("agents: []").unwrap_err().to_string();
    assert!(neither.contains("must be `CaipeSupervisor`"), "{neither}");
}

#[test]
fn values_of_a_rendered_spec_are_read_as_strictly_as_those_of_a_resource() {
    let remote = |url: &str| format!(r#"{{"remote":{{"url":"{url}"}}}}"#);
    let here = r#"{"inProcess":{}}"#;
    let cases = [
        (r#""streaming":true"#, r#""streaming":"yes""#.to_owned(), "streaming: "),
        (
            r#""name":"github""#,
            r#""name":"GitHub""#.to_owned(),
            "agents[0].name: must be a name in lower case",
        ),
        (
            r#""name":"gitlab""#,
            r#""name":"github""#.to_owned(),
            "agents[1].name: another agent has this name",
        ),
        (
            r#""streaming":true"#,
            r#""streaming":true,"skills":{"sources":[{"name":"default","from":{"directory":{"path":"/a"}}}]}"#.to_owned(),
            "skills.sources[0].name: the supervisor itself has sources",
        ),
        (here, remote("jira:8000"), "agents[0].placement.remote.url: must be an http:// or https:// URL"),
    ];
    for (from, to, expected) in cases {
        let text = rendered_text().replacen(from, &to, 1);
        let faults = read_document(&text).expect_err(&to).to_string();
        assert!(faults.contains(expected), "{to}: {faults}");
        assert_eq!(read_rendered(&text).unwrap_err().to_string(), faults);
    }
    assert!(read_rendered(&rendered_text().replacen(here, &remote("http://jira:8000"), 1)).is_ok());
}

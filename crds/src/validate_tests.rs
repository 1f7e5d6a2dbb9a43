//! Each rule, as the API server has it (CEL) and as the code has it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;

use super::*;
use crate::read::resource;

/// A rule, where it is broken, a spec that breaks it and no other, and one that comes close and does not.
const CASES: [(&str, &str, &str, &str); 63] = [
    (
        rules::SERVICE_ACCOUNT,
        "spec.serviceAccount",
        "{ serviceAccount: { name: a, annotations: { b: c } } }",
        "{ serviceAccount: { annotations: { b: c } } }",
    ),
    (
        rules::CONTAINER_SERVICE,
        "spec.agents[0].mcp[0].container",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 9000, replicas: 2 } }] }] }",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 9000, replicas: 2, placement: Service } }] }] }",
    ),
    (
        rules::ENV_RESERVED,
        "spec",
        "{ env: [{ name: CAIPE_AGENT_KEY, value: a }] }",
        "{ env: [{ name: HTTPS_PROXY, value: 'http://proxy:3128' }] }",
    ),
    (rules::REPLICAS, "spec.replicas", "{ store: {}, replicas: 2 }", "{ store: {}, replicas: 1 }"),
    (
        rules::REPLICAS,
        "spec.replicas",
        "{ store: { sqlite: {} }, replicas: 2 }",
        "{ store: { redis: { secretRef: { name: a } } }, replicas: 2 }",
    ),
    (
        rules::REPLICAS,
        "spec.replicas",
        "{ replicas: 50 }",
        "{ store: { mongodb: { secretRef: { name: a } } }, replicas: 50 }",
    ),
    (
        rules::MODEL_NAME,
        "spec.model",
        "{ model: { provider: openai } }",
        "{ model: { provider: openai, name: a } }",
    ),
    (
        rules::MODEL_SCRIPT,
        "spec.model",
        "{ model: { provider: scripted } }",
        "{ model: { provider: scripted, script: { path: a } } }",
    ),
    (
        rules::MODEL_SCRIPT,
        "spec.model",
        "{ model: { provider: openai, name: a, script: { path: a } } }",
        "{ model: { provider: openai, name: a } }",
    ),
    (
        rules::SCRIPT_SOURCE,
        "spec.model.script",
        "{ model: { provider: scripted, script: {} } }",
        "{ model: { provider: scripted, script: { configMapRef: { name: a, key: b } } } }",
    ),
    (
        rules::SCRIPTED_FALLBACK,
        "spec.model.fallbacks[0]",
        "{ model: { provider: openai, name: a, fallbacks: [{ provider: scripted, name: b }] } }",
        "{ model: { provider: openai, name: a, fallbacks: [{ provider: groq, name: b }] } }",
    ),
    (
        rules::SCRIPTED_AGENT,
        "spec.agents[0].model",
        "{ agents: [{ name: jira, model: { provider: scripted, name: a } }] }",
        "{ agents: [{ name: jira, model: { provider: groq, name: a } }] }",
    ),
    (
        rules::AGENT_RESERVED,
        "spec.agents[0]",
        "{ agents: [{ name: all, image: a }] }",
        "{ agents: [{ name: all-of-it, image: a }] }",
    ),
    (
        rules::AGENT_KIND,
        "spec.agents[0]",
        "{ agents: [{ name: a, image: b, external: { url: 'http://c' } }] }",
        "{ agents: [{ name: a, external: { url: 'http://c' } }] }",
    ),
    (
        rules::AGENT_FOREIGN_TOOLS,
        "spec.agents[0]",
        "{ agents: [{ name: a, image: b, tools: [c] }] }",
        "{ agents: [{ name: a, image: b, tools: [] }] }",
    ),
    (
        rules::AGENT_DELEGATES_SELF,
        "spec.agents[0]",
        "{ agents: [{ name: jira, delegates: [github, jira] }, { name: github }] }",
        "{ agents: [{ name: jira, delegates: [github] }, { name: github }] }",
    ),
    (
        rules::SLACK_ENV,
        "spec.slack",
        "{ slack: { secretRef: { name: a }, env: [{ name: SLACK_INTEGRATION_APP_TOKEN, value: b }] } }",
        "{ slack: { secretRef: { name: a }, env: [{ name: SLACK_INTEGRATION_BOT_CONFIG, value: b }] } }",
    ),
    (
        rules::SKILL_SOURCE,
        "spec.skills.sources[0]",
        "{ agents: [], skills: { sources: [{ name: a, path: /b, configMapRef: { name: c } }] } }",
        "{ agents: [], skills: { sources: [{ name: a, path: /b }] } }",
    ),
    (
        rules::SKILL_SOURCE_NAME,
        "spec.skills.sources[0].name",
        "{ agents: [], skills: { sources: [{ name: built-in, path: /b }] } }",
        "{ agents: [], skills: { sources: [{ name: built-in-2, path: /b }] } }",
    ),
    (
        rules::SKILLS_UNUSED,
        "spec",
        "{ agents: [{ name: jira, skills: [] }] }",
        "{ agents: [{ name: jira, skills: [] }], skills: {} }",
    ),
    (
        rules::APPROVER_KIND,
        "spec.agents[0].approvers[0]",
        "{ auth: { oauth2: { issuer: a, audience: b, jwksUri: 'http://c' } }, agents: [{ name: jira, approvers: [{ email: a, group: b }] }] }",
        "{ auth: { oauth2: { issuer: a, audience: b, jwksUri: 'http://c' } }, agents: [{ name: jira, approvers: [{ email: a }, { group: b }] }] }",
    ),
    (
        rules::APPROVERS_AUTH,
        "spec",
        "{ approvers: [{ group: a }] }",
        "{ approvers: [{ group: a }], auth: { oauth2: { issuer: a, audience: b, jwksUri: 'http://c' } } }",
    ),
    (
        rules::AGENT_EXTERNAL_POD,
        "spec.agents[0]",
        "{ agents: [{ name: a, external: { url: 'http://c' }, secretRef: { name: d } }] }",
        "{ agents: [{ name: a, external: { url: 'http://c', secretRef: { name: d } } }] }",
    ),
    (
        rules::DISTRIBUTED_MODE,
        "spec.distributedMode",
        "{ distributedMode: false }",
        "{ defaultPlacement: Remote }",
    ),
    (
        rules::AGENT_REMOTE_ONLY,
        "spec.agents[0]",
        "{ agents: [{ name: a, external: { url: 'http://c' }, placement: InProcess }] }",
        "{ agents: [{ name: a, external: { url: 'http://c' }, placement: Remote }, { name: jira, placement: InProcess }] }",
    ),
    (
        rules::AGENT_REMOTE_ONLY,
        "spec.agents[0]",
        "{ agents: [{ name: a, image: b, placement: InProcess }] }",
        "{ agents: [{ name: a, image: b }] }",
    ),
    (
        rules::TEXT_SOURCE,
        "spec.agents[0].identity",
        "{ agents: [{ name: a, identity: {} }] }",
        "{ agents: [{ name: a, identity: { configMapRef: { name: b } } }] }",
    ),
    (
        rules::TEXT_SOURCE,
        "spec.prompts.systemPrompt",
        "{ prompts: { systemPrompt: { inline: a, configMapRef: { name: b, key: c } } } }",
        "{ prompts: { systemPrompt: { inline: a } } }",
    ),
    (
        rules::ENV_VALUE,
        "spec.agents[0].env[0]",
        "{ agents: [{ name: jira, env: [{ name: A }] }] }",
        "{ agents: [{ name: jira, env: [{ name: A, value: '' }] }] }",
    ),
    (
        rules::MCP_KIND,
        "spec.agents[0].mcp[0]",
        "{ agents: [{ name: jira, mcp: [{ name: a }] }] }",
        "{ agents: [{ name: jira, mcp: [{ name: a, http: { url: 'http://b' } }] }] }",
    ),
    (
        rules::SIDECAR_PORT,
        "spec.agents[0].mcp[0].container",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 8000 } }] }] }",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 8000, placement: Service } }] }] }",
    ),
    (
        rules::SIDECAR_PORTS,
        "spec.agents[0]",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 9000 } }, { name: c, container: { image: b, port: 9000 } }] }] }",
        "{ agents: [{ name: jira, mcp: [{ name: a, container: { image: b, port: 9000 } }, { name: c, container: { image: b, port: 9000, placement: Service } }, { name: d, stdio: { command: e } }] }] }",
    ),
    (
        rules::URL,
        "spec.agents[0].external.url",
        "{ agents: [{ name: a, external: { url: 'https://h:99999' } }] }",
        "{ agents: [{ name: a, external: { url: 'https://h:65535/a?b=c' } }] }",
    ),
    (rules::URL, "spec.rag.url", "{ rag: { url: 'rag:9446' } }", "{ rag: { url: 'http://rag:9446' } }"),
    (
        rules::EXISTING_CLAIM,
        "spec.slack.storage",
        "{ slack: { secretRef: { name: a }, storage: { existingClaim: a, size: 1Gi } } }",
        "{ slack: { secretRef: { name: a }, storage: { existingClaim: a } } }",
    ),
    (
        rules::STORE_KIND,
        "spec.store",
        "{ store: { redis: { secretRef: { name: a } }, mongodb: { secretRef: { name: a } } } }",
        "{ store: { mongodb: { secretRef: { name: a } } } }",
    ),
    (
        rules::AGENT_STORE_KIND,
        "spec.agents[0].store",
        "{ agents: [{ name: jira, store: {} }] }",
        "{ agents: [{ name: jira, store: { redis: { secretRef: { name: a } } } }] }",
    ),
    (
        rules::AGENT_FOREIGN_TOOLS,
        "spec.agents[0]",
        "{ agents: [{ name: a, image: b, store: { mongodb: { secretRef: { name: a } } } }] }",
        "{ agents: [{ name: jira, store: { mongodb: { secretRef: { name: a } } } }] }",
    ),
    (
        rules::URL,
        "spec.card.externalUrl",
        "{ card: { externalUrl: 'http://[::1' } }",
        "{ card: { externalUrl: 'http://[::1]:8000/' } }",
    ),
    (
        rules::URL,
        "spec.model.baseUrl",
        "{ model: { provider: openai, name: a, baseUrl: 'https://a:b' } }",
        "{ model: { provider: openai, name: a, baseUrl: 'https://a/b' } }",
    ),
    (
        rules::URL,
        "spec.auth.oauth2.jwksUri",
        "{ auth: { oauth2: { issuer: a, audience: b, jwksUri: 'https://a:65536' } } }",
        "{ auth: { oauth2: { issuer: a, audience: b, jwksUri: 'https://a:65535' } } }",
    ),
    (
        rules::URL,
        "spec.agents[0].external.url",
        "{ agents: [{ name: a, external: { url: 'http://a b/' } }] }",
        "{ agents: [{ name: a, external: { url: 'http://a/b%20c' } }] }",
    ),
    (
        rules::URL,
        "spec.agents[0].external.url",
        "{ agents: [{ name: a, external: { url: 'http://:80/' } }] }",
        "{ agents: [{ name: a, external: { url: 'http://a:80/' } }] }",
    ),
    (
        rules::URL,
        "spec.card.externalUrl",
        "{ card: { externalUrl: 'ftp://a' } }",
        "{ card: { externalUrl: 'http://user:word@a' } }",
    ),
    (
        rules::URL,
        "spec.card.externalUrl",
        "{ card: { externalUrl: 'http:///a' } }",
        "{ card: { externalUrl: 'https://a?b=%zz' } }",
    ),
    (
        rules::MCP_URL,
        "spec.agents[0].mcp[0].http.url",
        "{ agents: [{ name: jira, mcp: [{ name: a, http: { url: 'ftp://a' } }] }] }",
        "{ agents: [{ name: jira, mcp: [{ name: a, http: { url: '${URL}' } }] }] }",
    ),
    (
        rules::VOLUME_SIZE,
        "spec.store.sqlite.size",
        "{ store: { sqlite: { size: 10GB } } }",
        "{ store: { sqlite: { size: 0.5Ti } } }",
    ),
    (
        rules::VOLUME_SIZE,
        "spec.store.sqlite.size",
        "{ store: { sqlite: { size: '0' } } }",
        "{ store: { sqlite: { size: '1' } } }",
    ),
    (
        rules::STORAGE_CLASS,
        "spec.store.sqlite.storageClassName",
        "{ store: { sqlite: { storageClassName: A B } } }",
        "{ store: { sqlite: { storageClassName: fast-2.example.com } } }",
    ),
    (
        rules::WORKSPACE_VOLUME,
        "spec.agents[0]",
        "{ agents: [{ name: jira, placement: InProcess, workspace: { volume: {} } }] }",
        "{ agents: [{ name: jira, placement: Remote, replicas: 1, workspace: { volume: {} } }, { name: aws, workspace: { volume: {} } }] }",
    ),
    (
        rules::WORKSPACE_VOLUME,
        "spec.agents[0]",
        "{ agents: [{ name: jira, placement: Remote, replicas: 2, workspace: { volume: {} } }] }",
        "{ agents: [{ name: jira, placement: Remote, replicas: 2, workspace: {} }] }",
    ),
    (
        rules::CLAIM_NAME,
        "spec.store.sqlite.existingClaim",
        "{ store: { sqlite: { existingClaim: A } } }",
        "{ store: { sqlite: { existingClaim: platform.data } } }",
    ),
    (
        rules::EXISTING_CLAIM,
        "spec.store.sqlite",
        "{ store: { sqlite: { existingClaim: a, reclaimPolicy: Retain } } }",
        "{ store: { sqlite: { size: 1Gi, storageClassName: a, reclaimPolicy: Delete } } }",
    ),
    (
        rules::A2A_ALLOW,
        "spec.a2a.allow[1]",
        "{ a2a: { allow: ['*', 10.0.0.0/99] } }",
        "{ a2a: { allow: ['*', '*.example.com:8443', a.b, '127.0.0.1:80', '::1', '[::1]:80', 0.0.0.0/0, 10.0.0.0/32, 'fd00::/8', '::ffff:1.2.3.4/128'] } }",
    ),
    (
        rules::A2A_ALLOW,
        "spec.a2a.allow[0]",
        "{ a2a: { allow: ['http://a/'] } }",
        "{ a2a: { allow: ['EXAMPLE.com.', 'münchen.example'] } }",
    ),
    (
        rules::STORE_KIND,
        "spec.store",
        "{ store: { sqlite: {}, redis: { secretRef: { name: a } } } }",
        "{ store: { redis: { secretRef: { name: a }, database: team.bot, ttlMinutes: 60, required: true } } }",
    ),
    (
        rules::AUTH_EMPTY,
        "spec.auth",
        "{ auth: {} }",
        "{ auth: { sharedKey: { secretKeyRef: { name: a, key: b } } } }",
    ),
    (
        rules::NETWORK_DISABLED,
        "spec.networkPolicy",
        "{ networkPolicy: { mode: Disabled, egress: [{ ports: [{ port: 1 }] }] } }",
        "{ networkPolicy: { mode: Disabled } }",
    ),
    (
        rules::NETWORK_PEER,
        "spec.networkPolicy.ingressFrom[1]",
        "{ networkPolicy: { ingressFrom: [{ podSelector: {} }, {}] } }",
        "{ networkPolicy: { ingressFrom: [{ namespaceSelector: {}, podSelector: { matchLabels: { a: b } } }] } }",
    ),
    (
        rules::NETWORK_PEER,
        "spec.networkPolicy.egress[0].to[0]",
        "{ networkPolicy: { egress: [{ to: [{ podSelector: {}, ipBlock: { cidr: 10.0.0.0/8 } }] }] } }",
        "{ networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: 10.0.0.0/8 } }] }] } }",
    ),
    (
        rules::NETWORK_EGRESS,
        "spec.networkPolicy.egress[0]",
        "{ networkPolicy: { egress: [{}] } }",
        "{ networkPolicy: { egress: [{ ports: [{ port: 3128 }] }] } }",
    ),
    (
        rules::NETWORK_PORTS,
        "spec.networkPolicy.egress[0].ports[0]",
        "{ networkPolicy: { egress: [{ ports: [{ port: 2, endPort: 1 }] }] } }",
        "{ networkPolicy: { egress: [{ ports: [{ port: 2, endPort: 2, protocol: UDP }] }] } }",
    ),
    (
        rules::NETWORK,
        "spec.networkPolicy.ingressFrom[0].ipBlock.except[0]",
        "{ networkPolicy: { ingressFrom: [{ ipBlock: { cidr: '::/0', except: [10.0.0.1] } }] } }",
        "{ networkPolicy: { ingressFrom: [{ ipBlock: { cidr: '::/0', except: ['fd00::/8'] } }] } }",
    ),
];

/// Stores before and after, and whether one can become the other.
const CHANGES: [(&str, &str, bool); 17] = [
    ("{}", "{}", true),
    ("{}", "{ store: { sqlite: {} } }", true),
    ("{}", "{ store: {} }", true),
    ("{ store: { sqlite: { size: 1Gi } } }", "{}", true),
    ("{}", "{ store: { sqlite: { size: 1025Mi } } }", true),
    ("{}", "{ store: { sqlite: { size: 1023Mi } } }", false),
    ("{ store: { sqlite: { size: 2Gi } } }", "{}", false),
    ("{ store: { sqlite: { size: 2Gi } } }", "{ store: { sqlite: { size: 3Gi } } }", true),
    ("{ store: { sqlite: { size: 3Gi } } }", "{ store: { sqlite: { size: 2Gi } } }", false),
    ("{}", "{ store: { sqlite: { reclaimPolicy: Delete } } }", true),
    ("{ store: { sqlite: { size: 3Gi } } }", "{ store: { sqlite: { existingClaim: a } } }", true),
    ("{ store: { sqlite: { existingClaim: a } } }", "{ store: { sqlite: { storageClassName: b } } }", true),
    ("{}", "{ store: { sqlite: { storageClassName: fast } } }", false),
    ("{ store: { sqlite: { size: 3Gi } } }", "{ store: { redis: { secretRef: { name: a } } } }", true),
    ("{ store: { redis: { secretRef: { name: a } } } }", "{ store: { sqlite: { size: 3Gi } } }", true),
    ("{ store: { sqlite: { size: 3Gi } } }", "{ store: { mongodb: { secretRef: { name: a } } } }", true),
    (
        "{ store: { sqlite: { storageClassName: fast } } }",
        "{ store: { sqlite: { storageClassName: fast } }, replicas: 1 }",
        true,
    ),
];

fn value(name: &str, spec: &str) -> Value {
    let yaml = format!(
        "{{ apiVersion: caipe.io/v1alpha1, kind: CaipeSupervisor, metadata: {{ name: {name} }}, spec: {spec} }}"
    );
    serde_saphyr::from_str(&yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"))
}

/// What the API server would say to the object, after its schema.
fn by_cel(old: Option<&Value>, new: &Value) -> Vec<String> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let crd = serde_json::to_value(crate::crd::crd()).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    });
    let checked = kube_cel::Validator::new().validate_with_defaults(schema, new, old);
    let errors = checked.err().map(kube_cel::ValidationErrors::into_vec).unwrap_or_default();
    errors.into_iter().map(|error| error.message).collect()
}

/// What the code says, and only of the rules.
fn by_code(new: &Value) -> Vec<String> {
    let faults = resource(new.clone()).err().into_iter().flatten();
    faults.map(|fault| fault.to_string()).collect()
}

#[test]
fn each_rule_fires_for_what_breaks_it_and_for_nothing_else_in_both_forms() {
    let mut seen = BTreeSet::new();
    for (rule, path, broken, fitting) in CASES {
        let (broken, fitting) = (value("platform", broken), value("platform", fitting));
        assert_eq!(by_cel(None, &broken), [rule], "CEL: {broken}");
        assert_eq!(by_code(&broken), [format!("{path}: {rule}")], "code: {broken}");
        assert_eq!(by_cel(None, &fitting), [""; 0], "CEL: {fitting}");
        assert_eq!(by_code(&fitting), [""; 0], "code: {fitting}");
        seen.insert(rule);
    }
    let long = "a".repeat(64);
    for name in ["Platform", "9lives", "-", "a-", &long] {
        let value = value(&format!("'{name}'"), "{}");
        assert_eq!(by_cel(None, &value), [rules::RESOURCE_NAME], "{name}");
        assert_eq!(by_code(&value), [format!("metadata.name: {}", rules::RESOURCE_NAME)], "{name}");
    }
    seen.extend([rules::RESOURCE_NAME, rules::VOLUME_FIXED, rules::SLACK_VOLUME_FIXED]);
    seen.insert(rules::WORKSPACE_VOLUME_FIXED);
    assert_eq!(seen, rules::ALL.into_iter().collect());
}

/// A pattern of the definition and a rule of the code, which is reported once.
#[test]
fn a_quantity_that_kubernetes_cannot_read_is_reported_with_its_path() {
    let server = |it: &str| {
        format!(
            "{{ agents: [{{ name: jira, mcp: [{{ name: a, container: {{ image: b, port: 9000, resources: {it} }} }}] }}] }}"
        )
    };
    for (spec, path) in [
        ("{ resources: { requests: { memory: 64Mib } } }", "spec.resources.requests.memory"),
        ("{ resources: { limits: { cpu: -1 } } }", "spec.resources.limits.cpu"),
        ("{ resources: { limits: { memory: -8589934592 } } }", "spec.resources.limits.memory"),
        (
            "{ agents: [{ name: jira, resources: { limits: { memory: '-1Gi' } } }] }",
            "spec.agents[0].resources.limits.memory",
        ),
        (
            server("{ requests: { cpu: '' } }").as_str(),
            "spec.agents[0].mcp[0].container.resources.requests.cpu",
        ),
    ] {
        assert_eq!(by_code(&value("platform", spec)), [format!("{path}: {}", rules::QUANTITY)], "{spec}");
    }
    for quantities in [
        "{ memory: 64Mi, cpu: 250m, ephemeral-storage: '1.5e9' }",
        "{ memory: 8589934592, cpu: 1 }",
        "{ memory: '+1.Gi', cpu: '.5' }",
    ] {
        let spec = server(&format!("{{ limits: {quantities} }}"));
        assert_eq!(by_code(&value("platform", &spec)), [""; 0], "{spec}");
    }
}

/// CEL would cost too much for more than how it begins.
#[test]
fn the_code_looks_closer_at_the_url_of_a_tool_server() {
    for (url, fits) in [
        ("http://:80", false),
        ("http://", false),
        ("http://a b", false),
        ("http://:${PORT}", false),
        ("http://${HOST}:${PORT:-80}/a", true),
        ("${URL}/mcp", true),
        ("http://a:9000/mcp", true),
    ] {
        let spec =
            format!("{{ agents: [{{ name: jira, mcp: [{{ name: a, http: {{ url: '{url}' }} }}] }}] }}");
        let expected = format!("spec.agents[0].mcp[0].http.url: {}", rules::MCP_URL);
        let expected: Vec<String> = if fits { vec![] } else { vec![expected] };
        assert_eq!(by_code(&value("platform", &spec)), expected, "{url}");
    }
}

#[test]
fn a_request_above_its_limit_is_a_fault() {
    for (quantities, within) in [
        ("requests: { memory: 2Gi }, limits: { memory: 1Gi }", false),
        ("requests: { memory: 2Gi }, limits: { memory: 2048Mi, cpu: 1m }", true),
        ("requests: { cpu: 1 }, limits: { cpu: 999m }", false),
        ("requests: { cpu: '0.3' }, limits: { cpu: 300m }", true),
        ("requests: { memory: 8589934593 }, limits: { memory: 8Gi }", false),
    ] {
        let found = by_code(&value("platform", &format!("{{ resources: {{ {quantities} }} }}")));
        assert_eq!(found.is_empty(), within, "{quantities}: {found:?}");
        assert!(found.iter().all(|fault| fault.ends_with(rules::REQUEST_ABOVE_LIMIT)), "{found:?}");
    }
}

#[test]
fn a_volume_may_grow_and_is_otherwise_fixed() {
    for (old, new, possible) in CHANGES {
        let (old, new) = (value("platform", old), value("platform", new));
        let expected: Vec<&str> = if possible { vec![] } else { vec![rules::VOLUME_FIXED] };
        assert_eq!(by_cel(Some(&old), &new), expected, "{old} to {new}");
    }
}

#[test]
fn the_other_volumes_may_grow_and_are_otherwise_fixed() {
    for (old, new, possible) in [
        ("", ", storage: {}", true),
        (", storage: { size: 3Gi }", "", true),
        (", storage: {}", ", storage: { size: 1Gi }", true),
        (", storage: {}", ", storage: { size: 1025Mi, reclaimPolicy: Delete }", true),
        (", storage: {}", ", storage: { size: 1023Mi }", false),
        (", storage: { size: 2Gi }", ", storage: {}", false),
        (", storage: {}", ", storage: { storageClassName: fast }", false),
        (", storage: { size: 2Gi }", ", storage: { existingClaim: a }", true),
        (", storage: { existingClaim: a }", ", storage: { storageClassName: fast }", true),
    ] {
        let slack = |storage: &str| format!("{{ slack: {{ secretRef: {{ name: a }}{storage} }} }}");
        let workspace = |storage: &str| {
            let volume = storage.replace("storage:", "volume:");
            format!("{{ agents: [{{ name: jira, workspace: {{ writes: Everywhere{volume} }} }}] }}")
        };
        let of = |spec: &dyn Fn(&str) -> String| [old, new].map(|storage| value("platform", &spec(storage)));
        for (rule, [old, new]) in
            [(rules::SLACK_VOLUME_FIXED, of(&slack)), (rules::WORKSPACE_VOLUME_FIXED, of(&workspace))]
        {
            let expected: Vec<&str> = if possible { vec![] } else { vec![rule] };
            assert_eq!(by_cel(Some(&old), &new), expected, "{old} to {new}");
        }
    }
}

/// An empty list would allow nobody in one place and everything in the other.
#[test]
fn a_list_of_peers_is_absent_or_has_entries() {
    for (path, spec) in [
        ("spec.networkPolicy.ingressFrom", "{ networkPolicy: { ingressFrom: [] } }"),
        ("spec.networkPolicy.egress[0].to", "{ networkPolicy: { egress: [{ to: [] }] } }"),
    ] {
        let expected = format!("{path}: must have at least 1 entry, or be absent");
        assert_eq!(by_code(&value("platform", spec)), [expected], "{spec}");
    }
}

#[test]
fn tools_of_an_image_of_the_catalogue_cannot_be_limited_or_gated() {
    let rule = format!("spec.agents[0]: {}", rules::AGENT_IMAGE_TOOLS);
    for (fields, expected) in [
        ("", None),
        (", requireApproval: ['*']", Some(&rule)),
        (", tools: [ping]", Some(&rule)),
        (", tools: [ping], mcp: [{ name: a, http: { url: 'http://b' } }]", None),
    ] {
        let spec = value("platform", &format!("{{ agents: [{{ name: netutils{fields} }}] }}"));
        assert_eq!(by_code(&spec), expected.into_iter().cloned().collect::<Vec<_>>(), "{fields}");
    }
}

#[test]
fn a_placement_that_an_agent_of_the_catalogue_does_not_support_is_refused() {
    let server = ", mcp: [{ name: a, http: { url: 'http://b' } }]";
    for (agent, expected) in [
        ("name: netutils, placement: InProcess".to_owned(), Some(rules::AGENT_REMOTE_ONLY)),
        ("name: netutils, placement: Remote".to_owned(), None),
        (format!("name: netutils, placement: InProcess{server}"), None),
        ("name: aigateway, placement: Remote".to_owned(), Some(rules::AGENT_IN_PROCESS_ONLY)),
        ("name: aigateway, placement: Remote, enabled: false".to_owned(), Some(rules::AGENT_IN_PROCESS_ONLY)),
        ("name: aigateway, placement: InProcess".to_owned(), None),
        (format!("name: aigateway, placement: Remote{server}"), None),
    ] {
        let found = by_code(&value("platform", &format!("{{ agents: [{{ {agent} }}] }}")));
        let expected: Vec<String> = expected.iter().map(|rule| format!("spec.agents[0]: {rule}")).collect();
        assert_eq!(found, expected, "{agent}");
    }
}

//! What the installation forbids.

use super::*;
use crate::defaults::Restrictions;

fn refusal(spec: &str, restrictions: Restrictions) -> String {
    let resource = resource(spec);
    let defaults = Defaults { restrictions, ..defaults() };
    let built = build_with(&resource, &decided(&resource), &references(), &defaults);
    built.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Nothing beyond what the operator itself makes.
fn strict() -> Restrictions {
    Restrictions {
        image_prefixes: vec!["registry.example.com/".to_owned()],
        host_access: false,
        existing_service_accounts: false,
        existing_claims: false,
        secrets: vec!["llm".to_owned(), "caipe-*".to_owned()],
    }
}

#[test]
fn what_the_operator_itself_makes_is_allowed() {
    let own = "model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
distributedAgents: [all]
slack: { secretRef: { name: caipe-slack }, storage: {} }
agents: [{ name: own, secretRef: { name: caipe-own }, identity: { inline: { description: d, systemPrompt: s } } }]";
    assert_eq!(refusal(own, strict()), "");
    for (name, spec) in SCENES {
        assert_eq!(refusal(spec, Restrictions::default()), "", "{name}");
    }
}

#[test]
fn each_restriction_names_what_it_forbids() {
    let template = |pod: &str| format!("agents: []\npodTemplate: {{ spec: {{ {pod} }} }}");
    for (spec, expected) in [
        ("agents: []\nimage: 'docker.io/other:1'".to_owned(), "image `docker.io/other:1`"),
        ("agents: [{ name: a, image: 'docker.io/a:1' }]".to_owned(), "image `docker.io/a:1`"),
        (
            "agents: [{ name: a, image: 'registry.example.com.evil/a:1' }]".to_owned(),
            "image `registry.example.com.evil/a:1`",
        ),
        (template("hostNetwork: true"), "hostNetwork"),
        (template("volumes: [{ name: root, hostPath: { path: / } }]"), "hostPath volume `root`"),
        (
            template("containers: [{ name: supervisor, securityContext: { privileged: true } }]"),
            "privileges, capabilities or host ports of container `supervisor`",
        ),
        (template("serviceAccountName: admin"), "ServiceAccount `admin`"),
        ("agents: []\nserviceAccount: { name: admin }".to_owned(), "ServiceAccount `admin`"),
        ("agents: []\nimagePullSecrets: [theirs]".to_owned(), "Secret `theirs`"),
        (
            "agents: []\nenv: [{ name: A, secretKeyRef: { name: theirs, key: a } }]".to_owned(),
            "Secret `theirs`",
        ),
        ("agents: []\nslack: { secretRef: { name: theirs } }".to_owned(), "Secret `theirs`"),
        (template("volumes: [{ name: s, secret: { secretName: theirs } }]"), "Secret `theirs`"),
        (
            "agents: []\nstore: { sqlite: { existingClaim: theirs } }".to_owned(),
            "PersistentVolumeClaim `theirs`",
        ),
        (
            "agents: []\nslack: { secretRef: { name: their-app }, storage: { existingClaim: theirs } }"
                .to_owned(),
            "PersistentVolumeClaim `theirs`",
        ),
    ] {
        let refused = refusal(&spec, strict());
        assert!(refused.contains(expected), "{spec}: {refused:?}");
        assert_eq!(refusal(&spec, Restrictions::default()), "", "{spec}");
    }
}

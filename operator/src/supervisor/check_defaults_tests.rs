use super::*;

fn faults(text: &str) -> Vec<String> {
    let defaults: Defaults = serde_saphyr::from_str(text).unwrap();
    defaults.check().err().into_iter().flatten().map(|fault| fault.to_string()).collect()
}

#[test]
fn faults_of_the_defaults_have_paths() {
    let cases = [
        (
            "podTemplate: { spec: { nodeSelectr: { a: b } } }",
            "podTemplate.spec.nodeSelectr: a pod template has no such key: correct it, or take it out",
        ),
        ("podTemplate: { spec: { nodeSelector: 3 } }", "podTemplate: invalid type: "),
        (
            "podTemplate: { metadata: { labels: { app.kubernetes.io/component: mine } } }",
            "podTemplate: the pods are known by their label `app.kubernetes.io/component`: leave it as it is",
        ),
        (
            "podTemplate: { spec: { containers: [{ name: superviser, tty: true }] } }",
            "podTemplate: there is no container `superviser`, and a new one needs an image; the pod has supervisor",
        ),
        (
            "imagePullPolicy: Sometimes",
            "imagePullPolicy: must be one of Always, IfNotPresent, Never, or left out; found `Sometimes`",
        ),
        ("resources: { limits: { memory: 64Mib } }", "resources.limits.memory: "),
        ("resources: { requests: { cpu: much } }", "resources.requests.cpu: "),
    ];
    for (text, expected) in cases {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
    }
    let all = faults("imagePullPolicy: ''\nresources: { limits: { memory: 1G i, cpu: x } }");
    assert_eq!(all.len(), 3, "{all:?}");
}

#[test]
fn what_fits_is_no_fault() {
    for text in [
        "{}",
        "image: ''",
        "imagePullPolicy: Never\nimagePullSecrets: [registry]\ndrainSeconds: 1",
        "resources: { requests: { cpu: 50m, memory: 64Mi }, limits: { memory: '1e9', cpu: 2, example.com/gpu: 1 } }",
        "podTemplate: { metadata: { annotations: { a: b } }, spec: { nodeSelector: { pool: agents }, tolerations: [{ operator: Exists }] } }",
        "podTemplate: { spec: { securityContext: { fsGroup: null }, containers: [{ name: supervisor, tty: true }, { name: log, image: 'log:1' }] } }",
    ] {
        assert_eq!(faults(text), [""; 0], "{text}");
    }
}

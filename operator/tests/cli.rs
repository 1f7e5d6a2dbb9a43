//! The built program, from outside.

#![allow(clippy::unwrap_used, reason = "the tests' own function, which clippy does not know for a test")]

use assert_cmd::Command;

const VALID: &str = "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: { name: platform }
spec:
  model: { provider: openai, name: gpt-5, secretRef: { name: llm } }
  agents: [{ name: jira, secretRef: { name: jira } }]
";

fn operator(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caipe-operator"));
    let output = command.args(arguments).env_clear().write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn crd_prints_the_generated_file() {
    let (code, stdout, stderr) = operator(&["crd"], "");
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(stdout, include_str!("../../crds/caipe.io_caipesupervisors.yaml"));
}

#[test]
fn crd_reports_what_it_no_longer_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crd.yaml");
    let (_, ours, _) = operator(&["crd"], "");
    let compare = |text: &str| {
        std::fs::write(&path, text).unwrap();
        operator(&["crd", "--compatible-with", path.to_str().unwrap()], "")
    };
    let (code, stdout, stderr) = compare(&ours);
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(stderr.ends_with("crd.yaml: compatible\n"), "{stderr}");
    let (code, _, stderr) = compare(&ours.replace("distributedAgents:", "formerName:"));
    assert_eq!(code, 1);
    assert!(stderr.contains("crd.yaml: error: spec.formerName: is removed\n"), "{stderr}");
    let (code, _, stderr) = compare("kind: CustomResourceDefinition\nspec: []\n");
    assert_eq!(code, 1);
    assert!(stderr.contains("failed to read a CustomResourceDefinition from"), "{stderr}");
}

#[test]
fn check_is_content_with_a_good_file() {
    let (code, stdout, stderr) = operator(&["check", "-f", "-"], VALID);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", "-: no fault\n"));
}

#[test]
fn check_finds_the_fault_of_every_invalid_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/invalid");
    let examples: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(examples.len() >= 25, "{examples:?}");
    for example in examples {
        let (code, _, stderr) = operator(&["check", "-f", example.to_str().unwrap()], "");
        assert_eq!(code, 1, "{}: {stderr}", example.display());
    }
}

#[test]
fn check_says_what_to_write() {
    let url = "must be an http:// or https:// URL with a host and, if any, a port up to 65535";
    for (spec, expected) in [
        (
            "resources: { requests: { memory: 64Mib } }",
            "spec.resources.requests.memory: must be a quantity of 0 or more, as `250m` or `64Mi`",
        ),
        ("card: { externalUrl: 'http://a b/' }", &format!("spec.card.externalUrl: {url}")),
        ("card: { externalUrl: 'http://:80/' }", &format!("spec.card.externalUrl: {url}")),
        ("card: { externalUrl: 'ftp://a' }", &format!("spec.card.externalUrl: {url}")),
        ("rag: { url: 'a:1' }", &format!("spec.rag.url: {url}")),
        (
            "store: { redis: { secretRef: { name: a } }, mongodb: { secretRef: { name: a } } }",
            "spec.store: conversations have one store: set at most one of sqlite, redis and mongodb",
        ),
        (
            "a2a: { allow: [10.0.0.0/99] }",
            "spec.a2a.allow[0]: must be a host, `*.domain` or address, each with `:port` if need be, a network as `10.0.0.0/8`, or `*`",
        ),
        ("store: { sqlite: { size: 10GB } }", "spec.store.sqlite.size: must be a size above 0, as `10Gi`"),
    ] {
        let (code, _, stderr) = operator(&["check", "-f", "-"], &format!("{VALID}  {spec}\n"));
        assert_eq!((code, stderr), (1, format!("-: error: {expected}\n")), "{spec}");
    }
}

#[test]
fn check_prints_every_fault_with_its_path_and_exits_with_1() {
    let input = VALID.replace("jira", "jria").replace("gpt-5", "''").replace("provider", "povider");
    let (code, _, stderr) = operator(&["check", "-f", "-"], &input);
    assert_eq!(code, 1);
    for expected in [
        "spec.model.povider: unknown key: did you mean `provider`?",
        "spec.model: `provider` is missing",
        "spec.model.name: must have at least 1 character",
    ] {
        assert!(stderr.contains(&format!("-: error: {expected}\n")), "{stderr}");
    }
}

#[test]
fn render_prints_a_spec_without_secrets_and_with_its_hash() {
    let (code, stdout, stderr) = operator(&["render", "--spec", "--file", "-"], VALID);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let spec: caipe_crds::RenderedSpec = serde_saphyr::from_str(&stdout).unwrap();
    assert_eq!(spec.hash, spec.content_hash());
    // Only the pods of its tool servers have its Secret.
    assert_eq!(spec.agent("Jira").unwrap().secrets_dir, None);
    assert_eq!(spec.models[0].secrets_dir.as_deref(), Some("/var/run/caipe/secrets/model"));
}

#[test]
fn render_prints_what_would_be_applied_as_a_stream_that_kubectl_takes() {
    let (code, stdout, stderr) = operator(&["render", "-f", "-"], VALID);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let comment = stdout.lines().next().unwrap();
    assert!(comment.starts_with("# ") && comment.contains("Secret `platform.keys`"), "{comment}");
    let mut kinds = Vec::new();
    for document in stdout.split("---\n").skip(1) {
        let manifest: serde_json::Value = serde_saphyr::from_str(document).unwrap();
        assert_eq!(manifest["metadata"]["namespace"], "default");
        kinds.push(manifest["kind"].as_str().unwrap().to_owned());
    }
    // The tool server of the agent has pods of its own.
    let expected = [
        "ServiceAccount",
        "PersistentVolumeClaim",
        "ServiceAccount",
        "NetworkPolicy",
        "Service",
        "Deployment",
        "NetworkPolicy",
        "Service",
        "ConfigMap",
        "Deployment",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn render_takes_the_operators_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("defaults.yaml");
    std::fs::write(&path, "image: registry.example.com/caipe:7\nimagePullSecrets: [registry]\n").unwrap();
    let (_, stdout, _) = operator(&["render", "-f", "-", "--defaults", path.to_str().unwrap()], VALID);
    assert!(stdout.contains("image: registry.example.com/caipe:7\n"), "{stdout}");
    assert!(stdout.contains("imagePullSecrets:\n      - name: registry\n"), "{stdout}");
}

#[test]
fn check_finds_what_only_a_pod_shows() {
    let input = format!("{VALID}  podTemplate: {{ spec: {{ containers: [{{ name: superviser }}] }} }}\n");
    let (code, _, stderr) = operator(&["check", "-f", "-"], &input);
    assert_eq!(code, 1);
    assert!(stderr.contains("there is no container `superviser`"), "{stderr}");
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let (code, _, stderr) = operator(&["check", "-f", "/nowhere/a.yaml"], "");
    assert_eq!(code, 1);
    assert!(stderr.starts_with("error: failed to read /nowhere/a.yaml: "), "{stderr}");
}

#[test]
fn usage_errors_exit_with_2() {
    for arguments in [&[][..], &["check"], &["render", "-f"], &["dance"]] {
        assert_eq!(operator(arguments, "").0, 2, "{arguments:?}");
    }
}

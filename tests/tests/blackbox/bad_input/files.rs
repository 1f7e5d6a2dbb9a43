use std::process::Output;

use anyhow::{Context, Result, ensure};
use caipe_tests::programs::workspace;
use caipe_tests::supervisor::Setup;

/// A fault of a file, in a whole resource: what is written, and the path and word that the message must have.
const FAULTS: [(&str, &str, &str); 8] = [
    ("  modle: {provider: scripted, script: {path: s}}", "spec.modle", "unknown"),
    ("  model: {provider: openai}", "spec.model", "name"),
    ("  model: {provider: hal9000, name: x}", "spec.model.provider", "openai"),
    (
        "  agents: [{name: Jira!, identity: {inline: {description: d, systemPrompt: p}}}]",
        "spec.agents[0].name",
        "name",
    ),
    ("  agents: [{name: jira, mcp: [{name: a}]}]", "spec.agents[0].mcp[0]", "exactly one"),
    ("  agents: [{name: jira}, {name: jira}]", "spec.agents[1]", "taken"),
    ("  limits: {recursion: lots}", "spec.limits.recursion", "whole number"),
    ("  limits: {recursion: 0}", "spec.limits.recursion", "1"),
];

fn resource(spec: &str) -> String {
    format!("apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{name: test}}\nspec:\n{spec}\n")
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_reported_with_its_path() -> Result<()> {
    let setup = Setup::new()?;
    for (spec, path, word) in FAULTS {
        let setup = setup.clone().file("bad.yaml", &resource(spec))?;
        let output = setup.run(&["check", "-f", "bad.yaml"]).await?;
        let words = words(&output);
        ensure!(output.status.code() == Some(1), "{spec}: {:?}: {words}", output.status);
        let reported =
            words.lines().any(|line| line.contains("bad.yaml") && line.contains(path) && line.contains(word));
        ensure!(reported, "no line names bad.yaml, {path} and {word:?}:\n{words}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_are_reported_at_once() -> Result<()> {
    let spec =
        "  limits: {recursion: 0, maxContextTokens: 1}\n  agents: [{name: jira}, {name: jira}, {name: all}]";
    let setup = Setup::new()?.file("bad.yaml", &resource(spec))?;
    let output = setup.run(&["check", "-f", "bad.yaml"]).await?;
    let words = words(&output);
    for path in ["spec.limits.recursion", "spec.limits.maxContextTokens", "spec.agents[1]", "spec.agents[2]"]
    {
        ensure!(words.contains(path), "{path} is not reported:\n{words}");
    }
    // A value of a wrong type, a broken rule, an unknown agent, and a variable of a remote agent.
    let spec = "  limits: {recursion: many}\n  replicas: 2\n  agents: [{name: jirra}, {name: jira}]\n  distributedAgents: [jira]";
    let output = setup.file("bad.yaml", &resource(spec))?.run(&["check", "-f", "bad.yaml"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    for path in ["spec.limits.recursion", "spec.replicas", "spec.agents[0].name", "JIRA_AGENT_URL"] {
        ensure!(words.contains(path), "{path} is not reported:\n{words}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_key_is_a_warning() -> Result<()> {
    let setup = Setup::new()?
        .file("file.yaml", &resource("  model: {provider: openai, name: gpt-5}\n  agents: []"))?;
    let output = setup.run(&["check", "-f", "file.yaml"]).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && text.contains("warning: OPENAI_API_KEY is not set"), "{text}");
    Ok(())
}

/// A laptop has no address of a remote agent, no container and no `ConfigMap`.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_for_a_cluster_can_be_checked_here() -> Result<()> {
    let spec = "  defaultPlacement: Remote\n  agents: [{name: jira}, {name: own, identity: {configMapRef: {name: texts}}, \
                mcp: [{name: side, container: {image: i, port: 9000}}]}]";
    let setup = Setup::new()?.env("DISTRIBUTED_AGENTS", "ghost").file("file.yaml", &resource(spec))?;
    let here = setup.run(&["check", "-f", "file.yaml"]).await?;
    ensure!(!here.status.success(), "{}", words(&here));
    let output = setup.run(&["check", "--cluster", "-f", "file.yaml"]).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let unread = "spec.agents[own].identity.configMapRef: ConfigMap `texts` is not checked";
    ensure!(
        output.status.success() && text.contains("ok, 2 agents") && text.contains(unread),
        "{}",
        words(&output)
    );
    ensure!(!text.contains("ghost"), "the environment is another one in a cluster: {text}");

    let setup = setup.file(
        "file.yaml",
        &resource(&format!("{spec}\n  distributedMode: true\n  rag: {{ url: nowhere }}")),
    )?;
    let output = setup.run(&["check", "--cluster", "-f", "file.yaml"]).await?;
    let text = words(&output);
    ensure!(
        !output.status.success() && text.contains("spec.distributedMode: is no longer a field"),
        "{text}"
    );
    ensure!(text.contains("spec.rag"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_file_has_no_fault() -> Result<()> {
    let setup = Setup::new()?.file("good.yaml", &resource("  agents: [{name: jira}]"))?;
    let output = setup.run(&["check", "-f", "good.yaml"]).await?;
    ensure!(output.status.success(), "{}", words(&output));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_pages_and_the_quick_start_are_good() -> Result<()> {
    let setup = Setup::new()?.file("readme.yaml", &example("README.md")?)?;
    let setup = setup.file("configuration.yaml", &example("docs/configuration.md")?)?;
    let quickstart = workspace().join("fixtures/quickstart.yaml").to_string_lossy().into_owned();
    for file in ["readme.yaml", "configuration.yaml", &quickstart] {
        let output = setup.run(&["check", "-f", file]).await?;
        ensure!(output.status.success(), "{}", words(&output));
    }
    Ok(())
}

/// The first resource that the page shows.
fn example(page: &str) -> Result<String> {
    let text = std::fs::read_to_string(workspace().join(page))?;
    let example = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    Ok(example.with_context(|| format!("{page} shows no resource"))?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_refuses_a_bad_file_and_a_bad_environment() -> Result<()> {
    let setup = Setup::new()?.file("bad.yaml", &resource("  modle: {}"))?.file("yaml.yaml", "a: [b")?;
    let table = [
        (vec!["-f", "bad.yaml"], None, "spec.modle"),
        (vec!["-f", "no-such-file.yaml"], None, "no-such-file.yaml"),
        (vec!["-f", "yaml.yaml"], None, "yaml.yaml"),
        (vec![], Some(("LANGGRAPH_RECURSION_LIMIT", "many")), "LANGGRAPH_RECURSION_LIMIT"),
        (vec![], Some(("ENABLE_JIRA", "perhaps")), "ENABLE_JIRA"),
    ];
    for (arguments, variable, word) in table {
        let setup = variable.map_or_else(|| setup.clone(), |(name, value)| setup.clone().env(name, value));
        let serve =
            [&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"], arguments.as_slice()].concat();
        let output = setup.run(&serve).await?;
        let words = words(&output);
        ensure!(
            !output.status.success() && words.contains(word),
            "{serve:?} {variable:?}: {:?} {words}",
            output.status
        );
    }
    Ok(())
}

/// An image of one's own may have none.
#[tokio::test(flavor = "multi_thread")]
async fn missing_certificate_authorities_are_named() -> Result<()> {
    let setup = Setup::new()?.env("SSL_CERT_FILE", "/nowhere/ca.pem");
    for command in [vec!["serve"], vec!["agent", "github"]] {
        let listening = ["--listen", "127.0.0.1:0", "--data-dir", "data"];
        let output = setup.run(&[command.as_slice(), &listening].concat()).await?;
        let words = words(&output);
        ensure!(output.status.code() == Some(1), "{command:?}: {:?}: {words}", output.status);
        ensure!(words.contains("SSL_CERT_FILE") && !words.contains("panicked"), "{command:?}: {words}");
    }
    Ok(())
}

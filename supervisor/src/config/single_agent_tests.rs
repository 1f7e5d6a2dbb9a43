use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

const RESOURCE: &str = "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: { name: platform }
spec:
  model: { provider: openai, name: gpt-5 }
  distributedAgents: [all]
  agents:
    - name: jira
    - name: mine
      identity: { inline: { description: Old words., systemPrompt: Old prompt. } }
      requireApproval: [\"write_*\"]
";

fn env(variables: &[(&str, &str)]) -> Environment {
    Arc::new(variables.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<BTreeMap<_, _>>())
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn an_agent_comes_from_the_catalogue_or_from_a_file_and_runs_here() {
    let single =
        SingleAgent::load(" GitHub", None, None, env(&[("GITHUB_AGENT_URL", "http://github:8000/")]))
            .unwrap();
    assert_eq!((single.agent.name.as_str(), single.url.as_deref()), ("github", Some("http://github:8000")));
    assert_eq!(single.settings.spec.agents.first(), Some(&single.agent));
    assert_eq!(single.agent.placement, Placement::InProcess {});

    let files = folder(&[("supervisor.yaml", RESOURCE)]);
    let file = files.path().join("supervisor.yaml");
    let single = SingleAgent::load("mine", Some(&file), None, env(&[])).unwrap();
    assert_eq!((single.agent.system_prompt.as_str(), single.url), ("Old prompt.", None));
    assert_eq!(single.settings.spec.models.len(), 1);
}

#[test]
fn a_folder_says_who_the_agent_is_and_the_file_the_rest() {
    let files = folder(&[
        ("supervisor.yaml", RESOURCE),
        ("IDENTITY.md", "# Mine\n\nNew words.\n\n## Look\nLooks.\n"),
        ("CONTEXT.md", "In Berlin."),
    ]);
    let file = files.path().join("supervisor.yaml");
    let single = SingleAgent::load("mine", Some(&file), Some(files.path()), env(&[])).unwrap();
    assert_eq!(single.agent.description, "New words.");
    assert_eq!(single.agent.system_prompt, "# Mine\n\nNew words.\n\n## Look\nLooks.\n\nIn Berlin.");
    assert_eq!(single.agent.require_approval, ["write_*"]);
    assert_eq!(single.skills.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>(), ["look"]);

    let single = SingleAgent::load("other", None, Some(files.path()), env(&[])).unwrap();
    assert_eq!((single.agent.name.as_str(), single.agent.title.as_str()), ("other", "Mine"));
    assert!(single.agent.mcp.is_empty());
}

#[test]
fn a_rendered_spec_serves_its_remote_agents_as_it_stands() {
    let files = folder(&[("supervisor.yaml", RESOURCE), ("IDENTITY.md", "# A")]);
    let addresses = env(&[("JIRA_AGENT_URL", "http://jira:8000"), ("MINE_AGENT_URL", "http://mine:8000")]);
    let spec = Settings::load(Some(&files.path().join("supervisor.yaml")), addresses).unwrap().spec;
    let file = files.path().join("spec.json");
    std::fs::write(&file, serde_json::to_string(&spec).unwrap()).unwrap();

    let single = SingleAgent::load("jira", Some(&file), None, env(&[("ENABLE_JIRA", "false")])).unwrap();
    assert_eq!(
        (single.url.as_deref(), &single.agent.placement),
        (Some("http://jira:8000"), &Placement::InProcess {})
    );
    assert!(!single.agent.mcp.is_empty() && !single.agent.system_prompt.is_empty());
    assert_eq!(single.settings.spec.models, spec.models);

    let error = SingleAgent::load("mine", Some(&file), Some(files.path()), env(&[])).unwrap_err().to_string();
    assert!(error.contains("leave --identity out"), "{error}");
    let error = SingleAgent::load("nobody", Some(&file), None, env(&[])).unwrap_err().to_string();
    assert!(error.contains("name one of jira, mine"), "{error}");
}

#[test]
fn faults_are_reported_with_their_place() {
    let broken = folder(&[("IDENTITY.md", "---\nfoo: 1\n---\n# A")]);
    let place = broken.path().display().to_string();
    let empty = folder(&[]);
    let cases = [
        ("nobody", None, "the environment: spec.agents: there is no agent `nobody`"),
        ("mine", Some(broken.path()), "IDENTITY.md: foo: unknown key"),
        ("mine", Some(empty.path()), "failed to read"),
    ];
    for (name, folder, says) in cases {
        let error = SingleAgent::load(name, None, folder, env(&[])).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let error = SingleAgent::load("mine", None, Some(broken.path()), env(&[])).unwrap_err().to_string();
    assert!(error.starts_with(&place), "{error}");
}

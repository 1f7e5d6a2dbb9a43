//! The file and the environment, and the faults of both.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use super::{ConfigError, Environment, MAX_FILE, Settings};

fn env(pairs: &[(&str, &str)]) -> Environment {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    pairs.collect::<BTreeMap<_, _>>().into()
}

fn file(yaml: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(yaml.as_bytes()).unwrap();
    file
}

fn names(settings: &Settings) -> Vec<&str> {
    settings.spec.agents.iter().map(|agent| agent.name.as_str()).collect()
}

const ONE: &str = "
apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: { name: here }
spec:
  model: { provider: openai, name: gpt-5 }
  agents: [{ name: github }, { name: jira }]
";

#[test]
fn without_a_file_the_core_agents_run_and_the_environment_says_which() {
    let all = Settings::load(None, env(&[])).unwrap();
    assert!(names(&all).contains(&"jira"), "{:?}", names(&all));
    let fewer = Settings::load(None, env(&[("ENABLE_JIRA", "false")])).unwrap();
    assert!(!names(&fewer).contains(&"jira"));
    assert_eq!(names(&fewer).len() + 1, names(&all).len());
}

#[test]
fn the_environment_overrides_the_file_and_paths_are_relative_to_its_folder() {
    let file = file(ONE);
    let settings = Settings::load(Some(file.path()), env(&[("ENABLE_JIRA", "false")])).unwrap();
    assert_eq!(names(&settings), ["github"]);
    assert_eq!(settings.base, file.path().parent().unwrap());
}

#[test]
fn every_fault_names_the_file_and_its_path() {
    let faulty = ONE.replace("name: github", "name: github, colour: red").replace("openai", "oracle");
    let file = file(&faulty);
    let error = Settings::load(Some(file.path()), env(&[])).unwrap_err().to_string();
    let path = file.path().display().to_string();
    assert!(error.lines().count() >= 1 && error.lines().all(|line| line.starts_with(&path)), "{error}");
    assert!(error.contains("spec."), "{error}");
}

/// The warning is in the log, in the internal status, and so in the resource's condition `Degraded`.
#[test]
fn a_spec_of_a_newer_operator_runs_with_a_warning_and_keeps_its_hash() {
    let spec = include_str!("../../crds/golden/rendered-next.yaml");
    let newer = file(spec);
    let settings = Settings::load(Some(newer.path()), env(&[])).unwrap();
    assert_eq!(settings.spec.hash, "a hash that covers the unknown fields");
    let [warning] = settings.warnings.as_slice() else { panic!("{:?}", settings.warnings) };
    assert!(warning.to_string().contains("agents[].placement.region"), "{warning}");

    let single = super::SingleAgent::load("jira", Some(newer.path()), None, env(&[])).unwrap();
    assert_eq!(single.settings.warnings, settings.warnings);

    let refused = file(&spec.replace("minimumReader: 1", "minimumReader: 2"));
    let error = Settings::load(Some(refused.path()), env(&[])).unwrap_err().to_string();
    assert!(error.contains("minimumReader: the spec has schema version 2"), "{error}");
}

#[test]
fn a_file_that_is_missing_or_endless_is_named() {
    let missing = Settings::load(Some(Path::new("/nowhere/caipe.yaml")), env(&[])).unwrap_err();
    assert!(matches!(missing, ConfigError::Unreadable { .. }));
    assert!(missing.to_string().contains("/nowhere/caipe.yaml"), "{missing}");
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len(MAX_FILE + 1).unwrap();
    let refused = Settings::load(Some(large.path()), env(&[])).unwrap_err().to_string();
    assert!(refused.contains("at most 1500000"), "{refused}");
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let refused = Settings::load(Some(&pipe), env(&[])).unwrap_err().to_string();
    assert!(refused.contains("not a regular file"), "to open it would block: {refused}");
}

#[test]
fn what_is_printed_of_the_settings_holds_names_and_no_values() {
    let settings = Settings::load(None, env(&[("OPENAI_API_KEY", "sk-very-secret")])).unwrap();
    let printed = format!("{settings:?}");
    assert!(printed.contains("OPENAI_API_KEY") && !printed.contains("sk-very-secret"));
}

#[test]
fn a_list_of_addresses_that_cannot_be_read_is_a_fault() {
    let refused =
        |settings: Result<Settings, ConfigError>| settings.err().map(|error| error.to_string()).unwrap();
    let listed = file(&format!("{ONE}  a2a: {{ allow: ['http://agents.example.com/'] }}\n"));
    let fault = refused(Settings::load(Some(listed.path()), env(&[])));
    assert!(fault.contains("spec.a2a.allow[0]: must be a host"), "{fault}");
    let variables = env(&[("CAIPE_A2A_TOOLS", "on"), ("CAIPE_A2A_ALLOW", "a b")]);
    assert!(refused(Settings::load(None, variables)).contains("\"a b\""));
}

//! The programs, and the files that they are given.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use caipe_fixtures::requirements::Requirement;
use caipe_tests::programs::workspace;
use serde_json::Value;

/// Both majors of helm that are in use.
pub(crate) const HELMS: [&str; 2] = ["helm3", "helm4"];

/// The charts: of the definition, and of the operator, which has the first in it.
pub(crate) const CHARTS: [&str; 2] = ["charts/caipe-operator/charts/caipe-crds", "charts/caipe-operator"];

/// A program that `scripts/helm` installs. `None` if it is not installed, which it reports as a skip.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let root =
        std::env::var_os("CAIPE_TOOLS").map_or_else(|| workspace().join(".cache/tools"), PathBuf::from);
    let program = root.join("bin").join(name);
    if program.exists() {
        return Some(program);
    }
    Requirement::Peers.unmet(&format!("{} is not installed", program.display()));
    None
}

/// A file of the repository.
pub(crate) fn path(relative: &str) -> PathBuf {
    workspace().join(relative)
}

pub(crate) fn text(relative: &str) -> Result<String> {
    std::fs::read_to_string(path(relative)).with_context(|| format!("failed to read {relative}"))
}

pub(crate) fn document(relative: &str) -> Result<Value> {
    serde_saphyr::from_str(&text(relative)?).with_context(|| format!("failed to read {relative} as YAML"))
}

/// The objects of a text with several documents.
pub(crate) fn objects(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("failed to read YAML")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The objects of a file.
pub(crate) fn objects_of(relative: &str) -> Result<Vec<Value>> {
    objects(&text(relative)?).with_context(|| format!("in {relative}"))
}

/// The YAML files of a folder, by their names.
pub(crate) fn files(folder: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in path(folder).read_dir().with_context(|| format!("failed to list {folder}"))? {
        let name = entry?.file_name().into_string().ok().context("an odd name")?;
        if Path::new(&name).extension().is_some_and(|extension| extension == "yaml") {
            names.push(name);
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "{folder} has no YAML files");
    Ok(names)
}

/// What a comment `# KEY: …` of a case of `charts/matrix` says: its release, its namespace, an API of the cluster.
pub(crate) fn comment<'a>(values: &'a str, key: &str) -> Option<&'a str> {
    let prefix = format!("# {key}: ");
    values.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// What a chart renders to with these values, or what helm says against it.
pub(crate) fn render(helm: &Path, chart: &str, values: &str) -> Result<Vec<Value>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("values.yaml");
    std::fs::write(&file, values)?;
    let release = comment(values, "release").unwrap_or("caipe-operator");
    let namespace = comment(values, "namespace").unwrap_or("caipe-system");
    let output = Command::new(helm)
        .args(["template", release, "--namespace", namespace, "--values"])
        .arg(&file)
        .arg(path(chart))
        .args(comment(values, "api").iter().flat_map(|api| ["--api-versions", api]))
        .envs([
            ("HELM_CACHE_HOME", dir.path()),
            ("HELM_CONFIG_HOME", dir.path()),
            ("HELM_DATA_HOME", dir.path()),
        ])
        .output()?;
    objects(&stdout(output)?)
}

/// What a program wrote, or what it complained of.
pub(crate) fn stdout(output: Output) -> Result<String> {
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// An object as `Kind name`, for messages.
pub(crate) fn title(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("?");
    let namespace = object["metadata"]["namespace"].as_str().map(|it| format!("{it}/")).unwrap_or_default();
    format!("{kind} {namespace}{}", object["metadata"]["name"].as_str().unwrap_or("?"))
}

pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// Fails at the first place where two objects differ. `1000.0` is `1000`, as in JSON Schema.
#[track_caller]
pub(crate) fn assert_same(found: &Value, expected: &Value, what: &str) {
    let difference = difference(found, expected, "");
    assert!(difference.is_none(), "{what}: {}", difference.unwrap_or_default());
}

fn difference(found: &Value, expected: &Value, path: &str) -> Option<String> {
    match (found, expected) {
        (Value::Object(left), Value::Object(right)) => {
            let untold = left.keys().find(|name| !right.contains_key(*name));
            let lost = right.iter().find_map(|(name, expected)| {
                difference(left.get(name).unwrap_or(&Value::Null), expected, &format!("{path}.{name}"))
            });
            untold.map(|name| format!("{path}.{name} is not expected")).or(lost)
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, (found, expected))| difference(found, expected, &format!("{path}[{at}]")))
        }
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => None,
        _ => (found != expected).then(|| format!("{path} is {found}, not {expected}")),
    }
}

//! The values of the charts: each one is documented, and the schema refuses others.

use anyhow::{Result, bail, ensure};
use serde_json::{Map, Value};

use crate::tools::{CHARTS, HELMS, document, render, text, tool};

/// What is wrong, and a word that helm says of it.
const WRONG: [(&str, &str); 32] = [
    ("replica: 2", "replica"),
    ("replicas: '2'", "replicas"),
    ("replicas: -1", "replicas"),
    ("image: { name: operator }", "name"),
    ("image: { digest: latest }", "digest"),
    ("image: { pullPolicy: Sometimes }", "pullPolicy"),
    ("imagePullSecrets: [{ name: registry }]", "imagePullSecrets"),
    ("watchNamespaces: team-a", "watchNamespaces"),
    ("watchNamespaces: [Team_A]", "watchNamespaces"),
    ("watchNamespaces: [team-a, team-a]", "watchNamespaces"),
    ("watchNamespaces: [team.a]", "watchNamespaces"),
    ("watchNamespaces: ['']", "watchNamespaces"),
    ("crds: { install: true }", "install"),
    ("defaults: { drain: 3 }", "drain"),
    ("defaults: { drainSeconds: 0 }", "drainSeconds"),
    ("defaults: { resources: { request: {} } }", "request"),
    ("resources: { limits: { memory: much } }", "memory"),
    ("metrics: { serviceMonitor: { scrape: 3s } }", "scrape"),
    ("metrics: { podMonitor: { interval: often } }", "interval"),
    ("networkPolicy: { apiServer: { cidrs: [everywhere] } }", "cidrs"),
    ("networkPolicy: { metricsFrom: [{}] }", "metricsFrom"),
    ("log: { format: xml }", "format"),
    ("log: { level: inof }", "level"),
    ("log: { level: 'inof,kube=debug' }", "level"),
    ("log: { level: 'info,kube' }", "level"),
    ("tolerations: [{ kee: system }]", "kee"),
    ("extraEnv: [{ value: x }]", "name"),
    ("leaderElection: { enabled: false }\nreplicas: 2", "leaderElection.enabled"),
    ("metrics: { serviceMonitor: { enabled: true }, podMonitor: { enabled: true } }", "enable one of them"),
    (
        "metrics: { serviceMonitor: { enabled: true }, service: { enabled: false } }",
        "metrics.service.enabled",
    ),
    ("metrics: { prometheusRule: { enabled: true, disabled: [Caipe] } }", "there is no alert Caipe"),
    ("serviceAccount: { create: false }", "serviceAccount.name"),
];

#[test]
fn what_is_wrong_is_refused_and_named() -> Result<()> {
    for helm in HELMS {
        let Some(program) = tool(helm) else { return Ok(()) };
        for (values, word) in WRONG {
            let Err(error) = render(&program, "charts/caipe-operator", values) else {
                bail!("{helm} takes {values}");
            };
            ensure!(error.to_string().contains(word), "{helm}: {values}: {error}");
        }
    }
    Ok(())
}

#[test]
fn another_chart_can_depend_on_these() -> Result<()> {
    for helm in HELMS {
        let Some(program) = tool(helm) else { return Ok(()) };
        for chart in CHARTS {
            render(&program, chart, "global: { anything: { at: all } }")?;
        }
        render(&program, CHARTS[0], "enabled: true")?;
    }
    Ok(())
}

/// Follows `$ref`.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// What differs between the values of `values.yaml` and those of the schema.
fn differences(values: &Map<String, Value>, schema: &Value, root: &Value, path: &str) -> Vec<String> {
    let schema = resolved(schema, root);
    let Some(known) = schema["properties"].as_object() else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in values {
        match (known.get(name), value) {
            (None, _) => found.push(format!("{path}{name} is not in the schema")),
            (Some(below), Value::Object(values)) if !values.is_empty() => {
                found.extend(differences(values, below, root, &format!("{path}{name}.")));
            }
            _ => {}
        }
    }
    let untold = known.keys().filter(|name| !values.contains_key(*name) && !is_helms_own(name, path));
    found.extend(untold.map(|name| format!("{path}{name} is not in values.yaml")));
    found
}

/// What Helm puts into the values by itself.
fn is_helms_own(name: &str, path: &str) -> bool {
    name == "global" || (name == "enabled" && path.is_empty())
}

#[test]
fn the_schema_and_the_values_tell_of_the_same() -> Result<()> {
    for chart in CHARTS {
        let values = document(&format!("{chart}/values.yaml"))?;
        let schema: Value = serde_json::from_str(&text(&format!("{chart}/values.schema.json"))?)?;
        let found = differences(values.as_object().unwrap_or(&Map::new()), &schema, &schema, "");
        ensure!(found.is_empty(), "{chart}: {found:?}");
    }
    Ok(())
}

/// Each map of the schema that takes anything, and does not say why.
fn open(schema: &Value, path: &str, found: &mut Vec<String>) {
    let is_map = schema["type"] == "object"
        || schema["type"].as_array().is_some_and(|all| all.contains(&"object".into()));
    if is_map && schema.get("additionalProperties").is_none() && schema["description"].as_str().is_none() {
        found.push(path.to_owned());
    }
    match schema {
        Value::Object(parts) => {
            for (name, part) in parts {
                open(part, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| open(part, path, found)),
        _ => {}
    }
}

#[test]
fn the_schema_is_closed() -> Result<()> {
    for chart in CHARTS {
        let schema: Value = serde_json::from_str(&text(&format!("{chart}/values.schema.json"))?)?;
        let mut found = Vec::new();
        open(&schema, "", &mut found);
        ensure!(found.is_empty(), "{chart}: {found:?}");
    }
    Ok(())
}

/// The path of each value that is no map of further ones.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(below) if !below.is_empty() => {
            let dot = if path.is_empty() { "" } else { "." };
            below.iter().for_each(|(name, below)| leaves(below, &format!("{path}{dot}{name}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn the_readme_tells_of_every_value() -> Result<()> {
    for chart in CHARTS {
        let readme = text(&format!("{chart}/README.md"))?;
        let mut paths = Vec::new();
        leaves(&document(&format!("{chart}/values.yaml"))?, "", &mut paths);
        for path in paths {
            let parts: Vec<&str> = path.split('.').collect();
            let documented = (1..=parts.len()).any(|length| {
                readme.lines().any(|line| line.starts_with(&format!("| `{}` | `", parts[..length].join("."))))
            });
            ensure!(documented, "{chart}: {path}; run `make generate`");
        }
    }
    Ok(())
}

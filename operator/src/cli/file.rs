//! `check` and `render`: a resource's file.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use caipe_crds::read::MAX_FILE_BYTES;
use caipe_crds::{Fault, Faults, Resolved, Surroundings, read_resource, resolve_in};
use serde::Deserialize;

/// Prints every fault; none is success.
pub(super) fn check(path: &Path) -> anyhow::Result<ExitCode> {
    let text = read(path)?;
    match resolved(&text) {
        Ok(resolved) => {
            report(path, "warning", &resolved.warnings);
            eprintln!("{}: no fault", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => Ok(refuse(path, &faults)),
    }
}

/// Prints the rendered spec as YAML.
pub(super) fn render(path: &Path) -> anyhow::Result<ExitCode> {
    let text = read(path)?;
    match resolved(&text) {
        Ok(resolved) => {
            report(path, "warning", &resolved.warnings);
            super::print(
                &serde_saphyr::to_string(&resolved.spec).context("failed to write the spec as YAML")?,
            )
        }
        Err(faults) => Ok(refuse(path, &faults)),
    }
}

fn refuse(path: &Path, faults: &Faults) -> ExitCode {
    report(path, "error", faults.as_slice());
    ExitCode::FAILURE
}

fn report(path: &Path, severity: &str, faults: &[Fault]) {
    for fault in faults {
        eprintln!("{}: {severity}: {fault}", path.display());
    }
}

/// What the operator would make of the file: no environment, in the resource's namespace.
fn resolved(text: &str) -> Result<Resolved, Faults> {
    let (resource, config_maps) = documents(text)?;
    let resource = read_resource(&resource)?;
    let namespace = resource.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    resolve_in(&resource, &BTreeMap::new(), &Surroundings::Cluster { namespace, config_maps })
}

type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

/// Splits the file into the resource's document and the `ConfigMap`s beside it.
fn documents(text: &str) -> Result<(String, ConfigMaps), Faults> {
    let mut resource = String::new();
    let mut config_maps = ConfigMaps::new();
    for document in split(text) {
        match serde_saphyr::from_str::<ConfigMap>(&document) {
            Ok(map) if map.kind == "ConfigMap" => {
                config_maps.insert(map.metadata.name, map.data);
            }
            _ if resource.is_empty() => resource = document,
            _ => return Err(Fault::new("", "the file has more than one resource: give one at a time").into()),
        }
    }
    Ok((resource, config_maps))
}

/// The documents of a YAML file that are not empty.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.extend([line, "\n"]);
        }
    }
    let filled = |text: &String| text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    documents.retain(filled);
    documents
}

#[derive(Deserialize)]
struct ConfigMap {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// Reads the file, or standard input, up to a bound.
fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(MAX_FILE_BYTES)?.saturating_add(1);
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.with_context(|| format!("failed to read {}", path.display()))?;
    anyhow::ensure!(text.len() <= MAX_FILE_BYTES, "{} is larger than {MAX_FILE_BYTES} bytes", path.display());
    Ok(text)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

//! Reads a file with a resource and optional `ConfigMap`s.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use caipe_crds::read::MAX_FILE_BYTES;
use caipe_crds::{Fault, Faults};
use caipe_operator::references::ConfigMapContent;
use serde::Deserialize;

pub(super) type ConfigMaps = BTreeMap<String, ConfigMapContent>;

/// Splits the file into the resource's document and the `ConfigMap`s.
pub(super) fn split(text: &str) -> Result<(String, ConfigMaps), Faults> {
    let mut resource = String::new();
    let mut config_maps = ConfigMaps::new();
    for document in documents(text) {
        match serde_saphyr::from_str::<ConfigMap>(&document) {
            Ok(map) if map.kind == "ConfigMap" => {
                let content = ConfigMapContent { data: map.data, ..ConfigMapContent::default() };
                config_maps.insert(map.metadata.name, content);
            }
            _ if resource.is_empty() => resource = document,
            _ => return Err(Fault::new("", "the file has more than one resource: give one resource").into()),
        }
    }
    Ok((resource, config_maps))
}

/// The non-empty documents of a YAML file.
fn documents(text: &str) -> Vec<String> {
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

/// Reads the file or standard input, at most [`MAX_FILE_BYTES`].
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
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

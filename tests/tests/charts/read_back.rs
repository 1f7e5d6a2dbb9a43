//! kubectl reads every file that is shipped as it is meant.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::tools::{assert_same, files, objects_of, path, stdout, title, tool};

const MARK: &str = "example.com/read-back";

/// The objects of a file as kubectl reads them.
fn read(kubectl: &Path, file: &str) -> Result<Vec<Value>> {
    let output = Command::new(kubectl)
        .args(["annotate", "--local", "--output", "json", &format!("{MARK}=1"), "--filename"])
        .arg(path(file))
        .env("KUBECONFIG", "/dev/null")
        .output()?;
    let text = stdout(output).with_context(|| format!("kubectl does not read {file}"))?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    objects.map(|object| Ok(without_mark(object?))).collect()
}

fn without_mark(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let emptied =
            metadata.get_mut("annotations").and_then(Value::as_object_mut).is_some_and(|annotations| {
                annotations.remove(MARK);
                annotations.is_empty()
            });
        if emptied {
            metadata.remove("annotations");
        }
    }
    object
}

#[test]
fn every_file_is_read_as_it_is_meant() -> Result<()> {
    let Some(kubectl) = tool("kubectl") else { return Ok(()) };
    let mut shipped: Vec<String> = Vec::new();
    for folder in [
        "charts/golden",
        "charts/caipe-operator/charts/caipe-crds/crd-manifests",
        "deploy/argocd",
        "deploy/argocd/testdata",
    ] {
        shipped.extend(files(folder)?.into_iter().map(|name| format!("{folder}/{name}")));
    }
    shipped.retain(|file| !file.ends_with("health_test.yaml"));
    shipped.push("deploy/install.yaml".to_owned());
    for file in shipped {
        let (read, meant) = (read(&kubectl, &file)?, objects_of(&file)?);
        assert_eq!(read.len(), meant.len(), "{file}");
        for (read, meant) in read.iter().zip(&meant) {
            assert_same(read, meant, &format!("{file}: {}", title(meant)));
        }
    }
    Ok(())
}

#[test]
fn the_kustomization_is_the_plain_manifest() -> Result<()> {
    let Some(kubectl) = tool("kubectl") else { return Ok(()) };
    let output = Command::new(kubectl).arg("kustomize").arg(path("deploy")).output()?;
    let mut built = crate::tools::objects(&stdout(output)?)?;
    let mut plain = objects_of("deploy/install.yaml")?;
    built.sort_by_key(title);
    plain.sort_by_key(title);
    ensure!(built == plain, "deploy/kustomization.yaml makes something else of deploy/install.yaml");
    Ok(())
}

//! The definition comes through the charts unchanged, upgradable, and kept.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::tools::{CHARTS, HELMS, assert_same, document, of_kind, render, tool};

fn definition(helm: &str, chart: &str, values: &str) -> Result<Option<Value>> {
    let Some(program) = tool(helm) else { return Ok(None) };
    let objects = render(&program, chart, values)?;
    let found = of_kind(&objects, "CustomResourceDefinition");
    assert_eq!(found.len(), 1, "{helm}: {chart}");
    Ok(found.first().map(|found| (*found).clone()))
}

#[test]
fn the_charts_change_nothing_of_it_but_labels_and_annotations() -> Result<()> {
    let original = document("crds/caipe.io_caipesupervisors.yaml")?;
    for helm in HELMS {
        for chart in CHARTS {
            let Some(mut rendered) = definition(helm, chart, "{}")? else { return Ok(()) };
            let metadata = rendered["metadata"].as_object_mut().context("no metadata")?;
            assert_eq!(
                metadata["annotations"],
                json!({"helm.sh/resource-policy": "keep"}),
                "{helm}: {chart}"
            );
            metadata.remove("annotations");
            metadata.remove("labels");
            assert_same(&rendered, &original, &format!("{helm}: {chart}"));
        }
    }
    Ok(())
}

#[test]
fn who_does_not_want_to_keep_it_says_so() -> Result<()> {
    for helm in HELMS {
        let values =
            "{ keep: false, annotations: { a: b }, labels: { app.kubernetes.io/name: mine, team: ours } }";
        let Some(rendered) = definition(helm, CHARTS[0], values)? else { return Ok(()) };
        assert_eq!(rendered["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(rendered["metadata"]["labels"]["team"], "ours");
        assert_eq!(rendered["metadata"]["labels"]["app.kubernetes.io/name"], "caipe-crds");
        let through = format!("crds: {values}");
        let Some(rendered) = definition(helm, "charts/caipe-operator", &through)? else { return Ok(()) };
        assert_eq!(rendered["metadata"]["annotations"], json!({"a": "b"}));
    }
    Ok(())
}

#[test]
fn the_charts_copy_is_the_original() -> Result<()> {
    let name = "caipe.io_caipesupervisors.yaml";
    let original = crate::tools::text(&format!("crds/{name}"))?;
    let copy = crate::tools::text(&format!("{}/crd-manifests/{name}", CHARTS[0]))?;
    assert!(original == copy, "run `make generate`");
    Ok(())
}

//! One version everywhere: the workspace's.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tools::{CHARTS, document, objects_of, of_kind};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn charts_have_the_version_of_the_programs() -> Result<()> {
    for chart in CHARTS {
        let about = document(&format!("{chart}/Chart.yaml"))?;
        assert_eq!(about["version"], VERSION, "{chart}");
        assert_eq!(about["appVersion"], VERSION, "{chart}");
    }
    Ok(())
}

#[test]
fn the_operator_depends_on_the_definition_of_its_own_version() -> Result<()> {
    let about = document("charts/caipe-operator/Chart.yaml")?;
    assert_eq!(about["dependencies"][0]["version"], VERSION);
    Ok(())
}

#[test]
fn annotations_and_manifests_name_the_image_of_this_version() -> Result<()> {
    let about = document("charts/caipe-operator/Chart.yaml")?;
    let images = about["annotations"]["artifacthub.io/images"].as_str().context("no images")?;
    let images: Value = serde_saphyr::from_str(images)?;
    let expected = format!("ghcr.io/caipe-io/caipe-operator:{VERSION}");
    assert_eq!(images[0]["image"], expected);
    let objects = objects_of("deploy/install.yaml")?;
    let deployment = of_kind(&objects, "Deployment");
    assert_eq!(deployment[0]["spec"]["template"]["spec"]["containers"][0]["image"], expected);
    let application = &objects_of("deploy/argocd/application.yaml")?[0];
    assert_eq!(application["spec"]["source"]["targetRevision"], VERSION);
    Ok(())
}

#[test]
fn the_annotations_tell_of_the_definition() -> Result<()> {
    let about = document("charts/caipe-operator/Chart.yaml")?;
    let versions: Value =
        serde_saphyr::from_str(about["annotations"]["artifacthub.io/crds"].as_str().context("no crds")?)?;
    let definition = document("crds/caipe.io_caipesupervisors.yaml")?;
    assert_eq!(versions[0]["kind"], definition["spec"]["names"]["kind"]);
    assert_eq!(versions[0]["name"], definition["metadata"]["name"]);
    assert_eq!(versions[0]["version"], definition["spec"]["versions"][0]["name"]);
    Ok(())
}

//! The plain manifest is the chart, without what only helm needs.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tools::{assert_same, document, objects_of, of_kind, title};

/// An object without the labels that tell of helm.
fn plain(mut object: Value) -> Value {
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.retain(|name, value| {
            name != "helm.sh/chart" && (name != "app.kubernetes.io/managed-by" || value != "Helm")
        });
    }
    object
}

#[test]
fn it_is_what_the_chart_renders_to() -> Result<()> {
    let mut shipped = objects_of("deploy/install.yaml")?;
    let namespace = shipped.remove(0);
    assert_eq!(
        (&namespace["kind"], &namespace["metadata"]["name"]),
        (&"Namespace".into(), &"caipe-system".into())
    );
    shipped.retain(|object| object["kind"] != "CustomResourceDefinition");
    let golden =
        objects_of("charts/golden/default.yaml")?.into_iter().filter(|object| object["kind"] != "Pod");
    let golden: Vec<Value> = golden.map(plain).collect();
    assert_eq!(shipped.iter().map(title).collect::<Vec<_>>(), golden.iter().map(title).collect::<Vec<_>>());
    for (shipped, golden) in shipped.iter().zip(&golden) {
        assert_same(shipped, golden, &format!("{}; run `make generate`", title(golden)));
    }
    Ok(())
}

#[test]
fn it_brings_the_definition_and_nothing_of_helm() -> Result<()> {
    let shipped = objects_of("deploy/install.yaml")?;
    let found = of_kind(&shipped, "CustomResourceDefinition");
    let definition = found.first().context("no definition")?;
    let original = document("crds/caipe.io_caipesupervisors.yaml")?;
    assert_same(&definition["spec"], &original["spec"], "the definition");
    for object in &shipped {
        let metadata = object["metadata"].to_string();
        assert!(!metadata.contains("helm.sh"), "{}: {metadata}", title(object));
    }
    Ok(())
}

#[test]
fn the_names_that_the_parts_use_for_each_other_are_right() -> Result<()> {
    let shipped = objects_of("deploy/install.yaml")?;
    let pod = &of_kind(&shipped, "Deployment").first().context("no Deployment")?["spec"]["template"]["spec"];
    let account = of_kind(&shipped, "ServiceAccount");
    assert_eq!(pod["serviceAccountName"], account[0]["metadata"]["name"]);
    for binding in shipped.iter().filter(|object| title(object).contains("Binding")) {
        assert_eq!(binding["subjects"][0]["name"], account[0]["metadata"]["name"], "{}", title(binding));
        let role = of_kind(&shipped, binding["roleRef"]["kind"].as_str().unwrap_or_default());
        let role = role.iter().find(|role| role["metadata"]["name"] == binding["roleRef"]["name"]);
        assert!(role.is_some(), "{} binds what is not there", title(binding));
    }
    let mounted = &pod["volumes"][0]["configMap"]["name"];
    assert!(
        of_kind(&shipped, "ConfigMap").iter().any(|map| map["metadata"]["name"] == *mounted),
        "{mounted}"
    );
    Ok(())
}

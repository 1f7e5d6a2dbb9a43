//! From the definition of a release to this one: what was stored stays as it was.

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::SUPERVISORS;
use caipe_tests::cluster::{self, DEFINITION};
use caipe_tests::programs::workspace;
use serde_json::{Value, json};

#[test]
fn a_resource_of_a_release_is_the_same_after_the_upgrade() -> Result<()> {
    cluster::alone(async |cluster| {
        let releases =
            std::fs::read_dir(workspace().join("crds/baseline"))?.flatten().map(|entry| entry.path());
        let releases: Vec<_> =
            releases.filter(|path| path.extension().is_some_and(|kind| kind == "yaml")).collect();
        assert!(!releases.is_empty(), "no release to upgrade from");
        for release in releases {
            cluster.kubectl(&["apply", "-f", &release.to_string_lossy()])?;
            let definition = format!("crd/{DEFINITION}");
            cluster.kubectl(&["wait", "--for=condition=Established", &definition, "--timeout=30s"])?;
            let resource = json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor",
                "metadata": {"name": "old"}, "spec": {"model": {"provider": "openai", "name": "gpt-5"},
                    "distributedAgents": ["tide"], "agents": [{"name": "tide", "identity":
                        {"inline": {"description": "d", "systemPrompt": "s"}}}, {"name": "jira"}],
                    "limits": {"recursion": 77}}});
            cluster.apply(&resource)?;
            let before = cluster.get(SUPERVISORS, "old").await?.context("it is not there")?;

            let file = workspace().join("crds/caipe.io_caipesupervisors.yaml");
            cluster.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
            cluster.kubectl(&["wait", "--for=condition=Established", &definition, "--timeout=30s"])?;
            let after = cluster.get(SUPERVISORS, "old").await?.context("it is gone")?;
            same(&before["spec"], &after["spec"], "spec");
            assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
            // The same file again changes nothing.
            assert!(cluster.apply(&resource)?.contains("unchanged"), "{}", release.display());
            cluster.kubectl(&["delete", &definition])?;
        }
        Ok(())
    })
}

/// Whether everything that was there is there; a newer definition may have more defaults.
fn same(before: &Value, after: &Value, path: &str) {
    match before {
        Value::Object(fields) => {
            for (name, field) in fields {
                same(field, &after[name], &format!("{path}.{name}"));
            }
        }
        other => assert_eq!(other, after, "{path}"),
    }
}

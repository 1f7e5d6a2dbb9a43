//! The definition of `CaipeSupervisor`, as the real API server takes it.

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::SUPERVISORS;
use caipe_tests::cluster::{self, DEFINITION};
use caipe_tests::programs::workspace;
use serde_json::{Value, json};

fn file() -> String {
    workspace().join("crds/caipe.io_caipesupervisors.yaml").to_string_lossy().into_owned()
}

/// A small supervisor.
fn small(name: &str) -> Value {
    json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": {"name": name},
        "spec": {"model": {"provider": "openai", "name": "gpt-5"}, "agents": [{"name": "jira"}]}})
}

#[test]
fn it_is_applied_by_the_client_and_by_the_server() -> Result<()> {
    cluster::with(async |cluster| {
        // A warning, as of a schema that costs too much or is not structural, would be printed.
        let output = cluster.kubectl(&["apply", "-f", &file()])?;
        assert_eq!(output, format!("customresourcedefinition.apiextensions.k8s.io/{DEFINITION} unchanged\n"));
        cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file()])?;
        let definition: Value =
            serde_json::from_str(&cluster.kubectl(&["get", "crd", DEFINITION, "-o", "json"])?)?;
        for (condition, wanted) in [
            ("Established", "True"),
            ("NamesAccepted", "True"),
            ("NonStructuralSchema", ""),
            ("KubernetesAPIApprovalPolicyConformant", ""),
        ] {
            let found = cluster::objects::condition(&definition, condition);
            assert!(
                found.starts_with(wanted) && found.is_empty() == wanted.is_empty(),
                "{condition}: {found}"
            );
        }
        Ok(())
    })
}

/// The fields of a schema without a sentence, by their path.
fn untold(schema: &Value, path: &str, found: &mut Vec<String>) {
    let below = schema["properties"].as_object().into_iter().flatten();
    for (name, field) in below {
        let path = format!("{path}.{name}");
        let sentence = field["description"].as_str().unwrap_or_default().trim();
        if !sentence.contains(' ') || !sentence.ends_with('.') {
            found.push(format!("{path}: {sentence}"));
        }
        untold(field, &path, found);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            untold(&schema[inner], &format!("{path}[]"), found);
        }
    }
}

#[test]
fn explain_has_a_sentence_on_every_field() -> Result<()> {
    cluster::with(async |cluster| {
        let text = cluster.kubectl(&["get", "crd", DEFINITION, "-o", "json"])?;
        let definition: Value = serde_json::from_str(&text)?;
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        let mut found = Vec::new();
        for part in ["spec", "status"] {
            untold(&schema[part], part, &mut found);
        }
        // Conditions are Kubernetes' own, with its texts.
        found.retain(|field| !field.starts_with("status.conditions"));
        assert_eq!(found, Vec::<String>::new());
        // What is published is what people read.
        let output = cluster.kubectl(&["explain", "caipe.spec.distributedAgents"])?;
        assert!(output.contains("The names of remote agents"), "{output}");
        Ok(())
    })
}

#[test]
fn a_fresh_resource_has_its_defaults_and_is_not_taken_for_finished() -> Result<()> {
    cluster::with(async |cluster| {
        let mut resource = small("fresh");
        resource["spec"]["limits"] = json!({"recursion": null, "toolTimeoutSeconds": 7});
        cluster.apply(&resource)?;
        let seen = cluster.get(SUPERVISORS, "fresh").await?.context("it is not there")?;
        assert_eq!(seen["spec"]["limits"]["recursion"], 500);
        assert_eq!(seen["spec"]["limits"]["toolTimeoutSeconds"], 7);
        Ok(())
    })
}

#[test]
fn a_list_says_what_matters() -> Result<()> {
    cluster::with(async |cluster| {
        cluster.apply(&small("listed"))?;
        let condition = json!({"type": "Ready", "status": "False", "reason": "Trying", "message": "waits for tide",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"observedGeneration": 1, "epoch": 7, "agentsReady": "5/6", "remoteAgents": 2,
            "conditions": [condition]}});
        // An operator, if there is one, writes another status soon: the test reads the answer of the request.
        cluster.merge(SUPERVISORS, "listed/status", &status).await?;
        let text = cluster.kubectl(&["get", "crd", DEFINITION, "-o", "json"])?;
        let definition: Value = serde_json::from_str(&text)?;
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
        let names: Vec<_> =
            columns.into_iter().flatten().filter_map(|column| column["name"].as_str()).collect();
        assert_eq!(names, ["Ready", "Agents", "Remote", "Epoch", "Age", "Message"]);
        let wide = cluster.kubectl(&["get", "caipe", "listed", "-o", "wide", "--no-headers"])?;
        assert!(wide.starts_with("listed "), "{wide}");
        Ok(())
    })
}

#[test]
fn the_largest_resource_is_taken_and_one_more_is_not() -> Result<()> {
    cluster::with(async |cluster| {
        let server = |at: usize| {
            json!({"name": format!("server-{at}"), "container":
            {"image": "a", "port": 9000 + at, "env": [{"name": "A", "value": "b"}]}})
        };
        let agent = |at: usize| {
            json!({"name": format!("agent-{at}"), "mcp": (0..16).map(server).collect::<Vec<_>>(),
            "identity": {"inline": {"description": "d", "systemPrompt": "s"}}})
        };
        let of = |agents: usize| {
            let mut resource = small("large");
            resource["spec"]["agents"] = (0..agents).map(agent).collect();
            resource
        };
        // All rules of 128 agents with 16 tool servers each stay within the API server's budget.
        cluster.create(SUPERVISORS, &of(128), true).await?;
        let refused = cluster.create(SUPERVISORS, &of(129), true).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("must have at most 128 items")));
        Ok(())
    })
}

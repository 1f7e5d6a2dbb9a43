//! Every pod of the charts meets the Pod Security level "restricted", whatever the values say.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::tools::{files, objects_of, title};

/// Each pod template of the golden files and of the plain manifest, with where it is.
fn pods() -> Result<Vec<(String, Value)>> {
    let golden = files("charts/golden")?.into_iter().map(|name| format!("charts/golden/{name}"));
    let mut pods = Vec::new();
    for file in golden.chain(["deploy/install.yaml".to_owned()]) {
        for object in objects_of(&file)? {
            let spec = match object["kind"].as_str() {
                Some("Deployment") => &object["spec"]["template"]["spec"],
                Some("Pod") => &object["spec"],
                _ => continue,
            };
            pods.push((format!("{file}: {}", title(&object)), spec.clone()));
        }
    }
    ensure!(pods.len() > files("charts/golden")?.len(), "there are pods without `helm test`");
    Ok(pods)
}

#[test]
fn they_are_restricted() -> Result<()> {
    for (place, pod) in pods()? {
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{place}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{place}");
        for open in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod.get(open).is_none(), "{place}: {open}");
        }
        for container in pod["containers"].as_array().into_iter().flatten() {
            let security = &container["securityContext"];
            let expected = json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            });
            assert_eq!(security, &expected, "{place}");
        }
    }
    Ok(())
}

#[test]
fn they_ask_for_what_they_need_and_bound_no_cpu() -> Result<()> {
    for (place, pod) in pods()?.into_iter().filter(|(place, _)| !place.contains("least.yaml")) {
        let resources = &pod["containers"][0]["resources"];
        for request in ["cpu", "memory"] {
            assert!(resources["requests"][request].is_string(), "{place}: {request}");
        }
        assert!(resources["limits"]["memory"].is_string(), "{place}");
        assert!(resources["limits"].get("cpu").is_none(), "{place}");
    }
    Ok(())
}

#[test]
fn no_pod_has_a_token_that_does_not_need_one() -> Result<()> {
    for (place, pod) in pods()? {
        let operator = pod["containers"][0]["name"] == "operator";
        assert_eq!(pod["automountServiceAccountToken"], operator, "{place}");
        assert_eq!(pod["enableServiceLinks"], false, "{place}");
    }
    Ok(())
}

#[test]
fn selectors_select_the_operator_and_nothing_else() -> Result<()> {
    for name in files("charts/golden")? {
        let objects = objects_of(&format!("charts/golden/{name}"))?;
        for object in &objects {
            let selector = match object["kind"].as_str() {
                Some("Deployment" | "PodDisruptionBudget") => &object["spec"]["selector"]["matchLabels"],
                Some("NetworkPolicy") => &object["spec"]["podSelector"]["matchLabels"],
                Some("Service") => &object["spec"]["selector"],
                _ => continue,
            };
            for pod in &objects {
                let (labels, fits) = match pod["kind"].as_str() {
                    Some("Deployment") => (&pod["spec"]["template"]["metadata"]["labels"], true),
                    Some("Pod") => (&pod["metadata"]["labels"], false),
                    _ => continue,
                };
                let selected =
                    selector.as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value);
                assert_eq!(selected, fits, "{name}: {} and {}", title(object), title(pod));
            }
        }
    }
    Ok(())
}

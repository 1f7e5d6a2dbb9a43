//! The operator may do what it needs, each for a reason, and no more.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::tools::{comment, files, objects_of, of_kind, text, title};

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Each right of a role as `group/resource verb`.
fn rights(role: &Value) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                rights.extend(
                    texts(&rule["verbs"]).into_iter().map(|verb| format!("{group}/{resource} {verb}")),
                );
            }
        }
    }
    rights
}

fn operators_role(file: &str, kind: &str) -> Result<Vec<Value>> {
    let objects = objects_of(file)?;
    let roles = of_kind(&objects, kind).into_iter();
    Ok(roles.filter(|role| role["metadata"]["name"] == "caipe-operator").cloned().collect())
}

#[test]
fn nothing_is_allowed_for_everything() -> Result<()> {
    for name in files("charts/golden")? {
        for object in objects_of(&format!("charts/golden/{name}"))? {
            for right in rights(&object) {
                let wide =
                    right.contains('*') || right.starts_with("rbac.") || right.starts_with("authorization.");
                let taking = ["escalate", "bind", "impersonate"].iter().any(|verb| right.ends_with(verb));
                assert!(!wide && !taking, "{name}: {}: {right}", title(&object));
            }
        }
    }
    Ok(())
}

#[test]
fn secrets_are_made_but_never_changed_and_volumes_never_deleted() -> Result<()> {
    let role = operators_role("charts/golden/default.yaml", "ClusterRole")?;
    let rights = rights(role.first().context("no role")?);
    let of = |resource: &str| -> BTreeSet<&str> {
        let prefix = format!("/{resource} ");
        rights.iter().filter_map(|right| right.strip_prefix(&prefix)).collect()
    };
    assert_eq!(of("secrets"), BTreeSet::from(["create", "get", "list", "watch"]));
    assert!(!of("persistentvolumeclaims").contains("delete"));
    assert!(!rights.contains("caipe.io/caipesupervisors patch"));
    assert!(rights.contains("events.k8s.io/events patch"), "a repeated event is a patch");
    Ok(())
}

#[test]
fn with_namespaces_there_is_no_right_outside_of_them() -> Result<()> {
    let objects = objects_of("charts/golden/namespaced.yaml")?;
    assert!(
        of_kind(&objects, "ClusterRole").is_empty() && of_kind(&objects, "ClusterRoleBinding").is_empty()
    );
    let wide = operators_role("charts/golden/default.yaml", "ClusterRole")?;
    let narrow = operators_role("charts/golden/namespaced.yaml", "Role")?;
    let namespaces: Vec<&Value> = narrow.iter().map(|role| &role["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, ["team-a", "team-b"]);
    for role in &narrow {
        assert_eq!(role["rules"], wide.first().context("no role")?["rules"]);
    }
    let bindings = of_kind(&objects, "RoleBinding");
    assert_eq!(bindings.len(), 3);
    for binding in bindings {
        assert_eq!(binding["subjects"][0]["namespace"], "caipe-system", "{}", title(binding));
    }
    Ok(())
}

#[test]
fn the_lease_is_one_of_the_own_namespace() -> Result<()> {
    for name in files("charts/golden")? {
        let case = text(&format!("charts/matrix/{name}"))?;
        let namespace = comment(&case, "namespace").unwrap_or("caipe-system");
        for object in objects_of(&format!("charts/golden/{name}"))? {
            let leases: Vec<String> =
                rights(&object).into_iter().filter(|right| right.contains("leases")).collect();
            if leases.is_empty() {
                continue;
            }
            assert_eq!(
                (&object["kind"], &object["metadata"]["namespace"]),
                (&"Role".into(), &namespace.into())
            );
            for rule in object["rules"].as_array().into_iter().flatten() {
                let making = rule["verbs"] == serde_json::json!(["create"]);
                assert!(making || rule["resourceNames"][0] == "caipe-operator", "{name}: {rule}");
            }
        }
    }
    Ok(())
}

#[test]
fn every_rule_has_its_reason() -> Result<()> {
    let rules = text("charts/caipe-operator/templates/_rules.tpl")?;
    let lines: Vec<&str> = rules.lines().collect();
    let mut seen = 0;
    for pair in lines.windows(2).filter(|pair| pair[1].starts_with("- apiGroups")) {
        assert!(pair[0].starts_with("# "), "no reason stands over {}", pair[1]);
        seen += 1;
    }
    ensure!(seen > 10, "only {seen} rules were found");
    Ok(())
}

#[test]
fn the_roles_of_people_cover_the_resource() -> Result<()> {
    let objects = objects_of("charts/golden/default.yaml")?;
    for (role, writes) in [("admin", true), ("edit", true), ("view", false)] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{role}");
        let found = of_kind(&objects, "ClusterRole");
        let found = found.iter().find(|object| object["metadata"]["labels"][&label] == "true");
        let rights = rights(found.with_context(|| format!("nothing is aggregated to {role}"))?);
        assert!(rights.contains("caipe.io/caipesupervisors get"), "{role}");
        assert_eq!(rights.contains("caipe.io/caipesupervisors patch"), writes, "{role}");
        assert_eq!(rights.contains("caipe.io/caipesupervisors/scale patch"), writes, "{role}");
        assert!(!rights.iter().any(|right| right.contains("/status") && !right.ends_with(" get")), "{role}");
    }
    Ok(())
}

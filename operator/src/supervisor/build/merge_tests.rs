use k8s_openapi::api::core::v1::PodTemplateSpec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn base() -> PodTemplateSpec {
    let value = json!({
        "metadata": { "labels": { "a": "1" } },
        "spec": {
            "containers": [{
                "name": "main",
                "image": "one",
                "args": ["x", "y"],
                "env": [{ "name": "A", "value": "1" }, { "name": "B", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
                "ports": [{ "containerPort": 8000, "name": "a2a" }],
                "volumeMounts": [{ "mountPath": "/data", "name": "data" }],
                "livenessProbe": { "httpGet": { "path": "/health", "port": "a2a" }, "periodSeconds": 10 },
            }],
            "tolerations": [{ "key": "old" }],
            "topologySpreadConstraints": [{ "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }, { "name": "tmp", "emptyDir": {} }],
            "securityContext": { "runAsUser": 65532, "runAsNonRoot": true },
        }
    });
    serde_json::from_value(value).unwrap()
}

fn patched(patch: Value) -> Value {
    let merged = laid_over(&base(), &serde_json::from_value(patch).unwrap()).unwrap();
    serde_json::to_value(merged).unwrap()
}

/// What the patch makes of the place at the JSON pointer.
fn at(patch: Value, pointer: &str) -> Value {
    patched(patch).pointer(pointer).cloned().unwrap_or(Value::Null)
}

/// Patches, places, and what is there then.
fn check<const N: usize>(cases: [(Value, &str, Value); N]) {
    for (patch, pointer, expected) in cases {
        assert_eq!(at(patch.clone(), pointer), expected, "{patch}");
    }
}

#[test]
fn maps_are_merged_and_null_takes_away() {
    let spec = |value: Value| json!({ "spec": value });
    let security = "/spec/securityContext";
    let cases = [
        (
            spec(json!({ "securityContext": { "runAsUser": 1000 } })),
            json!({ "runAsUser": 1000, "runAsNonRoot": true }),
        ),
        (spec(json!({ "securityContext": { "runAsUser": null } })), json!({ "runAsNonRoot": true })),
        (spec(json!({ "securityContext": { "$patch": "replace", "fsGroup": 1 } })), json!({ "fsGroup": 1 })),
        (spec(json!({ "securityContext": { "$patch": "delete" } })), Value::Null),
        (spec(json!({ "securityContext": null })), Value::Null),
    ];
    for (patch, expected) in cases {
        assert_eq!(at(patch.clone(), security), expected, "{patch}");
    }
    let labels = at(json!({ "metadata": { "labels": { "b": "2" } } }), "/metadata/labels");
    assert_eq!(labels, json!({ "a": "1", "b": "2" }));
    let added = at(spec(json!({ "nodeSelector": { "disk": "ssd", "gone": null } })), "/spec/nodeSelector");
    assert_eq!(added, json!({ "disk": "ssd" }));
}

/// A patch of the container that is there.
fn container(value: &Value) -> Value {
    let mut patch = json!({ "name": "main" });
    patch.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    json!({ "spec": { "containers": [patch] } })
}

#[test]
fn lists_are_merged_by_the_key_of_their_entries() {
    let cases = [
        (container(&json!({ "image": "two" })), "/spec/containers/0/image", json!("two")),
        (container(&json!({ "args": ["z"] })), "/spec/containers/0/args", json!(["z"])),
        (
            container(&json!({ "env": [{ "name": "C", "value": "3" }] })),
            "/spec/containers/0/env/2/name",
            json!("C"),
        ),
        (
            container(&json!({ "env": [{ "name": "A", "value": "9" }] })),
            "/spec/containers/0/env/0",
            json!({ "name": "A", "value": "9" }),
        ),
        (
            container(&json!({ "env": [{ "name": "B", "value": "9" }] })),
            "/spec/containers/0/env/1",
            json!({ "name": "B", "value": "9" }),
        ),
        (
            container(&json!({ "env": [{ "name": "A", "$patch": "delete" }] })),
            "/spec/containers/0/env/0/name",
            json!("B"),
        ),
        (
            container(&json!({ "env": [{ "$patch": "replace" }, { "name": "C", "value": "3" }] })),
            "/spec/containers/0/env",
            json!([{ "name": "C", "value": "3" }]),
        ),
        (
            container(&json!({ "ports": [{ "containerPort": 8000, "hostPort": 1 }] })),
            "/spec/containers/0/ports/0/hostPort",
            json!(1),
        ),
        (
            container(&json!({ "ports": [{ "containerPort": 9000 }] })),
            "/spec/containers/0/ports/1/containerPort",
            json!(9000),
        ),
        (
            container(
                &json!({ "volumeMounts": [{ "mountPath": "/data", "name": "data", "readOnly": true }] }),
            ),
            "/spec/containers/0/volumeMounts/0/readOnly",
            json!(true),
        ),
    ];
    check(cases);
}

#[test]
fn one_way_of_a_probe_takes_the_place_of_another() {
    let cases = [
        (
            container(&json!({ "livenessProbe": { "tcpSocket": { "port": 1 } } })),
            "/spec/containers/0/livenessProbe",
            json!({ "tcpSocket": { "port": 1 }, "periodSeconds": 10 }),
        ),
        (
            container(&json!({ "livenessProbe": { "periodSeconds": 3 } })),
            "/spec/containers/0/livenessProbe/httpGet/path",
            json!("/health"),
        ),
    ];
    check(cases);
}

#[test]
fn lists_of_the_pod_are_merged_where_kubernetes_does() {
    let cases = [
        (
            json!({ "spec": { "containers": [{ "name": "more", "image": "i" }] } }),
            "/spec/containers/1/name",
            json!("more"),
        ),
        (
            json!({ "spec": { "tolerations": [{ "key": "new" }] } }),
            "/spec/tolerations",
            json!([{ "key": "new" }]),
        ),
        (
            json!({ "spec": { "topologySpreadConstraints": [{ "topologyKey": "zone", "maxSkew": 2 }] } }),
            "/spec/topologySpreadConstraints/0/maxSkew",
            json!(2),
        ),
        (
            json!({ "spec": { "volumes": [{ "name": "data", "emptyDir": {} }] } }),
            "/spec/volumes/0",
            json!({ "name": "data", "emptyDir": {} }),
        ),
        (
            json!({ "spec": { "volumes": [{ "name": "tmp", "emptyDir": { "sizeLimit": 1 } }] } }),
            "/spec/volumes/1/emptyDir/sizeLimit",
            json!("1"),
        ),
        (
            json!({ "spec": { "volumes": [{ "name": "data", "$patch": "delete" }] } }),
            "/spec/volumes/0/name",
            json!("tmp"),
        ),
        (
            json!({ "spec": { "volumes": [{ "name": "gone", "$patch": "delete" }] } }),
            "/spec/volumes/2",
            Value::Null,
        ),
    ];
    check(cases);
}

#[test]
fn what_no_pod_template_has_is_named() {
    let cases = [
        (json!({ "spec": { "tolerationz": [] } }), ".spec.tolerationz"),
        (
            json!({ "spec": { "containers": [{ "name": "main", "imagePullpolicy": "Always" }] } }),
            ".spec.containers[main].imagePullpolicy",
        ),
        (json!({ "tolerations": [] }), ".tolerations"),
        (json!({ "spec": { "$setElementOrder/volumes": [] } }), ".spec.$setElementOrder/volumes"),
    ];
    for (patch, expected) in cases {
        let misfit = laid_over(&base(), &serde_json::from_value(patch).unwrap()).unwrap_err();
        assert_eq!(misfit.at, expected, "{misfit:?}");
    }
    let wrong = json!({ "spec": { "hostNetwork": "yes" } });
    let misfit = laid_over(&base(), &serde_json::from_value(wrong).unwrap()).unwrap_err();
    assert!(misfit.reason.contains("invalid type"), "{misfit:?}");
}

#[test]
fn resources_may_be_numbers_as_in_yaml() {
    let patch =
        json!({ "spec": { "containers": [{ "name": "main", "resources": { "limits": { "cpu": 1 } } }] } });
    assert_eq!(at(patch, "/spec/containers/0/resources/limits/cpu"), json!("1"));
}

/// Patches that touch every kind of place.
fn patches() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![Just(Value::Null), "[a-c]".prop_map(Value::from)];
    let env = prop::collection::vec(("[A-D]", scalar.clone()), 0..4).prop_map(|entries| {
        let mut seen = std::collections::BTreeSet::new();
        let entries = entries.into_iter().filter(|(name, _)| seen.insert(name.clone()));
        entries
            .map(|(name, value)| match value {
                Value::Null => json!({ "name": name, "$patch": "delete" }),
                value => json!({ "name": name, "value": value }),
            })
            .collect::<Vec<_>>()
    });
    let volumes = prop::sample::subsequence(vec!["data", "tmp", "new"], 0..=3).prop_map(|names| {
        names.into_iter().map(|name| json!({ "name": name, "emptyDir": {} })).collect::<Vec<_>>()
    });
    let labels = prop::collection::btree_map("[a-c]", scalar.clone(), 0..3);
    (env, volumes, labels, scalar, any::<bool>()).prop_map(|(env, volumes, labels, image, replace)| {
        let mut env = env;
        if replace {
            env.insert(0, json!({ "$patch": "replace" }));
        }
        json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "main", "image": image, "env": env }], "volumes": volumes },
        })
    })
}

proptest! {
    #[test]
    fn nothing_laid_over_changes_nothing_and_twice_is_once(patch in patches()) {
        prop_assert_eq!(laid_over(&base(), &PodTemplate::default()).unwrap(), base());
        let patch: PodTemplate = serde_json::from_value(patch).unwrap();
        let once = laid_over(&base(), &patch).unwrap();
        prop_assert_eq!(laid_over(&once, &patch).unwrap(), once);
    }
}

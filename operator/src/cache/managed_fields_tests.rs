use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::json;

use super::*;

const OWNER_UID: &str = "0b0e9f6e-6f2f-4b51-9a43-6a9bfa5f3c11";

fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: &Value) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        operation: Some(operation.to_owned()),
        subresource: subresource.map(str::to_owned),
        fields_v1: Some(FieldsV1(fields.clone())),
        ..ManagedFieldsEntry::default()
    }
}

fn of(entries: Vec<ManagedFieldsEntry>) -> ManagedFields {
    let meta = ObjectMeta { managed_fields: Some(entries), ..ObjectMeta::default() };
    ManagedFields::new(&meta, Some(OWNER_UID))
}

/// What the operator applied, and nobody else did anything.
pub(in crate::cache) fn managed_fields(fields: &Value) -> ManagedFields {
    of(vec![entry(labels::MANAGER, "Apply", None, fields)])
}

/// A Deployment as it is applied.
fn built() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "p", "namespace": "n", "annotations": { "caipe.io/applied": "h" },
            "ownerReferences": [{ "kind": "CaipeSupervisor", "name": "p", "uid": OWNER_UID, "controller": true }],
        },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "spec": {
                "containers": [
                    { "name": "main", "image": "i", "args": ["serve"], "ports": [{ "containerPort": 8000 }] },
                    { "name": "other", "image": "o" },
                ],
                "volumes": [{ "name": "tmp", "emptyDir": {} }],
            } },
        },
    })
}

/// Its fields, as an API server of Kubernetes 1.36 has them.
fn fields() -> Value {
    let main = json!({
        ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
        "f:ports": { "k:{\"containerPort\":8000,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } },
    });
    let uid = format!("k:{{\"uid\":\"{OWNER_UID}\"}}");
    json!({
        "f:metadata": { "f:annotations": { "f:caipe.io/applied": {} }, "f:ownerReferences": { uid: {} } },
        "f:spec": {
            "f:selector": {},
            "f:template": { "f:spec": {
                "f:containers": {
                    "k:{\"name\":\"main\"}": main,
                    "k:{\"name\":\"other\"}": { ".": {}, "f:name": {}, "f:image": {} },
                },
                "f:volumes": { "k:{\"name\":\"tmp\"}": { ".": {}, "f:name": {}, "f:emptyDir": {} } },
            } },
        },
    })
}

const CONTAINER: &str = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}";

#[test]
fn an_object_that_nobody_touched_has_all_fields_that_were_applied() {
    assert!(managed_fields(&fields()).are_those_of(&built(), OWNER_UID));
    let with_status = entry(labels::MANAGER, "Apply", Some("status"), &json!({ "f:status": {} }));
    let others = entry("kubectl", "Update", None, &json!({ "f:metadata": { "f:labels": { "f:x": {} } } }));
    let among = of(vec![others, entry(labels::MANAGER, "Apply", None, &fields()), with_status]);
    assert!(among.are_those_of(&built(), OWNER_UID));
}

#[test]
fn a_field_that_somebody_took_or_that_is_left_over_is_missed() {
    let cases: [(&str, &str, &str, Option<Value>); 10] = [
        ("the hash of what was applied", "/f:metadata/f:annotations", "f:caipe.io/applied", None),
        ("the owner", "/f:metadata", "f:ownerReferences", None),
        ("an image", CONTAINER, "f:image", None),
        ("a list that is one field", CONTAINER, "f:args", None),
        ("a port", CONTAINER, "f:ports", None),
        (
            "the first of two containers",
            "/f:spec/f:template/f:spec/f:containers",
            "k:{\"name\":\"main\"}",
            None,
        ),
        ("the selector", "/f:spec", "f:selector", None),
        ("a field that is no longer built", CONTAINER, "f:command", Some(json!({}))),
        (
            "a container that is no longer built",
            "/f:spec/f:template/f:spec/f:containers",
            "k:{\"name\":\"old\"}",
            Some(json!({ ".": {}, "f:name": {} })),
        ),
        ("another part of the object", "", "f:data", Some(json!({ "f:x": {} }))),
    ];
    for (case, place, step, added) in cases {
        let mut fields = fields();
        let map = fields.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        let before = match added {
            Some(added) => map.insert(step.to_owned(), added),
            None => map.remove(step),
        };
        assert_eq!(
            before.is_some(),
            !matches!(step, "f:command" | "f:data" | "k:{\"name\":\"old\"}"),
            "{case}"
        );
        assert!(!managed_fields(&fields).are_those_of(&built(), OWNER_UID), "{case}");
    }
}

#[test]
fn what_was_not_applied_by_the_operator_does_not_count() {
    let entry = |manager, operation, subresource| of(vec![entry(manager, operation, subresource, &fields())]);
    for other in [
        entry("somebody", "Apply", None),
        entry(labels::MANAGER, "Update", None),
        entry(labels::MANAGER, "Apply", Some("status")),
        of(vec![]),
    ] {
        assert_eq!(other, ManagedFields::default());
        assert!(!other.are_those_of(&built(), OWNER_UID));
    }
    assert!(!managed_fields(&fields()).are_those_of(&built(), "another-owner"));
}

#[test]
fn items_match_with_defaults_of_the_api_server() {
    let list = |items: Value| json!({ "metadata": {}, "spec": { "list": items } });
    let fields = |list: Value| managed_fields(&json!({ "f:metadata": {}, "f:spec": { "f:list": list } }));
    let cases = [
        (json!({ "v:\"a\"": {}, "v:\"b\"": {} }), json!(["b", "a"]), true),
        (json!({ "v:\"a\"": {} }), json!(["a", "b"]), false),
        (json!({ "v:\"a\"": {}, "v:\"b\"": {} }), json!(["a"]), false),
        (json!({ "i:0": {} }), json!(["a"]), false),
        (json!({ "k:{\"port\":53,\"protocol\":\"UDP\"}": { "f:port": {} } }), json!([{ "port": 53 }]), true),
        (json!({ "k:{\"port\":53}": { "f:port": {} } }), json!([{ "port": 54 }]), false),
        (json!({}), json!([{ "port": 53 }]), true),
    ];
    for (steps, items, expected) in cases {
        let is = fields(steps.clone()).are_those_of(&list(items.clone()), OWNER_UID);
        assert_eq!(is, expected, "{steps} {items}");
    }
}

#[test]
fn objects_that_are_made_alike_share_the_text_of_their_fields() {
    let one = |uid: &str| {
        let fields =
            json!({ "f:metadata": { "f:ownerReferences": { format!("k:{{\"uid\":\"{uid}\"}}"): {} } } });
        let entries = vec![entry(labels::MANAGER, "Apply", None, &fields)];
        ManagedFields::new(&ObjectMeta { managed_fields: Some(entries), ..ObjectMeta::default() }, Some(uid))
    };
    assert!(Arc::ptr_eq(&one("first").0, &one("second").0));
}

use serde_json::json;

use super::*;
use crate::crd;

/// What is said when the schema of `spec` changes so.
fn found(old: Value, new: Value) -> Vec<String> {
    let crd = |spec: Value| -> CustomResourceDefinition {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
        serde_json::from_value(json!({
            "metadata": {},
            "spec": { "group": "g", "scope": "Namespaced", "names": { "kind": "K", "plural": "ks" }, "versions": [version] },
        }))
        .unwrap()
    };
    let faults = incompatibilities(&crd(old), &crd(new));
    faults.into_iter().map(|fault| fault.to_string()).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_removed_or_narrower_field_is_reported_with_its_path() {
    let object = |fields: Value| json!({ "type": "object", "properties": fields });
    let of = |keyword: &str, value: Value| json!({ "type": "string", keyword: value });
    let text = || json!({ "type": "string" });
    let cases = [
        (object(json!({ "a": text() })), object(json!({})), "spec.a: is removed"),
        (text(), json!({ "type": "integer" }), r#"spec: has another type: "integer" instead of "string""#),
        (of("enum", json!(["a", "b"])), of("enum", json!(["a"])), r#"spec: no longer accepts "b""#),
        (text(), of("enum", json!(["a"])), "spec: accepts only listed values, and accepted any before"),
        (
            of("maxLength", json!(10)),
            of("maxLength", json!(9)),
            "spec: has a narrower maxLength: 9 instead of 10",
        ),
        (text(), of("maxLength", json!(9)), "spec: has a narrower maxLength: 9 instead of none"),
        (
            of("minLength", json!(1)),
            of("minLength", json!(2)),
            "spec: has a narrower minLength: 2 instead of 1",
        ),
        (text(), of("pattern", json!("^a")), r#"spec: has another pattern: "^a" instead of nothing"#),
        (of("default", json!("a")), text(), r#"spec: has another default: nothing instead of "a""#),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "items": text() }),
            json!({ "type": "array", "items": text() }),
            r#"spec: has another list type: nothing instead of "map""#,
        ),
        (
            json!({ "type": "array", "items": of("maxLength", json!(2)) }),
            json!({ "type": "array", "items": of("maxLength", json!(1)) }),
            "spec[]: has a narrower maxLength: 1 instead of 2",
        ),
        (
            json!({ "type": "object", "additionalProperties": text() }),
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            r#"spec.*: has another type: "integer" instead of "string""#,
        ),
        (
            object(json!({ "a": text() })),
            json!({ "type": "object", "properties": { "a": text() }, "required": ["a"] }),
            "spec.a: is required now",
        ),
        (
            text(),
            of("x-kubernetes-validations", json!([{ "rule": "true", "message": "m" }])),
            "spec: has a new rule: m",
        ),
        (
            text(),
            of("x-kubernetes-validations", json!([{ "rule": "self != 'a'" }])),
            "spec: has a new rule: self != 'a'",
        ),
        (
            of("x-kubernetes-validations", json!([{ "rule": "self.size() < 9", "message": "m" }])),
            of("x-kubernetes-validations", json!([{ "rule": "self.size() < 8", "message": "m" }])),
            "spec: has a rule with another expression: m",
        ),
        (
            json!({ "type": "object", "additionalProperties": text() }),
            json!({ "type": "object" }),
            "spec.*: is removed",
        ),
        (json!({ "type": "string", "nullable": true }), text(), "spec: no longer accepts null"),
        (
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "type": "object" }),
            "spec: has another openness to unknown fields: nothing instead of true",
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(found(old.clone(), new.clone()), [expected], "{old} to {new}");
        assert_eq!(found(old.clone(), old), [""; 0]);
    }
}

#[test]
fn what_is_wider_is_no_fault() {
    let cases = [
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
        ),
        (json!({ "type": "string", "enum": ["a"] }), json!({ "type": "string", "enum": ["a", "b"] })),
        (json!({ "type": "string", "enum": ["a"] }), json!({ "type": "string" })),
        (json!({ "type": "string", "maxLength": 1 }), json!({ "type": "string", "maxLength": 2 })),
        (json!({ "type": "string", "pattern": "a" }), json!({ "type": "string" })),
        (
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "object", "properties": { "a": { "type": "string", "default": "" } }, "required": ["a"] }),
        ),
        (
            json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "a", "message": "m" }] }),
            json!({ "type": "string" }),
        ),
        (json!({ "type": "string" }), json!({ "type": "string", "nullable": true })),
    ];
    for (old, new) in cases {
        assert_eq!(found(old.clone(), new.clone()), [""; 0], "{old} to {new}");
    }
}

#[test]
fn a_version_and_its_subresources_stay() {
    let old = crd::crd();
    let mut new = old.clone();
    new.spec.versions[0].subresources = None;
    let gone = ["scale", "status"].map(|part| format!("v1alpha1: no longer has the subresource `{part}`"));
    assert_eq!(texts(&old, &new), gone);
    new.spec.versions[0].served = false;
    assert_eq!(texts(&old, &new), ["v1alpha1: is no longer served"]);
    new.spec.scope = "Cluster".to_owned();
    assert_eq!(texts(&old, &new)[0], "spec.scope: has changed");
    assert_eq!(texts(&old, &old), [""; 0]);
}

fn texts(old: &CustomResourceDefinition, new: &CustomResourceDefinition) -> Vec<String> {
    incompatibilities(old, new).into_iter().map(|fault| fault.to_string()).collect()
}

/// A change that makes a released definition narrower: its place, the change, the fault.
type Narrower = (&'static str, fn(&mut Value), &'static str);

const NARROWER: [Narrower; 8] = [
    ("", |spec| remove(spec, "rag"), "spec.rag: is removed"),
    ("/properties/agents/items", |agent| remove(agent, "external"), "spec.agents[].external: is removed"),
    (
        "/properties/replicas",
        |replicas| replicas["type"] = json!("string"),
        r#"spec.replicas: has another type: "string" instead of "integer""#,
    ),
    (
        "/properties/agents/items",
        |agent| agent["required"] = json!(["name", "image"]),
        "spec.agents[].image: is required now",
    ),
    (
        "/properties/model/properties/provider/enum",
        |providers| drop(providers.as_array_mut().unwrap().remove(0)),
        "spec.model.provider: no longer accepts ",
    ),
    (
        "/properties/agents",
        |agents| agents["maxItems"] = json!(16),
        "spec.agents: has a narrower maxItems: 16 instead of 128",
    ),
    (
        "/properties/agents/items/x-kubernetes-validations/0",
        |rule| rule["rule"] = json!("false"),
        "spec.agents[]: has a rule with another expression: ",
    ),
    (
        "/properties/agents",
        |agents| agents["x-kubernetes-list-type"] = json!("atomic"),
        r#"spec.agents: has another list type: "atomic" instead of "map""#,
    ),
];

fn remove(schema: &mut Value, field: &str) {
    assert!(schema["properties"].as_object_mut().unwrap().remove(field).is_some(), "{field}");
}

#[test]
fn one_change_that_is_narrower_than_a_release_is_one_fault() {
    for released in released() {
        for (place, change, expected) in NARROWER {
            let mut new = serde_json::to_value(&released).unwrap();
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            change(new.pointer_mut(&format!("{spec}{place}")).unwrap_or_else(|| panic!("no {place}")));
            let new = serde_json::from_value(new).unwrap();
            let faults = texts(&released, &new);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with(expected), "{} is not {expected}", faults[0]);
        }
    }
}

/// `baseline/` has the definition of each release, and before the first one that of a commit.
fn released() -> Vec<CustomResourceDefinition> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline");
    let read =
        |path: &std::path::Path| serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    let found: Vec<_> = files.map(|file| read(&file.unwrap().path())).collect();
    assert!(!found.is_empty(), "no release in {folder}");
    found
}

#[test]
fn a_wider_pattern_takes_all_that_the_one_before_it_took() {
    for (old, new) in WIDER {
        let (old, new) = (regex_lite::Regex::new(old).unwrap(), regex_lite::Regex::new(new).unwrap());
        // Every text of up to three characters of each kind.
        let kinds = ["", "a", "Z", "0", "_", "-", ".", " "];
        for text in
            kinds.iter().flat_map(|a| kinds.iter().flat_map(move |b| kinds.map(|c| format!("{a}{b}{c}"))))
        {
            assert!(new.is_match(&text) || !old.is_match(&text), "{text:?}");
        }
    }
}

/// A rule that is new is faults, unless it is known to refuse only what never ran.
#[test]
fn what_never_ran_may_be_refused() {
    let of = |message: &str| json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "true", "message": message }] });
    for message in NEVER_RAN {
        assert_eq!(found(json!({ "type": "string" }), of(message)), [""; 0], "{message}");
        assert!(rules::ALL.contains(&message), "{message}");
    }
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    assert_eq!(found(json!({ "type": "string" }), pattern(NEVER_RAN_PATTERN)), [""; 0]);
    assert_eq!(found(pattern("^a"), pattern(NEVER_RAN_PATTERN)).len(), 1);
}

#[test]
fn the_definition_takes_what_every_release_took() {
    for released in released() {
        assert_eq!(texts(&released, &crd::crd()), [""; 0]);
    }
}

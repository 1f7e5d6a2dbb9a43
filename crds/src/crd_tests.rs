use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::resource::rules;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/caipe.io_caipesupervisors.yaml");

fn as_json() -> Value {
    serde_json::to_value(crd()).unwrap()
}

/// Calls `see` with each schema below, and its path.
fn walk(value: &Value, path: &str, see: &mut dyn FnMut(&Value, &str)) {
    see(value, path);
    for (name, below) in value["properties"].as_object().into_iter().flatten() {
        walk(below, &format!("{path}.{name}"), see);
    }
    for key in ["items", "additionalProperties"] {
        if value[key].is_object() {
            walk(&value[key], &format!("{path}[]"), see);
        }
    }
}

#[test]
fn the_generated_file_is_up_to_date() {
    let file = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(file == yaml().unwrap(), "run `caipe-operator crd > crds/caipe.io_caipesupervisors.yaml`");
}

#[test]
fn the_file_is_small_enough_for_client_side_apply_and_says_the_same() {
    let yaml = yaml().unwrap();
    // kubectl keeps a copy as JSON in an annotation; all annotations together may have 256 KiB. Half of that is left for others.
    let json = as_json().to_string().len();
    assert!(json < 128 * 1024 && yaml.len() < 200_000, "{json} bytes as JSON, {} as YAML", yaml.len());
    let back: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(back, as_json());
}

#[test]
fn names_and_columns() {
    let crd = as_json();
    assert_eq!(crd["metadata"]["name"], "caipesupervisors.caipe.io");
    assert_eq!(crd["spec"]["names"]["shortNames"][0], "caipe");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    let columns: Vec<_> = version["additionalPrinterColumns"].as_array().unwrap().iter().collect();
    let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Ready", "Agents", "Remote", "Epoch", "Age", "Message"]);
    assert_eq!(columns[5]["priority"], 1);
    let root = &version["schema"]["openAPIV3Schema"];
    assert_eq!(root["properties"]["status"]["default"]["observedGeneration"], -1);
    let agents = &root["properties"]["spec"]["properties"]["agents"];
    assert_eq!(
        (&agents["x-kubernetes-list-type"], &agents["x-kubernetes-list-map-keys"][0]),
        (&"map".into(), &"name".into())
    );
}

#[test]
fn defaults_stand_in_the_schema() {
    let crd = as_json();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(spec["replicas"]["default"], 1, "the subresource `scale` needs a value");
    assert_eq!(spec["limits"]["properties"]["recursion"]["default"], 500);
    assert_eq!(spec["prompts"]["properties"]["answerMode"]["default"], "Structured");
}

/// Argo CD compares lists as a whole: a default that is added to an entry would show as a difference from Git.
#[test]
fn no_default_stands_within_a_list() {
    walk(&as_json()["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
        assert!(!path.contains("[]") || schema.get("default").is_none(), "{path}");
    });
}

/// The API server refuses rules whose cost it cannot bound, and `schema::check` knows no other keywords.
#[test]
fn every_text_list_and_number_of_the_spec_is_bounded_and_structural() {
    let crd = as_json();
    let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let known: BTreeSet<&str> = "type title description properties items additionalProperties required default enum minLength maxLength pattern minimum maximum minItems maxItems maxProperties format x-kubernetes-validations x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-preserve-unknown-fields x-kubernetes-int-or-string anyOf".split(' ').collect();
    walk(root, "", &mut |schema, path| {
        for (keyword, _) in schema.as_object().unwrap() {
            assert!(known.contains(keyword.as_str()), "{path}: {keyword}");
        }
        let foreign =
            path.contains("resources.") || path.contains("resources[") || path.starts_with(".status");
        let open = schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["x-kubernetes-int-or-string"] == true;
        assert!(open || schema["type"].is_string(), "{path}: no type");
        if !path.starts_with(".spec.") || foreign {
            return;
        }
        match schema["type"].as_str() {
            Some("string") => {
                let map_value = path.ends_with("annotations[]");
                assert!(
                    map_value || schema["maxLength"].is_number() || schema["enum"].is_array(),
                    "{path}: length"
                );
            }
            Some("array") => assert!(schema["maxItems"].is_number(), "{path}: items"),
            Some("integer" | "number") => assert!(schema["maximum"].is_number(), "{path}: maximum"),
            _ => {}
        }
    });
}

/// For `kubectl explain`.
#[test]
fn every_field_has_a_sentence() {
    let crd = as_json();
    walk(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let text = field["description"].as_str().unwrap_or_default();
            let sentence = text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || c == '`');
            assert!(sentence && text.len() > 7, "{path}.{name}: {text:?}");
        }
    });
}

/// An enum that may be absent would otherwise be described by its type.
#[test]
fn placements_are_described_by_their_fields() {
    let crd = as_json();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let agent = &spec["agents"]["items"]["properties"]["placement"];
    for (field, start) in [(&spec["defaultPlacement"], "Where agents run"), (agent, "Where the agent runs")] {
        assert!(field["description"].as_str().is_some_and(|text| text.starts_with(start)), "{field}");
        assert_eq!(field["enum"], serde_json::json!(["InProcess", "Remote"]));
    }
}

#[test]
fn every_pattern_can_be_read() {
    walk(&as_json()["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
        if let Some(pattern) = schema["pattern"].as_str().filter(|_| path.starts_with(".spec")) {
            assert!(regex_lite::Regex::new(pattern).is_ok(), "{path}: {pattern}");
        }
    });
}

#[test]
fn the_rules_of_the_schema_are_those_that_the_code_knows() {
    let mut messages = BTreeSet::new();
    walk(&as_json()["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let message =
                rule["message"].as_str().unwrap_or_else(|| panic!("{path}: a rule without a message"));
            messages.insert(message.to_owned());
        }
    });
    assert_eq!(messages, rules::ALL.map(str::to_owned).into_iter().collect());
}

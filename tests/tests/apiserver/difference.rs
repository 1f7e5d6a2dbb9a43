//! Where two answers differ, apart from what differs between any two servers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Fields with ids, times and addresses, which each server chooses. That they are set is compared.
const CHOSEN: [&str; 9] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "continue",
    "selfLink",
];

/// An answer without what differs between any two servers. Versions become the number of the request that was the
/// first to be answered with them.
pub(crate) fn masked(answer: &Value, versions: &BTreeMap<String, usize>) -> Value {
    let mut masked = mask(answer, versions);
    sort_causes(&mut masked);
    masked
}

fn mask(value: &Value, versions: &BTreeMap<String, usize>) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), mask_field(name, value, versions)));
            let mut object = fields.collect::<Map<_, _>>().into();
            mask_object(&mut object);
            object
        }
        Value::Array(items) => items.iter().map(|item| mask(item, versions)).collect(),
        Value::String(text) => mask_text(text).into(),
        other => other.clone(),
    }
}

fn mask_field(name: &str, value: &Value, versions: &BTreeMap<String, usize>) -> Value {
    match value.as_str() {
        Some(version) if name == "resourceVersion" => json!(versions.get(version)),
        _ if CHOSEN.contains(&name) => json!(value.is_null()),
        _ => mask(value, versions),
    }
}

/// What depends on the place in an object.
fn mask_object(object: &mut Value) {
    // The finalizer of claims is a controller's, and so is what removes it.
    if object["kind"] == "PersistentVolumeClaim" {
        object["metadata"]["finalizers"].take();
    }
    // Other writers raise the version of a list too.
    if object.get("items").is_some() {
        object["metadata"]["resourceVersion"].take();
    }
    let Some(entries) = object.get_mut("managedFields").and_then(Value::as_array_mut) else { return };
    // Which structures that hold fields count as written depends on Go's types.
    for entry in entries.iter_mut().filter(|entry| entry["operation"] == "Update") {
        without_dots(&mut entry["fieldsV1"]);
    }
    // They come in the order of their times, which may be the same.
    entries.sort_by_cached_key(|entry| {
        ["manager", "operation", "subresource"].map(|field| entry[field].to_string())
    });
}

fn without_dots(fields: &mut Value) {
    let Some(map) = fields.as_object_mut() else { return };
    map.shift_remove(".");
    map.values_mut().for_each(without_dots);
}

/// Rules are checked in the order of a Go map.
fn sort_causes(status: &mut Value) {
    let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    causes.sort_by_cached_key(Value::to_string);
    if causes.len() > 1 {
        status["message"].take();
    }
}

/// Replaces times and versions in a text.
fn mask_text(text: &str) -> String {
    let is_time = |word: &str| word.len() == 20 && word.starts_with("20") && word.ends_with('Z');
    if text.starts_with("too old resource version") {
        return text.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    }
    text.split_inclusive([' ', ':', ','])
        .map(|word| {
            let bare = word.trim_end_matches([' ', ',']);
            if is_time(bare) { word.replace(bare, "TIME") } else { word.to_owned() }
        })
        .collect()
}

/// The fields in which two values differ, with both values.
pub(crate) fn differences(real: &Value, stand_in: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differ(real, stand_in, "", &mut found);
    found
}

fn differ(real: &Value, stand_in: &Value, path: &str, found: &mut Vec<String>) {
    match (real, stand_in) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left.keys().chain(right.keys().filter(|name| !left.contains_key(*name))) {
                let none = Value::Null;
                let (left, right) = (left.get(name).unwrap_or(&none), right.get(name).unwrap_or(&none));
                differ(left, right, &format!("{path}/{name}"), found);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                differ(left, right, &format!("{path}/{at}"), found);
            }
            let common = left.len().min(right.len());
            for (server, items) in [("the real one", left), ("the stand-in", right)] {
                found.extend(
                    items.iter().skip(common).map(|item| format!("{path}: only {server} has {item}")),
                );
            }
        }
        (left, right) if left != right => found.push(format!("{path}: really {left}, stand-in {right}")),
        _ => {}
    }
}

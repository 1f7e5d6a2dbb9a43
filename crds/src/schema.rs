//! Checks a value against the CRD's schema, as the API server does, and reports every fault.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::resource::rules;

/// The generated custom resource definition.
const DEFINITION: &str = include_str!("../caipe.io_caipesupervisors.yaml");

/// The supported keywords of a schema; `manifest_tests` checks that the CRD uses no others.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    kind: Option<String>,
    properties: Option<BTreeMap<String, Self>>,
    additional_properties: Option<AdditionalProperties>,
    required: Vec<String>,
    items: Option<Box<Self>>,
    #[serde(rename = "enum")]
    allowed: Option<Vec<Value>>,
    pattern: Option<String>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    max_properties: Option<usize>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserve_unknown_fields: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AdditionalProperties {
    Allowed(bool),
    Schema(Box<Schema>),
}

/// The schema of the whole resource, with the fields that every Kubernetes object has.
pub(crate) fn resource_schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = definition().unwrap_or_default();
        let common = [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")];
        let typed = |(name, kind): (&str, &str)| {
            (name.to_owned(), Schema { kind: Some(kind.to_owned()), ..Schema::default() })
        };
        schema.properties.get_or_insert_default().extend(common.map(typed));
        schema.required.push("metadata".to_owned());
        schema
    })
}

/// The schema in the definition; a test checks that there is one.
fn definition() -> Option<Schema> {
    let mut definition: Value = serde_saphyr::from_str(DEFINITION).ok()?;
    let schema = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema")?;
    serde_json::from_value(schema.take()).ok()
}

/// Appends the faults of `value`, which is at `path`.
pub(crate) fn check(schema: &Schema, value: &Value, path: &str, faults: &mut Vec<Fault>) {
    if !type_fits(schema, value) {
        let message = format!("expected {}, found {}", expected(schema), found(value));
        faults.push(Fault::new(path, message));
        return;
    }
    check_enum(schema, value, path, faults);
    match value {
        Value::Object(object) => check_object(schema, object, path, faults),
        Value::Array(items) => check_array(schema, items, path, faults),
        Value::String(text) => check_string(schema, text, path, faults),
        Value::Number(number) => check_number(schema, number.as_f64().unwrap_or_default(), path, faults),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Removes nulls of known fields, so that their defaults apply, as the API server does.
pub(crate) fn prune(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let Some(properties) = &schema.properties else { return };
            object.retain(|name, value| !(value.is_null() && properties.contains_key(name)));
            for (name, value) in object {
                if let Some(known) = properties.get(name) {
                    prune(known, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(each) = &schema.items {
                for item in items {
                    prune(each, item);
                }
            }
        }
        _ => {}
    }
}

fn type_fits(schema: &Schema, value: &Value) -> bool {
    if schema.int_or_string {
        return value.is_string() || is_integer(value);
    }
    match schema.kind.as_deref() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => is_integer(value),
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

fn expected(schema: &Schema) -> &str {
    match schema.kind.as_deref() {
        Some("object") => "a map",
        Some("array") => "a list",
        Some("string") => "a text",
        Some("boolean") => "true or false",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        _ => "a whole number or a text",
    }
}

const fn found(value: &Value) -> &str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false (quote it if a text is meant)",
        Value::Number(_) => "a number (quote it if a text is meant)",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn check_enum(schema: &Schema, value: &Value, path: &str, faults: &mut Vec<Fault>) {
    let Some(allowed) = &schema.allowed else { return };
    if !allowed.iter().any(|one| one == value) {
        let names: Vec<_> = allowed.iter().map(|one| one.as_str().unwrap_or("null")).collect();
        faults.push(Fault::new(path, format!("must be one of {}", names.join(", "))));
    }
}

fn check_object(schema: &Schema, object: &Map<String, Value>, path: &str, faults: &mut Vec<Fault>) {
    for name in schema.required.iter().filter(|name| !object.contains_key(*name)) {
        faults.push(Fault::new(path, format!("`{name}` is missing")));
    }
    if let Some(most) = schema.max_properties.filter(|most| object.len() > *most) {
        faults.push(Fault::new(path, format!("has more than {most} entries")));
    }
    for (name, value) in object {
        let below = join(path, name);
        if let Some(known) = schema.properties.as_ref().and_then(|properties| properties.get(name)) {
            check(known, value, &below, faults);
        } else if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
            check(values, value, &below, faults);
        } else if !is_open(schema) {
            faults.push(Fault::new(below, unknown(schema, name)));
        }
    }
}

fn is_open(schema: &Schema) -> bool {
    schema.preserve_unknown_fields
        || matches!(schema.additional_properties, Some(AdditionalProperties::Allowed(true)))
        || schema.properties.is_none()
}

fn unknown(schema: &Schema, name: &str) -> String {
    let known: Vec<&str> = schema.properties.iter().flatten().map(|(name, _)| name.as_str()).collect();
    let meant = known.iter().find(|known| similar(known, name));
    meant.map_or_else(
        || format!("unknown key; known here: {}", known.join(", ")),
        |meant| format!("unknown key: did you mean `{meant}`?"),
    )
}

/// Whether two names differ only in case, `-` and `_`, or by one character or two swapped ones at most.
fn similar(left: &str, right: &str) -> bool {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (left, right) = (plain(left), plain(right));
    let same_start = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let same_end = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b).count();
    let different = left.len().max(right.len()).saturating_sub(same_start + same_end);
    let sorted = |letters: &[char]| {
        let mut letters = letters.to_vec();
        letters.sort_unstable();
        letters
    };
    let one = left.len().abs_diff(right.len()) <= 1 && different <= 1;
    one || (different == 2 && sorted(&left) == sorted(&right))
}

fn check_array(schema: &Schema, items: &[Value], path: &str, faults: &mut Vec<Fault>) {
    if let Some(least) = schema.min_items.filter(|least| items.len() < *least) {
        faults.push(Fault::new(path, format!("must have at least {least} entry, or be absent")));
    }
    if let Some(most) = schema.max_items.filter(|most| items.len() > *most) {
        faults.push(Fault::new(path, format!("has {} entries; at most {most} are allowed", items.len())));
    }
    if let Some(each) = &schema.items {
        for (at, item) in items.iter().enumerate() {
            check(each, item, &format!("{path}[{at}]"), faults);
        }
    }
    for key in &schema.list_map_keys {
        check_unique(key, items, path, faults);
    }
}

fn check_unique(key: &str, items: &[Value], path: &str, faults: &mut Vec<Fault>) {
    for (at, item) in items.iter().enumerate() {
        let value = item.get(key);
        if let Some(first) =
            items.iter().take(at).position(|other| value.is_some() && other.get(key) == value)
        {
            let path = format!("{path}[{at}].{key}");
            faults.push(Fault::new(path, format!("is taken by entry {first} already: names must differ")));
        }
    }
}

fn check_string(schema: &Schema, text: &str, path: &str, faults: &mut Vec<Fault>) {
    let count = text.chars().count();
    if let Some(least) = schema.min_length.filter(|least| count < *least) {
        faults.push(Fault::new(path, format!("must have at least {least} character")));
        return;
    }
    if let Some(most) = schema.max_length.filter(|most| count > *most) {
        faults.push(Fault::new(path, format!("has {count} characters; at most {most} are allowed")));
    }
    if let Some(pattern) = &schema.pattern {
        let fits = regex_lite::Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
        if !fits {
            faults.push(Fault::new(path, in_words(pattern)));
        }
    }
}

/// The message for a text that does not match the pattern.
fn in_words(pattern: &str) -> String {
    let known = rules::IN_WORDS.iter().find(|(known, _)| *known == pattern);
    known.map_or_else(|| format!("does not match {pattern}"), |(_, words)| (*words).to_owned())
}

fn check_number(schema: &Schema, number: f64, path: &str, faults: &mut Vec<Fault>) {
    if let Some(least) = schema.minimum.filter(|least| number < *least) {
        faults.push(Fault::new(path, format!("must be at least {least}")));
    }
    if let Some(most) = schema.maximum.filter(|most| number > *most) {
        faults.push(Fault::new(path, format!("must be at most {most}")));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_has_a_schema() {
        assert!(super::definition().is_some());
    }
}

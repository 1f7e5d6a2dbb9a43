//! The fields of an object that the operator manages, and whether they are exactly the applied ones.
//!
//! A client that changes a field takes its ownership
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>). So if the operator manages exactly the
//! applied fields, they still have the applied values, and the hash among the annotations says which these are, even
//! after a restart.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::interner::Interner;
use crate::labels;

/// A placeholder for the uid of the owner; no JSON text has it.
const OWNER: &str = "\u{1}";

/// The managed fields. Objects of the same shape share one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFields(Arc<str>);

impl Default for ManagedFields {
    fn default() -> Self {
        Self(shared(String::new()))
    }
}

impl Hash for ManagedFields {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl ManagedFields {
    /// From the object's metadata; `owner` is the uid of its controller.
    pub(super) fn new(meta: &ObjectMeta, owner: Option<&str>) -> Self {
        let ours = meta.managed_fields.iter().flatten().filter(|entry| {
            entry.manager.as_deref() == Some(labels::MANAGER)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.is_none()
        });
        let text: String =
            ours.filter_map(|entry| entry.fields_v1.as_ref()).map(|fields| fields.0.to_string()).collect();
        Self(shared(match owner {
            Some(owner) if !owner.is_empty() => text.replace(owner, OWNER),
            _ => text,
        }))
    }

    /// Whether they are exactly the fields of the built object: no other manager owns one, and none is left of an
    /// earlier apply. False in doubt.
    pub fn are_those_of(&self, built: &Value, owner: &str) -> bool {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&self.0.replace(OWNER, owner)) else {
            return false;
        };
        let Some(Value::Object(meta)) = fields.remove("f:metadata") else { return false };
        let Some(built_meta) = built["metadata"].as_object() else { return false };
        let own = |name: &str| !["apiVersion", "kind", "metadata"].contains(&name);
        let body = built.as_object().into_iter().flatten().filter(|(name, _)| own(name));
        members(&fields, body, same)
            && members(
                &meta,
                built_meta.iter().filter(|(name, _)| !["name", "namespace"].contains(&name.as_str())),
                same_in_meta,
            )
    }
}

/// Labels and annotations are maps, so that no entry below them means that none is managed.
fn same_in_meta(fields: &Map<String, Value>, value: &Value) -> bool {
    match value {
        Value::Object(map) => members(fields, map.iter(), same),
        _ => same(fields, value),
    }
}

/// Whether the fields are exactly those of the value. No entry below it means that the value is one field.
fn same(fields: &Map<String, Value>, value: &Value) -> bool {
    if fields.keys().all(|step| step == ".") {
        return true;
    }
    match value {
        Value::Object(map) => members(fields, map.iter(), same),
        Value::Array(list) => items(fields, list),
        _ => false,
    }
}

fn members<'a>(
    fields: &Map<String, Value>,
    values: impl Iterator<Item = (&'a String, &'a Value)>,
    same: fn(&Map<String, Value>, &Value) -> bool,
) -> bool {
    let mut count = 0;
    for (name, value) in values {
        let below = fields.get(&format!("f:{name}")).and_then(Value::as_object);
        if !below.is_some_and(|below| same(below, value)) {
            return false;
        }
        count += 1;
    }
    count == steps(fields).count()
}

fn items(fields: &Map<String, Value>, list: &[Value]) -> bool {
    let managed_fields = |item: &Value| {
        steps(fields).any(|(step, below)| {
            is_step_of(step, item) && below.as_object().is_some_and(|below| same(below, item))
        })
    };
    list.len() == steps(fields).count() && list.iter().all(managed_fields)
}

fn steps(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    fields.iter().filter(|(step, _)| *step != ".")
}

/// Whether a step selects an item of a list: by its keys, where the API server adds omitted ones, or by its value.
fn is_step_of(step: &str, item: &Value) -> bool {
    let read = |text| serde_json::from_str::<Value>(text);
    match step.split_once(':') {
        Some(("k", keys)) => {
            let Ok(Value::Object(keys)) = read(keys) else { return false };
            keys.iter().all(|(name, key)| item.get(name).is_none_or(|value| value == key))
        }
        Some(("v", value)) => read(value).is_ok_and(|value| value == *item),
        _ => false,
    }
}

fn shared(text: String) -> Arc<str> {
    static TEXTS: LazyLock<Interner<str>> = LazyLock::new(Interner::default);
    TEXTS.share(text)
}

#[cfg(test)]
#[path = "managed_fields_tests.rs"]
pub(super) mod tests;

//! Which fields of an object the API server counts as applied by the operator, and whether they are all that it applied.
//!
//! Whoever changes a field takes it from whoever applied it (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).
//! So an object whose fields are all the operator's still has the values of the operator's last apply, and the hash among
//! its annotations, which is one of the fields, says what that was. That holds for an operator that has just started, too.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::interner::Interner;
use crate::labels;

/// What stands for the uid of the owner; no text of JSON has it.
const OWNER: &str = "\u{1}";

/// The operator's fields of an object. Those of a thousand objects that are made alike are kept once.
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
    /// From the object's metadata; `owner` is the uid of the object that controls it.
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

    /// Whether they are exactly the fields of what was built: nobody took one, and none is left of an earlier apply. What
    /// cannot be told for certain counts as no.
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

/// Labels and annotations are never one field, so that nothing below them is nothing of them.
fn same_in_meta(fields: &Map<String, Value>, value: &Value) -> bool {
    match value {
        Value::Object(map) => members(fields, map.iter(), same),
        _ => same(fields, value),
    }
}

/// Whether the fields below a place are exactly those of the value there. Nothing below it: the value is one field.
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

/// Whether a step leads to an item of a list: by its keys, of which the API server fills in those that are left out, or by
/// its value.
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

/// The same text as one that is kept somewhere already.
fn shared(text: String) -> Arc<str> {
    static TEXTS: LazyLock<Interner<str>> = LazyLock::new(Interner::default);
    TEXTS.share(text)
}

#[cfg(test)]
#[path = "managed_fields_tests.rs"]
pub(super) mod tests;

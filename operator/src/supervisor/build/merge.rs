//! Strategic merge patch of a pod template, as `kubectl patch` does it: maps merge by key, `null` removes a key,
//! lists merge by the key that Kubernetes declares for them, and `$patch` overrides this.
//!
//! If two keys exclude each other (`value` and `valueFrom`, the sources of a volume, the handlers of a probe), the
//! patch's key replaces the other, because Kubernetes rejects both.

use caipe_crds::resource::common::PodTemplate;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Map, Value};

/// The directive of a map or of a list's entry.
const DIRECTIVE: &str = "$patch";

/// The merge keys of lists (`patchMergeKey` of Kubernetes' API). All other lists, such as `tolerations`, `args` and
/// `envFrom`, are replaced.
const LIST_KEYS: [(&str, &str); 11] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("imagePullSecrets", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("ports", "containerPort"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("topologySpreadConstraints", "topologyKey"),
];
const HOST_ALIASES: (&str, &str) = ("hostAliases", "ip");

/// Keys that exclude each other, by the key of their parent.
const EXCLUSIVE: [(&str, &[&str]); 6] = [
    ("env", &["value", "valueFrom"]),
    ("livenessProbe", PROBES),
    ("readinessProbe", PROBES),
    ("startupProbe", PROBES),
    ("preStop", HANDLERS),
    ("postStart", HANDLERS),
];
const PROBES: &[&str] = &["exec", "grpc", "httpGet", "tcpSocket"];
const HANDLERS: &[&str] = &["exec", "httpGet", "sleep", "tcpSocket"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct InvalidPatch {
    /// Where in the patch, as `.spec.containers`; empty if that is not known.
    pub(in crate::supervisor) at: String,
    pub(in crate::supervisor) reason: String,
}

/// # Errors
/// An unknown key, or a value of a wrong type.
pub(in crate::supervisor) fn laid_over(
    template: &PodTemplateSpec,
    patch: &PodTemplate,
) -> Result<PodTemplateSpec, InvalidPatch> {
    let misfit = |at: &str, reason: String| InvalidPatch { at: at.to_owned(), reason };
    let base = serde_json::to_value(template).map_err(|error| misfit("", error.to_string()))?;
    let merged = merge(base, &Value::Object(patch.0.clone()), "");
    let typed: PodTemplateSpec =
        serde_json::from_value(merged.clone()).map_err(|error| misfit("", error.to_string()))?;
    let back = serde_json::to_value(&typed).map_err(|error| misfit("", error.to_string()))?;
    match first_unknown_key(&merged, &back, "") {
        Some(at) => Err(misfit(&at, "a pod template has no such key: correct it, or take it out".to_owned())),
        None => Ok(typed),
    }
}

/// Merges the patch into `base`, the value of `key`.
fn merge(base: Value, patch: &Value, key: &str) -> Value {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => merge_map(base, patch, key),
        (Value::Array(base), Value::Array(patch)) => merge_list(base, patch, key),
        (_, Value::Object(patch)) => merge_map(Map::new(), patch, key),
        (_, Value::Array(patch)) => merge_list(Vec::new(), patch, key),
        (_, patch) => patch.clone(),
    }
}

fn merge_map(mut base: Map<String, Value>, patch: &Map<String, Value>, key: &str) -> Value {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("delete") => return Value::Null,
        Some("replace") => base.clear(),
        _ => {}
    }
    exclude(&mut base, patch, key);
    for (name, value) in patch.iter().filter(|(name, _)| *name != DIRECTIVE) {
        let below = base.shift_remove(name).unwrap_or(Value::Null);
        let merged = merge(below, value, name);
        if !merged.is_null() {
            base.insert(name.clone(), merged);
        }
    }
    Value::Object(base)
}

/// Removes keys that exclude a key of the patch.
fn exclude(base: &mut Map<String, Value>, patch: &Map<String, Value>, key: &str) {
    // A volume has a name and one source, whatever that is called.
    let among = |name: &str| match EXCLUSIVE.iter().find(|(place, _)| *place == key) {
        Some((_, names)) => names.contains(&name),
        None => key == "volumes" && name != "name" && name != DIRECTIVE,
    };
    if patch.iter().any(|(name, value)| among(name) && !value.is_null()) {
        base.retain(|name, _| !among(name) || patch.contains_key(name));
    }
}

fn merge_list(base: Vec<Value>, patch: &[Value], key: &str) -> Value {
    let known = LIST_KEYS.iter().chain([&HOST_ALIASES]).find(|(list, _)| *list == key);
    let replaces = |entry: &Value| {
        directive(entry) == Some("replace") && entry.as_object().is_some_and(|it| it.len() == 1)
    };
    let whole = patch.iter().any(replaces);
    let Some((_, id)) = known else {
        return Value::Array(patch.iter().map(|entry| merge(Value::Null, entry, key)).collect());
    };
    let mut list = if whole { Vec::new() } else { base };
    for entry in patch.iter().filter(|entry| !replaces(entry)) {
        merge_entry(&mut list, entry, key, id);
    }
    Value::Array(list)
}

fn merge_entry(list: &mut Vec<Value>, entry: &Value, key: &str, id: &str) {
    let same = |other: &Value| entry.get(id).is_some() && other.get(id) == entry.get(id);
    let at = list.iter().position(same);
    match (at, directive(entry)) {
        (Some(at), Some("delete")) => {
            list.remove(at);
        }
        (None, Some("delete")) => {}
        (Some(at), _) => {
            if let Some(place) = list.get_mut(at) {
                *place = merge(place.take(), entry, key);
            }
        }
        (None, _) => list.push(merge(Value::Null, entry, key)),
    }
}

fn directive(entry: &Value) -> Option<&str> {
    entry.get(DIRECTIVE).and_then(Value::as_str)
}

/// The path of the first key of `all` that is not in `known`.
fn first_unknown_key(all: &Value, known: &Value, at: &str) -> Option<String> {
    match (all, known) {
        (Value::Object(all), Value::Object(known)) => all.iter().find_map(|(name, value)| {
            let below = format!("{at}.{name}");
            match known.get(name) {
                Some(other) => first_unknown_key(value, other, &below),
                None => Some(below),
            }
        }),
        (Value::Array(all), Value::Array(known)) => {
            all.iter().zip(known).enumerate().find_map(|(index, (value, other))| {
                let name = value.get("name").and_then(Value::as_str);
                let place = name.map_or_else(|| index.to_string(), str::to_owned);
                first_unknown_key(value, other, &format!("{at}[{place}]"))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

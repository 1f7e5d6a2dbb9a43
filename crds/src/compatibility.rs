//! Checks that a CRD accepts everything that a released CRD accepted.
//!
//! It finds the changes that break existing resources or the clients that write them: removed fields, values that are no
//! longer allowed, other list types and defaults. A wider definition is compatible; a narrower one is not, whether the
//! lost part was in use or not.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::resource::rules;

/// Keywords that bound a value from below.
const LEAST: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
/// Keywords that bound a value from above.
const MOST: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// Pairs of a released pattern and a wider one that replaces it. A test shows that the second one is wider.
const WIDER: [(&str, &str); 1] = [("^[A-Za-z_][A-Za-z0-9_]*$", "^[-._a-zA-Z0-9]+$")];
/// The messages of rules that a release did not have, and [`NEVER_RAN_PATTERN`]. They reject only values that never
/// worked: the API server accepted them, and the operator or the supervisor rejected or ignored them later.
const NEVER_RAN: [&str; 11] = [
    rules::URL,
    rules::MCP_URL,
    rules::VOLUME_SIZE,
    rules::STORAGE_CLASS,
    rules::EXISTING_CLAIM,
    rules::STORE_KIND,
    rules::A2A_ALLOW,
    rules::REPLICAS,
    rules::VOLUME_FIXED,
    rules::AGENT_REMOTE_ONLY,
    // A field of development versions, which left the resource before the first release.
    rules::DISTRIBUTED_MODE,
];
const NEVER_RAN_PATTERN: &str = rules::QUANTITY_PATTERN;
/// Keywords that must stay as they are.
const FIXED: [(&str, &str); 12] = [
    ("type", "type"),
    ("format", "format"),
    ("pattern", "pattern"),
    ("default", "default"),
    ("x-kubernetes-list-type", "list type"),
    ("x-kubernetes-list-map-keys", "list keys"),
    ("x-kubernetes-map-type", "map type"),
    ("allOf", "combination"),
    ("anyOf", "choice of schemas"),
    ("oneOf", "choice of one schema"),
    ("x-kubernetes-int-or-string", "choice of number or text"),
    ("x-kubernetes-preserve-unknown-fields", "openness to unknown fields"),
];

/// The values and fields that the old definition accepts and the new one does not, each with its path. The status counts
/// too, because programs read it.
pub fn incompatibilities(old: &CustomResourceDefinition, new: &CustomResourceDefinition) -> Vec<Fault> {
    let value = |crd: &CustomResourceDefinition| serde_json::to_value(crd).unwrap_or_default();
    let (old, new) = (value(old), value(new));
    let mut found = Found::default();
    for pointer in ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"] {
        let is_same = old.pointer(pointer) == new.pointer(pointer);
        found.rule(is_same, &pointer[1..].replace('/', "."), "has changed");
    }
    for version in list(&old["spec"]["versions"]).filter(|version| version["served"] == true) {
        found.version(version, &new["spec"]["versions"]);
    }
    found.0
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[derive(Default)]
struct Found(Vec<Fault>);

impl Found {
    fn rule(&mut self, holds: bool, path: &str, message: impl Into<String>) {
        if !holds {
            self.0.push(Fault::new(path.trim_start_matches('.'), message));
        }
    }

    fn version(&mut self, old: &Value, versions: &Value) {
        let name = old["name"].as_str().unwrap_or_default();
        let Some(new) = list(versions).find(|new| new["name"] == old["name"] && new["served"] == true) else {
            self.rule(false, name, "is no longer served");
            return;
        };
        for (subresource, _) in entries(&old["subresources"]) {
            let is_present = new["subresources"].get(subresource).is_some();
            self.rule(is_present, name, format!("no longer has the subresource `{subresource}`"));
        }
        self.schema(&old["schema"]["openAPIV3Schema"], &new["schema"]["openAPIV3Schema"], "");
    }

    fn schema(&mut self, old: &Value, new: &Value, path: &str) {
        self.fixed(old, new, path);
        self.rule(new["nullable"] == true || old["nullable"] != true, path, "no longer accepts null");
        self.bounds(old, new, path);
        self.choices(old, new, path);
        self.rules(old, new, path);
        self.required(old, new, path);
        for (name, field) in entries(&old["properties"]) {
            let below = format!("{path}.{name}");
            match new["properties"].get(name) {
                Some(other) => self.schema(field, other, &below),
                None => self.rule(false, &below, "is removed"),
            }
        }
        for (key, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
            let below = format!("{path}{suffix}");
            if old[key].is_object() && new[key].is_object() {
                self.schema(&old[key], &new[key], &below);
            }
            let takes = |schema: &Value| schema[key].is_object() || schema[key] == true;
            self.rule(takes(new) || !takes(old), &below, "is removed");
        }
    }

    fn fixed(&mut self, old: &Value, new: &Value, path: &str) {
        let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
        for (keyword, title) in FIXED {
            let (before, now) = (old.get(keyword), new.get(keyword));
            // A text without a bound is wider.
            let wider = matches!(keyword, "pattern" | "format") && now.is_none()
                || keyword == "pattern" && accepts_as_much(before, now);
            let message = format!("has another {title}: {} instead of {}", shown(now), shown(before));
            self.rule(before == now || wider, path, message);
        }
    }

    fn bounds(&mut self, old: &Value, new: &Value, path: &str) {
        for (keywords, is_narrower) in
            [(LEAST, f64::gt as fn(&f64, &f64) -> bool), (MOST, f64::lt as fn(&f64, &f64) -> bool)]
        {
            for keyword in keywords {
                let (before, now) = (old[keyword].as_f64(), new[keyword].as_f64());
                let narrower = match (before, now) {
                    (Some(before), Some(now)) => is_narrower(&now, &before),
                    (None, Some(_)) => true,
                    (_, None) => false,
                };
                let was = before.map_or_else(|| "none".to_owned(), |before| before.to_string());
                let is = now.unwrap_or_default();
                self.rule(!narrower, path, format!("has a narrower {keyword}: {is} instead of {was}"));
            }
        }
    }

    fn choices(&mut self, old: &Value, new: &Value, path: &str) {
        if new["enum"].is_null() {
            return;
        }
        let now: Vec<&Value> = list(&new["enum"]).collect();
        self.rule(!old["enum"].is_null(), path, "accepts only listed values, and accepted any before");
        for choice in list(&old["enum"]).filter(|choice| !now.contains(choice)) {
            self.rule(false, path, format!("no longer accepts {choice}"));
        }
    }

    /// Rules are compared by message, or by expression where they have none.
    fn rules(&mut self, old: &Value, new: &Value, path: &str) {
        let rules = |schema: &'_ Value| -> BTreeMap<String, String> {
            let text = |rule: &Value, name: &str| rule[name].as_str().map(str::to_owned);
            let rules = list(&schema["x-kubernetes-validations"]);
            rules
                .filter_map(|rule| {
                    let expression = text(rule, "rule")?;
                    Some((text(rule, "message").unwrap_or_else(|| expression.clone()), expression))
                })
                .collect()
        };
        let before = rules(old);
        for (message, expression) in rules(new) {
            match before.get(&message) {
                None if NEVER_RAN.contains(&message.as_str()) => {}
                // The same rule with another message.
                None if before.values().any(|known| *known == expression) => {}
                None => self.rule(false, path, format!("has a new rule: {message}")),
                Some(known) => {
                    // A program cannot compare two expressions.
                    let is_same = *known == expression;
                    self.rule(is_same, path, format!("has a rule with another expression: {message}"));
                }
            }
        }
    }

    fn required(&mut self, old: &Value, new: &Value, path: &str) {
        let before: Vec<&Value> = list(&old["required"]).collect();
        for name in list(&new["required"]).filter(|name| !before.contains(name)) {
            let name = name.as_str().unwrap_or_default();
            let has_default = new["properties"][name].get("default").is_some();
            self.rule(has_default, &format!("{path}.{name}"), "is required now");
        }
    }
}

/// Whether a new or other pattern accepts every value that worked before.
fn accepts_as_much(before: Option<&Value>, now: Option<&Value>) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (before, now) = (text(before), text(now));
    before.is_none() && now.as_deref() == Some(NEVER_RAN_PATTERN)
        || WIDER.iter().any(|(old, new)| before.as_deref() == Some(old) && now.as_deref() == Some(new))
}

#[cfg(test)]
#[path = "compatibility_tests.rs"]
mod tests;

//! `{{name}}` in parameters, requests and expectations.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// The longest chain of variables that refer to each other.
const DEPTH: usize = 8;

/// The values of the variables.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// What a runner insists on, before everything else.
    pub overrides: Map<String, Value>,
    /// What steps kept, as `stepId.name`, and their answers, as `stepId.response`.
    pub captured: BTreeMap<String, Value>,
    /// What the file gives.
    pub document: Map<String, Value>,
    /// What the runner gives.
    pub runner: Map<String, Value>,
}

impl Scope {
    /// Keeps what a step found.
    pub fn capture(&mut self, step: &str, name: &str, value: Value) {
        self.captured.insert(format!("{step}.{name}"), value);
    }

    /// `value` with every variable replaced. A text that is one variable and nothing else gets its type.
    ///
    /// # Errors
    /// If a variable has no value.
    pub fn resolve(&self, value: &Value) -> Result<Value> {
        self.resolve_within(value, DEPTH)
    }

    fn resolve_within(&self, value: &Value, depth: usize) -> Result<Value> {
        match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(list) => list.iter().map(|value| self.resolve_within(value, depth)).collect(),
            Value::Object(map) => {
                let entry =
                    |(key, value): (&String, &Value)| Ok((key.clone(), self.resolve_within(value, depth)?));
                map.iter().map(entry).collect::<Result<Map<_, _>>>().map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    fn text(&self, text: &str, depth: usize) -> Result<Value> {
        let whole = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        if let Some(name) = whole.filter(|name| !name.contains("{{")) {
            return self.lookup(name.trim(), depth);
        }
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) =
                after.split_once("}}").with_context(|| format!("{text:?}: {{{{ without }}}}"))?;
            done.push_str(before);
            match self.lookup(name.trim(), depth)? {
                Value::String(value) => done.push_str(&value),
                other => done.push_str(&other.to_string()),
            }
            rest = after;
        }
        done.push_str(rest);
        Ok(Value::String(done))
    }

    fn lookup(&self, name: &str, depth: usize) -> Result<Value> {
        let Some(depth) = depth.checked_sub(1) else { bail!("{{{{{name}}}}} stands for itself") };
        // What a server answered is not searched for variables: it is not the test's text.
        if let Some(value) = self.overrides.get(name).or_else(|| self.captured.get(name)) {
            return Ok(value.clone());
        }
        if let Some(value) = self.document.get(name).or_else(|| self.runner.get(name)) {
            return self.resolve_within(value, depth);
        }
        if name == "$uuid" {
            return Ok(Value::String(uuid::Uuid::new_v4().to_string()));
        }
        let variable = name.strip_prefix("env.").and_then(|name| std::env::var(name).ok());
        variable.map(Value::String).with_context(|| format!("{{{{{name}}}}} stands for nothing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scope() -> Scope {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let mut scope = Scope {
            document: map(json!({"base": "{{ROOT}}/x", "hook": "theirs", "loop": "{{loop}}"})),
            runner: map(json!({"ROOT": "http://h", "hook": "last"})),
            ..Scope::default()
        };
        scope.capture("first-step", "tid", json!("{{not searched}}"));
        scope.capture("first-step", "response", json!({"tasks": [1]}));
        scope
    }

    #[test]
    fn names_are_looked_up_in_order_and_keep_their_type() {
        for (text, expected) in [
            ("plain", json!("plain")),
            ("{{base}}/y", json!("http://h/x/y")),
            ("{{ hook }}", json!("theirs")),
            ("{{first-step.response}}", json!({"tasks": [1]})),
            ("{{first-step.tid}}", json!("{{not searched}}")),
            ("{{ROOT}} and {{hook}}", json!("http://h and theirs")),
        ] {
            assert_eq!(scope().resolve(&json!(text)).unwrap(), expected, "{text}");
        }
        let nested = scope().resolve(&json!({"a": [{"b": "{{hook}}"}], "n": 1})).unwrap();
        assert_eq!(nested, json!({"a": [{"b": "theirs"}], "n": 1}));
    }

    #[test]
    fn an_override_wins() {
        let mut scope = scope();
        scope.overrides.insert("hook".to_owned(), json!("ours"));
        assert_eq!(scope.resolve(&json!("{{hook}}")).unwrap(), json!("ours"));
    }

    #[test]
    fn an_unknown_name_fails() {
        for text in ["{{nobody}}", "a {{nobody}}", "{{loop}}", "a {{open"] {
            assert!(scope().resolve(&json!(text)).is_err(), "{text}");
        }
        assert_eq!(scope().resolve(&json!("{{$uuid}}")).unwrap().as_str().map(str::len), Some(36));
    }
}

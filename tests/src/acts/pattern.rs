//! Patterns, and whether a value matches one.
//!
//! A map's keys are operators, or names of members whose values are patterns again. A key is an operator only if
//! its value has the operator's form: `type: {type: string}` speaks of a member called `type`.

use regex_lite::Regex;
use serde_json::Value;

/// Why a value does not match.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Where, for example `task.status.state`; empty is the root.
    pub path: String,
    /// What was wanted.
    pub expected: String,
    /// What was there.
    pub actual: String,
}

/// What a pattern says of a value, or of a missing one.
type Checked = Result<(), Mismatch>;

/// Whether `value` matches; `None` is a missing value.
pub fn check(pattern: &Value, value: Option<&Value>) -> Checked {
    check_at("", pattern, value)
}

fn check_at(path: &str, pattern: &Value, value: Option<&Value>) -> Checked {
    let Value::Object(keys) = pattern else {
        return verdict(value.is_some_and(|value| same(pattern, value)), path, pattern, value);
    };
    keys.iter().try_for_each(|(key, pattern)| match operator(path, key, pattern, value) {
        Some(checked) => checked,
        None => check_at(&join(path, key), pattern, value.and_then(|value| value.get(key))),
    })
}

/// What an operator says; nothing if `key` is the name of a member.
fn operator(path: &str, key: &str, operand: &Value, value: Option<&Value>) -> Option<Checked> {
    let holds = match (key, operand) {
        ("absent", Value::Bool(absent)) => value.is_none() == *absent,
        ("exists", Value::Bool(exists)) => value.is_some() == *exists,
        ("any_of", Value::Array(list)) => list.iter().any(|one| check(one, value).is_ok()),
        ("all_of", Value::Array(list)) => {
            return Some(list.iter().try_for_each(|one| check_at(path, one, value)));
        }
        ("not", Value::Object(_)) => value.is_some() && check(operand, value).is_err(),
        ("items", Value::Object(_) | Value::Array(_)) => return Some(items(path, operand, value)),
        ("one_of", Value::Array(list)) => value.is_some() && list.iter().any(|one| check(one, value).is_ok()),
        ("type", Value::String(name)) => value.is_some_and(|value| type_of(value) == name),
        ("count" | "count_gte" | "count_lte" | "gte" | "lte" | "gt" | "lt", Value::Number(bound)) => {
            number_holds(key, bound.as_f64()?, value)
        }
        ("contains" | "starts_with" | "ends_with" | "matches", Value::String(text)) => {
            value.and_then(Value::as_str).is_some_and(|value| text_holds(key, text, value))
        }
        ("all" | "none", Value::Object(_)) => value.and_then(Value::as_array).is_some_and(|list| {
            list.iter().all(|element| check(operand, Some(element)).is_ok() == (key == "all"))
        }),
        _ => return None,
    };
    Some(verdict(holds, path, &serde_json::json!({ key: operand }), value))
}

fn items(path: &str, operand: &Value, value: Option<&Value>) -> Checked {
    let Some(list) = value.and_then(Value::as_array) else {
        return verdict(false, path, &serde_json::json!({"items": operand}), value);
    };
    let at = |index: usize| format!("{path}[{index}]");
    match operand {
        Value::Array(patterns) => patterns
            .iter()
            .enumerate()
            .try_for_each(|(index, pattern)| check_at(&at(index), pattern, list.get(index))),
        pattern => list
            .iter()
            .enumerate()
            .try_for_each(|(index, element)| check_at(&at(index), pattern, Some(element))),
    }
}

fn number_holds(key: &str, bound: f64, value: Option<&Value>) -> bool {
    let count = value.and_then(Value::as_array).map(Vec::len);
    let number = match key.strip_prefix("count") {
        // No list of a test has more elements than a u32 holds.
        Some(_) => count.and_then(|count| u32::try_from(count).ok()).map(f64::from),
        None => value.and_then(Value::as_f64),
    };
    number.is_some_and(|number| match key {
        "count" => (number - bound).abs() < f64::EPSILON,
        "count_gte" | "gte" => number >= bound,
        "count_lte" | "lte" => number <= bound,
        "gt" => number > bound,
        _ => number < bound,
    })
}

fn text_holds(key: &str, text: &str, value: &str) -> bool {
    match key {
        "contains" => value.contains(text),
        "starts_with" => value.starts_with(text),
        "ends_with" => value.ends_with(text),
        _ => Regex::new(text).is_ok_and(|regex| regex.is_match(value)),
    }
}

/// The name of a value's JSON type.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Equal, where 1 and 1.0 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

fn verdict(holds: bool, path: &str, expected: &Value, actual: Option<&Value>) -> Checked {
    if holds {
        return Ok(());
    }
    let actual = actual.map_or_else(|| "nothing".to_owned(), |value| excerpt(&value.to_string()));
    Err(Mismatch { path: path.to_owned(), expected: excerpt(&expected.to_string()), actual })
}

/// Short enough for a line of a report.
pub fn excerpt(text: &str) -> String {
    const LENGTH: usize = 300;
    let mut short: String = text.chars().take(LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;

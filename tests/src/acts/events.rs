//! What a stream must look like.

use serde_json::{Map, Value, json};

use super::pattern::{self, Mismatch};

/// The members that an event is wrapped in, with their snake-case names.
const WRAPPERS: [(&str, &str); 4] = [
    ("task", "task"),
    ("message", "message"),
    ("statusUpdate", "status_update"),
    ("artifactUpdate", "artifact_update"),
];

/// What patterns look at: the tests write `task: {status: …}`, `status_update: {status: …}` and `status: …`, and
/// all three match this.
pub fn root(event: &Value) -> Value {
    let Some((name, snake)) = WRAPPERS.iter().find(|(name, _)| event.get(name).is_some()) else {
        return event.clone();
    };
    let payload = event.get(name).cloned().unwrap_or_default();
    let mut root = payload.as_object().cloned().unwrap_or_default();
    root.insert((*snake).to_owned(), payload);
    root.extend(event.as_object().cloned().unwrap_or_default());
    Value::Object(root)
}

/// The state that an event tells of.
pub fn state(event: &Value) -> Option<&str> {
    let status = ["task", "statusUpdate"].iter().find_map(|name| event.get(name))?;
    status["status"]["state"].as_str()
}

/// Whether nothing comes after this state.
pub fn is_terminal(state: &str) -> bool {
    matches!(
        state,
        "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED" | "TASK_STATE_CANCELED" | "TASK_STATE_REJECTED"
    )
}

/// Whether the events are as `expected` says. They are the objects of the wire; those of a raw step are whole
/// JSON-RPC answers.
pub fn check(expected: &Value, events: &[Value]) -> Result<(), Mismatch> {
    let roots: Vec<Value> = events.iter().map(root).collect();
    let count = json!({"count_gte": expected["min_count"], "count_lte": expected["max_count"]});
    let bounds: Map<_, _> =
        count.as_object().into_iter().flatten().filter(|(_, n)| n.is_number()).map(owned).collect();
    pattern::check(&Value::Object(bounds), Some(&Value::Array(roots.clone()))).map_err(in_stream)?;
    if expected["ordering"] == "monotonic_state" {
        check_order(events)?;
    }
    if let Some(last) = expected.get("final_event") {
        let at = events.len().saturating_sub(1);
        check_at(last, &roots, at)?;
    }
    if let Some(each) = expected.get("each_event") {
        (0..events.len()).try_for_each(|at| check_at(each, &roots, at))?;
    }
    let entries = expected["events"].as_array().into_iter().flatten();
    entries.into_iter().try_for_each(|entry| check_entry(entry, &roots))
}

fn check_entry(entry: &Value, roots: &[Value]) -> Result<(), Mismatch> {
    let is_pattern = |(key, _): &(&String, &Value)| !matches!(&***key, "description" | "match" | "index");
    let wanted: Map<_, _> = entry.as_object().into_iter().flatten().filter(is_pattern).map(owned).collect();
    let wanted = Value::Object(wanted);
    match entry["index"].as_u64().and_then(|index| usize::try_from(index).ok()) {
        Some(index) => check_at(&wanted, roots, index),
        None if roots.iter().any(|root| pattern::check(&wanted, Some(root)).is_ok()) => Ok(()),
        None => Err(Mismatch {
            path: "events[*]".to_owned(),
            expected: wanted.to_string(),
            actual: format!("no such event among {}", roots.len()),
        }),
    }
}

fn check_at(wanted: &Value, roots: &[Value], index: usize) -> Result<(), Mismatch> {
    pattern::check(wanted, roots.get(index))
        .map_err(|mismatch| Mismatch { path: format!("events[{index}].{}", mismatch.path), ..mismatch })
}

/// Nothing follows a terminal state, and the state is SUBMITTED only at the start.
fn check_order(events: &[Value]) -> Result<(), Mismatch> {
    let mut before: Option<&str> = None;
    for (index, event) in events.iter().enumerate() {
        let wrong = |expected: &str| Mismatch {
            path: format!("events[{index}]"),
            expected: expected.to_owned(),
            actual: pattern::excerpt(&event.to_string()),
        };
        if before.is_some_and(is_terminal) {
            return Err(wrong("nothing after a terminal state"));
        }
        let now = state(event);
        if now == Some("TASK_STATE_SUBMITTED") && before.is_some_and(|before| Some(before) != now) {
            return Err(wrong("submitted only at the start"));
        }
        before = now.or(before);
    }
    Ok(())
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn in_stream(mismatch: Mismatch) -> Mismatch {
    Mismatch { path: format!("events{}", mismatch.path), ..mismatch }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

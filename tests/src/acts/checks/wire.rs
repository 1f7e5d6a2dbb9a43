//! Headers, names and times.

use serde_json::Value;

use crate::acts::answer::Answer;
use crate::acts::expect::Fault;

/// Members whose content is the user's: no rule of the protocol holds in there.
const FREE: [&str; 3] = ["data", "metadata", "params"];

/// A card says how long it may be kept, and how to ask whether it is the same.
pub(super) fn card_cache(answer: &Answer) -> Result<(), Fault> {
    let caches = answer.header("cache-control").is_some_and(|value| value.contains("max-age"));
    let tagged = answer.header("etag").is_some_and(|value| value.ends_with('"'));
    if caches && tagged {
        Ok(())
    } else {
        Err(Fault::new("the card has no Cache-Control with max-age and ETag"))
    }
}

/// The answer's media type, without parameters.
pub(super) fn media_type(answer: &Answer, wanted: &str) -> Result<(), Fault> {
    let found = answer.header("content-type").unwrap_or_default();
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence == wanted {
        return Ok(());
    }
    Err(Fault::new(format!("the answer has media type {found:?}, expected {wanted}")))
}

/// No member has an underscore in its name.
pub(super) fn camel_case(root: &Value) -> Result<(), Fault> {
    match snake_case_member(root) {
        Some(name) => Err(Fault::new(format!("the answer has a member {name}"))),
        None => Ok(()),
    }
}

fn snake_case_member(value: &Value) -> Option<&str> {
    match value {
        Value::Array(list) => list.iter().find_map(snake_case_member),
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let free = FREE.contains(&&**name);
            if name.contains('_') { Some(&**name) } else { (!free).then(|| snake_case_member(value))? }
        }),
        _ => None,
    }
}

/// Every `timestamp` ends in `Z`.
pub(super) fn timestamps(root: &Value) -> Result<(), Fault> {
    match root {
        Value::Array(list) => list.iter().try_for_each(timestamps),
        Value::Object(map) => map.iter().try_for_each(|(name, value)| match value.as_str() {
            Some(time) if name == "timestamp" && !time.ends_with('Z') => {
                Err(Fault::new(format!("the timestamp {time} is not in UTC")))
            }
            _ if FREE.contains(&&**name) => Ok(()),
            _ => timestamps(value),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_looked_at_at_every_depth() {
        assert!(camel_case(&json!({"task": {"contextId": "c", "history": [{"messageId": "m"}]}})).is_ok());
        assert!(camel_case(&json!({"task": {"history": [{"message_id": "m"}]}})).is_err());
        assert!(camel_case(&json!({"parts": [{"data": {"my_key": 1}}], "metadata": {"a_b": 1}})).is_ok());
    }

    #[test]
    fn times_are_looked_at_at_every_depth() {
        assert!(timestamps(&json!({"task": {"status": {"timestamp": "2026-01-01T00:00:00.000Z"}}})).is_ok());
        assert!(
            timestamps(&json!({"task": {"status": {"timestamp": "2026-01-01T00:00:00+01:00"}}})).is_err()
        );
    }
}

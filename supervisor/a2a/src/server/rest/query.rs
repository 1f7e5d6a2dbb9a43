//! A query string as the JSON object that it stands for (1.0, section 11.5). Pure.

use serde_json::{Map, Value};
use url::form_urlencoded;

/// Members that are numbers.
const NUMBERS: [&str; 2] = ["historyLength", "pageSize"];
/// Members that are true or false.
const FLAGS: [&str; 1] = ["includeArtifacts"];

/// The members of a query; of a repeated one the last counts, an empty one is absent. What is no number
/// where one belongs stays a text, so that decoding refuses it by name.
pub(super) fn object(query: Option<&str>) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let pairs = pairs.filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| (name.clone().into_owned(), typed(&name, value.into_owned()))).collect()
}

fn typed(name: &str, text: String) -> Value {
    if NUMBERS.contains(&name) {
        return text.parse::<i64>().map_or(Value::String(text), Value::from);
    }
    match text.to_ascii_lowercase().as_str() {
        "true" if FLAGS.contains(&name) => Value::Bool(true),
        "false" if FLAGS.contains(&name) => Value::Bool(false),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_query_is_an_object() {
        for (query, expected) in [
            (None, json!({})),
            (Some(""), json!({})),
            (Some("historyLength=3"), json!({"historyLength": 3})),
            (Some("historyLength=-1&pageSize=abc"), json!({"historyLength": -1, "pageSize": "abc"})),
            (Some("pageSize=&contextId="), json!({})),
            (Some("contextId=5&contextId=a+b%26c"), json!({"contextId": "a b&c"})),
            (Some("includeArtifacts=True&status=true"), json!({"includeArtifacts": true, "status": "true"})),
            (Some("includeArtifacts=1"), json!({"includeArtifacts": "1"})),
            (Some("A2A-Version=1.0"), json!({"A2A-Version": "1.0"})),
        ] {
            assert_eq!(Value::Object(object(query)), expected, "{query:?}");
        }
    }
}

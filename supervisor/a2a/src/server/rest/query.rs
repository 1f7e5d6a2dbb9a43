//! Converts a query string to the JSON object of the request (1.0, section 11.5).

use serde_json::{Map, Value};
use url::form_urlencoded;

/// The names of the boolean fields. `ProtoJSON` reads an integer from a text, but not a boolean.
const BOOLEANS: [&str; 2] = ["includeArtifacts", "include_artifacts"];

/// The members of a query. The last value of a repeated member counts; an empty value is absent. A text that is not a
/// boolean where one is needed stays a text, so that decoding rejects it by name.
pub(super) fn object(query: Option<&str>) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let pairs = pairs.filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| (name.clone().into_owned(), typed(&name, value.into_owned()))).collect()
}

fn typed(name: &str, text: String) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" if BOOLEANS.contains(&name) => Value::Bool(true),
        "false" if BOOLEANS.contains(&name) => Value::Bool(false),
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
            (Some("historyLength=3"), json!({"historyLength": "3"})),
            (Some("historyLength=-1&pageSize=abc"), json!({"historyLength": "-1", "pageSize": "abc"})),
            (Some("pageSize=&contextId="), json!({})),
            (Some("contextId=5&contextId=a+b%26c"), json!({"contextId": "a b&c"})),
            (Some("includeArtifacts=True&status=true"), json!({"includeArtifacts": true, "status": "true"})),
            (Some("include_artifacts=true"), json!({"include_artifacts": true})),
            (Some("includeArtifacts=1"), json!({"includeArtifacts": "1"})),
            (Some("A2A-Version=1.0"), json!({"A2A-Version": "1.0"})),
        ] {
            assert_eq!(Value::Object(object(query)), expected, "{query:?}");
        }
    }
}

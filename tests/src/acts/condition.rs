//! The condition of a repeated step: `path == value`, `path != value`, `path in [a, b]`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::path;

/// Whether `condition` holds for an answer. Values are bare words; a missing member equals nothing.
///
/// # Errors
/// When `condition` is none.
pub fn holds(condition: &str, root: &Value) -> Result<bool> {
    let broken = || format!("{condition:?} is none of: path == value, path != value, path in [a, b]");
    if let Some((path, word)) = condition.split_once("!=") {
        return Ok(!is(path, word, root)?);
    }
    if let Some((path, word)) = condition.split_once("==") {
        return is(path, word, root);
    }
    let (path, list) = condition.split_once(" in ").with_context(broken)?;
    let words = list.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']')).with_context(broken)?;
    words.split(',').try_fold(false, |found, word| Ok(found || is(path, word, root)?))
}

fn is(path: &str, word: &str, root: &Value) -> Result<bool> {
    let word = word.trim().trim_matches(['"', '\'']);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(path::first(path.trim(), root)?.is_some_and(|value| text(value) == word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_holds_or_not() {
        let root = json!({"status": {"state": "DONE"}, "n": 3, "ok": true});
        for (condition, expected) in [
            ("status.state == DONE", true),
            ("status.state == \"DONE\"", true),
            ("status.state == OPEN", false),
            ("status.state != OPEN", true),
            ("status.state in [OPEN, DONE]", true),
            ("status.state in [OPEN]", false),
            ("n == 3", true),
            ("ok == true", true),
            ("none == 3", false),
            ("none != 3", true),
        ] {
            assert_eq!(holds(condition, &root).unwrap(), expected, "{condition}");
        }
        for condition in ["status.state", "status.state in DONE", ""] {
            assert!(holds(condition, &root).is_err(), "{condition}");
        }
    }
}

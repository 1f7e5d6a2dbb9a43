//! Bounds of a request's JSON, checked on its bytes before any of it is decoded. Pure.
//!
//! A byte limit alone does not bound memory: a value of two bytes takes up to 1.2 kB once decoded, so a body of 10 MB took
//! 4.1 GB.

use std::slice;

use crate::error::A2aError;

/// Most JSON values of one request: about 24 MB once decoded. A table of 1,000 rows and 20 columns fits.
pub(super) const MAX_VALUES: usize = 20_000;

/// Deepest nesting of a request. `serde_json` accepts 128.
pub(super) const MAX_DEPTH: usize = 64;

/// Checks the JSON text of the parameter or body named `field`.
pub(super) fn check(json: &[u8], field: &str) -> Result<(), A2aError> {
    let Size { values, depth } = measure(json);
    if values > MAX_VALUES {
        let what = format!("has {values} JSON values; at most {MAX_VALUES} are allowed in one request");
        return Err(A2aError::invalid(field, what));
    }
    if depth > MAX_DEPTH {
        let what = format!("is nested {depth} levels deep; at most {MAX_DEPTH} are allowed");
        return Err(A2aError::invalid(field, what));
    }
    Ok(())
}

/// The number of values in a JSON text, with one too many for each empty array or object, and their depth.
#[derive(Debug, PartialEq, Eq)]
struct Size {
    values: usize,
    depth: usize,
}

fn measure(json: &[u8]) -> Size {
    let (mut size, mut depth) = (Size { values: 1, depth: 0 }, 0_usize);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b',' => size.values += 1,
            b'{' | b'[' => {
                size.values += 1;
                depth += 1;
                size.depth = size.depth.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    size
}

/// Skips to the end of a string whose first quote has been read.
fn skip_string(bytes: &mut slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_levels_are_counted_outside_of_strings() {
        for (json, values, depth) in [
            ("1", 1, 0),
            (r#"{"a": 1, "b": [2, 3]}"#, 5, 2),
            (r#"["[{,", "\"[,", "\\", "é{"]"#, 5, 1),
            ("[]", 2, 1),
            ("[[[]]]", 4, 3),
            ("]]]}[", 2, 1),
            (r#""never ends, [[["#, 1, 0),
            (r#""ends in \"#, 1, 0),
            ("", 1, 0),
        ] {
            assert_eq!(measure(json.as_bytes()), Size { values, depth }, "{json}");
        }
    }

    #[test]
    fn a_request_at_the_limits_is_accepted_and_one_above_names_both_numbers() {
        let wide = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
        let deep = |depth: usize| format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
        for json in [wide(MAX_VALUES), deep(MAX_DEPTH)] {
            assert_eq!(check(json.as_bytes(), "params"), Ok(()));
        }
        for (json, says) in [
            (wide(MAX_VALUES + 1), "params: has 20001 JSON values; at most 20000 are"),
            (deep(MAX_DEPTH + 1), "params: is nested 65 levels deep; at most 64 are"),
        ] {
            let error = check(json.as_bytes(), "params").unwrap_err();
            assert_eq!(error.code(crate::version::ProtocolVersion::V1_0), -32602);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

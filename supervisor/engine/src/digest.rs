//! What identifies an interaction: an id, a digest of exactly what is asked, and a short code for people.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The characters of an id and of a digest.
const ID_CHARS: usize = 32;

/// The characters of a short digest.
const SHORT_CHARS: usize = 16;

/// The characters of a code, hexadecimal digits.
pub const CODE_CHARS: usize = 4;

/// The id and the digest of what is asked. `seed` is different for each question.
pub(crate) fn identity(asked: &Value, seed: &str) -> (String, String) {
    let digest = hash(&canonical(asked));
    (hash(&canonical(&json!([seed, digest]))), digest)
}

/// The short code of an interaction with this id.
pub(crate) fn code(id: &str) -> String {
    hash(id).chars().take(CODE_CHARS).collect()
}

/// A short digest of a text, for the guards.
pub(crate) fn short(text: &str) -> String {
    let mut hash = hash(text);
    hash.truncate(SHORT_CHARS);
    hash
}

fn hash(text: &str) -> String {
    let mut out = String::with_capacity(ID_CHARS);
    for byte in Sha256::digest(text).iter().take(ID_CHARS / 2) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The value as JSON whose objects have their members in the order of the names: equal values have one text. RFC 8785 does not
/// serve, because it writes integers as floating-point numbers, so that two large ids could have one text.
pub(crate) fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: &str, seed: &str) -> (String, String) {
        identity(&serde_json::from_str(asked).unwrap(), seed)
    }

    #[test]
    fn equal_questions_have_one_digest_and_each_has_its_id() {
        let (id, digest) = of(r#"["jira","delete",{"a":1,"b":{"c":[1,2],"d":"x"}}]"#, "1");
        assert_eq!(digest, of(r#"["jira","delete",{"b":{"d":"x","c":[1,2]},"a":1}]"#, "1").1);
        for other in [
            r#"["github","delete",{"a":1,"b":{"c":[1,2],"d":"x"}}]"#,
            r#"["jira","close",{"a":1,"b":{"c":[1,2],"d":"x"}}]"#,
            r#"["jira","delete",{"a":"1","b":{"c":[1,2],"d":"x"}}]"#,
            r#"["jira","delete",{"a":1,"b":{"c":[2,1],"d":"x"}}]"#,
        ] {
            assert_ne!(digest, of(other, "1").1, "{other}");
        }
        let large = |id: u64| of(&format!("[{id}]"), "1").1;
        assert_ne!(large((1 << 53) + 1), large(1 << 53));
        let (other, same) = of(r#"["jira","delete",{"a":1,"b":{"c":[1,2],"d":"x"}}]"#, "2");
        assert!(other != id && same == digest, "the same call, asked about again");
        assert_eq!((id.len(), code(&id).len()), (ID_CHARS, CODE_CHARS));
    }
}

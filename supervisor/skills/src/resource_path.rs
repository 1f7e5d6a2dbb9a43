//! Paths of files below the folder of a skill. Pure.

use crate::limits::{PATH_CHARS, PATH_DEPTH};

/// Checks the path of a file below the folder of a skill, for example `references/severity.md`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(path: &str) -> Result<(), String> {
    let parts: Vec<&str> = path.split('/').collect();
    if path.is_empty() || path.chars().count() > PATH_CHARS {
        return Err(format!("must have 1 to {PATH_CHARS} characters"));
    }
    if parts.len() > PATH_DEPTH {
        return Err(format!("is more than {PATH_DEPTH} folders deep"));
    }
    if parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        return Err("must be relative, without `.`, `..` and empty parts".to_owned());
    }
    if parts.iter().any(|part| part.starts_with('.') || part.ends_with('.') || part.ends_with(' ')) {
        return Err("has a hidden file or a name that some systems change".to_owned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/ +@".contains(c);
    if !path.chars().all(is_plain) {
        return Err("may have ASCII letters, digits, spaces and ._-+@ only".to_owned());
    }
    Ok(())
}

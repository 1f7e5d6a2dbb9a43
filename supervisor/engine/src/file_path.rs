//! The paths of files.

use crate::file_limits::PATH_BYTES;

/// The stored form of a path: absolute, without `.` and empty segments.
pub(crate) fn normalise(path: &str) -> Result<String, String> {
    let path = path.trim();
    if path.is_empty() || path.len() > PATH_BYTES || path.chars().any(char::is_control) {
        return Err(format!(
            "failed to use the path: give a path of 1 to {PATH_BYTES} bytes without control characters."
        ));
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if segments.contains(&"..") {
        return Err(format!(
            "failed to use the path {path:?}: \"..\" is not allowed, give an absolute path."
        ));
    }
    Ok(format!("/{}", segments.join("/")))
}

/// Whether a path is that of a folder, or of something in it.
pub(crate) fn is_under(path: &str, folder: &str) -> bool {
    folder == "/" || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

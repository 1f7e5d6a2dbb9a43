//! Secrets that are mounted as files: one directory for each owner, one file for each variable.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The process environment, as it was at the start.
pub type Environment = Arc<BTreeMap<String, String>>;

/// The largest secret that is read, in bytes; Kubernetes stores no larger one.
const MAX_SECRET: u64 = 1_048_576;

/// The environment as an owner of secrets sees it: its own files first.
pub fn with_secrets(env: &Environment, directory: Option<&str>) -> Environment {
    let Some(directory) = directory else { return env.clone() };
    let mut all = env.as_ref().clone();
    match std::fs::read_dir(directory) {
        Ok(entries) => all.extend(entries.filter_map(Result::ok).filter_map(|entry| read(&entry.path()))),
        Err(error) => tracing::warn!(directory, %error, "failed to read a directory of secrets"),
    }
    all.into()
}

/// A file as a variable; `None` for the hidden entries with which the kubelet replaces the content.
fn read(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?;
    let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if name.starts_with('.') || size > MAX_SECRET {
        return None;
    }
    let value = std::fs::read_to_string(path).ok()?;
    Some((name.to_owned(), value.trim_end_matches(['\r', '\n']).to_owned()))
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;

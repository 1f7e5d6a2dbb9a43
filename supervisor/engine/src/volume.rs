//! The files of an agent's workspace that are on a volume: everything below [`VOLUME`]. The edge reads and writes them; the other
//! files are those of the conversation.

use serde_json::{Map, Value};

use crate::file_path::{is_under, normalise};

/// The folder of these files.
pub const VOLUME: &str = "/workspace";

/// What the model reads after a list or a search that could have gone there.
pub(crate) const HINT: &str =
    "\n[The files below /workspace are listed and searched only if path or pattern begins with it.]";

/// What the model reads of the volume when a run begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeView {
    /// The names at its root, folders with a `/` at the end.
    pub entries: Vec<String>,
    /// The text of its `PROGRESS.json`, if there is one.
    pub progress: Option<String>,
}

/// Whether a call of a file tool is about the volume.
pub(crate) fn is_on_volume(tool: &str, arguments: &Map<String, Value>) -> bool {
    let argument = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)?.as_str());
    match tool {
        "glob" => argument(&["pattern"]).is_some_and(|pattern| of_pattern(pattern).is_some()),
        "ls" | "grep" => argument(&["path"]).is_some_and(contains),
        _ => argument(&["file_path", "path"]).is_some_and(contains),
    }
}

/// Whether a call lists or searches the files of the conversation without naming one of their folders.
pub(crate) fn leaves_volume_out(tool: &str, arguments: &Map<String, Value>) -> bool {
    let path = arguments.get("path").and_then(Value::as_str).map(normalise);
    let is_root = path.is_none_or(|path| path.is_ok_and(|path| path == "/"));
    tool == "glob" || (matches!(tool, "ls" | "grep") && is_root)
}

/// The folder that a pattern of paths is limited to, if it is the volume.
pub(crate) fn of_pattern(pattern: &str) -> Option<&'static str> {
    let rest = pattern.trim_start_matches('/').strip_prefix(VOLUME.trim_start_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(VOLUME)
}

fn contains(path: &str) -> bool {
    normalise(path).is_ok_and(|path| is_under(&path, VOLUME))
}

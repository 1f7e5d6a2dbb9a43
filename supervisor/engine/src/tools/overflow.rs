//! Texts that the engine keeps as virtual files, because they are too long for the conversation.

use std::fmt::Write as _;

use caipe_model::truncated;
use serde_json::Value;

use super::files;
use super::specs::offers_files;
use crate::file_limits::{FILE_BYTES, LINE_CHARS};
use crate::state::RunState;

/// Keeps a text as the next file of a folder, and returns its path. `None` if
/// the model cannot read virtual files, or they leave no room.
pub(crate) fn store(state: &mut RunState, folder: &str, name: &str, text: &str) -> Option<String> {
    if !offers_files(&state.abilities) {
        return None;
    }
    let content = truncated(&readable(text), FILE_BYTES / 4, "").into_owned();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(40).collect();
    let path = format!("{folder}/{:04}-{name}.txt", next_number(state, folder));
    files::store_file(state, path.clone(), content).ok().map(|_| path)
}

/// The number after that of the newest file of the folder.
fn next_number(state: &RunState, folder: &str) -> u64 {
    let newest = files::in_folder(&state.files, folder).next_back();
    let number = newest.and_then(|path| path.strip_prefix(folder)?.get(1..5)?.parse::<u64>().ok());
    number.map_or(1, |number| number + 1)
}

/// The text in lines that `read_file` shows whole: JSON is indented, other long lines are wrapped.
fn readable(text: &str) -> String {
    let is_long = |text: &str| text.lines().any(|line| line.len() > LINE_CHARS);
    if !is_long(text) {
        return text.to_owned();
    }
    let json = serde_json::from_str::<Value>(text).ok();
    let indented = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    let text = indented.as_deref().unwrap_or(text);
    let mut wrapped = String::with_capacity(text.len() + text.len() / LINE_CHARS);
    for line in text.lines() {
        let mut rest = line;
        while let Some((at, _)) = rest.char_indices().nth(LINE_CHARS) {
            let (head, tail) = rest.split_at(at);
            let _ = writeln!(wrapped, "{head}");
            rest = tail;
        }
        let _ = writeln!(wrapped, "{rest}");
    }
    wrapped
}

#[cfg(test)]
#[path = "overflow_tests.rs"]
mod tests;

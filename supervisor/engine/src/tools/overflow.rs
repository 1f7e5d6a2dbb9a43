//! Texts that the engine stores as virtual files, because they are too long for the conversation.

use std::fmt::Write as _;

use serde_json::Value;

use super::files;
use super::specs::offers_files;
use crate::file_limits::{FILE_BYTES, LINE_CHARS};
use crate::state::RunState;

/// Most files of one text.
const MOST_PIECES: usize = 3;

/// Where a text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The path of its file, or of the first and the last one.
    pub(crate) paths: String,
    /// Whether all of the text is there.
    pub(crate) is_whole: bool,
}

/// Stores a text in the next files of a folder. `None` if the model cannot read virtual files, or they leave no room.
pub(crate) fn store(state: &mut RunState, folder: &str, name: &str, text: &str) -> Option<Stored> {
    if !offers_files(&state.abilities) {
        return None;
    }
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(40).collect();
    let pieces = pieces(&readable(text));
    let count = pieces.len();
    let mut paths = Vec::new();
    for piece in pieces.into_iter().take(MOST_PIECES) {
        let path = format!("{folder}/{:04}-{name}.txt", next_number(state, folder));
        if files::store_file(state, &path, piece).is_err() {
            break;
        }
        paths.push(path);
    }
    let (first, last) = (paths.first()?, paths.last()?);
    let range = if first == last { first.clone() } else { format!("{first} to {last}") };
    Some(Stored { paths: range, is_whole: paths.len() == count })
}

/// The text in pieces of whole lines that files can have.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in text.split_inclusive('\n') {
        match pieces.last_mut().filter(|piece| piece.len() + line.len() <= FILE_BYTES) {
            Some(piece) => piece.push_str(line),
            None => pieces.push(line.to_owned()),
        }
    }
    pieces
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

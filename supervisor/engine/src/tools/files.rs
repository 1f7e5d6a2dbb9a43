//! The virtual files of a conversation, and the tools that work on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_model::{Part, ToolResult, truncated};
use serde_json::{Map, Value};

use super::WRITE_TOOLS;
use super::glob::path_matcher;
use crate::file_limits::{FILE_BYTES, FOLDERS, LINE_CHARS, PATH_BYTES, TOTAL_BYTES};
use crate::file_rights::{FileChanges, SCRATCHPAD, SCRATCHPAD_BYTES, is_in_scratchpad};
use crate::state::RunState;
use crate::workspace::{PROGRESS, check_progress};

/// The files of a conversation, by path.
type Files = BTreeMap<String, String>;

/// Lines that `read_file` returns by default.
const READ_LINES: u64 = 2000;

/// Most hits of `ls`, `glob` and `grep`.
const MOST_HITS: usize = 500;

/// The hits of `grep` that the model reads if there are too many.
const FIRST_HITS: usize = 10;

/// The rules for what is written.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Most files.
    most: usize,
    /// Whether [`PROGRESS`] has a form.
    has_workspace: bool,
}

impl Rules {
    fn of(state: &RunState) -> Self {
        Self { most: state.abilities.limits.files, has_workspace: state.abilities.workspace }
    }
}

/// What the model reads of a call: its result, or why it failed.
type FileResult = Result<String, String>;

/// Runs one of [`FILE_TOOLS`](super::FILE_TOOLS).
pub(crate) fn run_file_tool(state: &mut RunState, name: &str, arguments: &Map<String, Value>) -> FileResult {
    let path = required(arguments, &["file_path", "path"]).and_then(normalise).ok();
    let written = path.as_deref().filter(|_| WRITE_TOOLS.contains(&name));
    written.map_or(Ok(()), |path| state.abilities.writes.permit(path))?;
    let result = run(state, name, arguments);
    if let Some(path) = path.filter(|_| result.is_ok()) {
        note_use(state, name, &path);
    }
    result
}

/// Notes the files that the model has written, and those that it has looked into.
fn note_use(state: &mut RunState, name: &str, path: &str) {
    let is_written = WRITE_TOOLS.contains(&name);
    if is_written {
        state.note_change(path);
    }
    match name {
        _ if state.abilities.verification.is_none() => {}
        _ if is_written => state.unverified.wrote(path),
        "read_file" | "grep" => state.unverified.read(path),
        _ => {}
    }
}

fn run(state: &mut RunState, name: &str, arguments: &Map<String, Value>) -> FileResult {
    let rules = Rules::of(state);
    match name {
        "ls" => ls(&state.files, arguments),
        "read_file" => read(&state.files, arguments),
        "write_file" => write(Arc::make_mut(&mut state.files), arguments, rules),
        "edit_file" => edit(Arc::make_mut(&mut state.files), arguments, rules),
        "glob" => glob(&state.files, arguments),
        "grep" => grep(&state.files, arguments, state.abilities.limits.compact_lines),
        _ => tool_result_to_file(state, arguments, rules),
    }
}

fn tool_result_to_file(state: &mut RunState, arguments: &Map<String, Value>, rules: Rules) -> FileResult {
    let path = normalise(required(arguments, &["file_path", "path"])?)?;
    let given = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let result = newest_result(state, given("tool_call_id"), given("tool_name")).ok_or_else(|| {
        "failed to find the tool result: no earlier call in this conversation fits. Call the tool first, and store its \
         result in a later turn."
            .to_owned()
    })?;
    let content = result.content.clone();
    store(Arc::make_mut(&mut state.files), &path, content, rules)
}

/// The newest result of this call, if one is named, and of this tool, if one is named.
fn newest_result<'a>(state: &'a RunState, id: Option<&str>, tool: Option<&str>) -> Option<&'a ToolResult> {
    let parts = state.messages.iter().rev().flat_map(|message| message.parts.iter().rev());
    let mut results = parts.filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    let tool_of = |id: &str| {
        let mut calls = state.messages.iter().flat_map(|message| message.tool_calls());
        calls.find(|call| call.id == id).map(|call| call.name.as_str())
    };
    results.find(|result| {
        id.is_none_or(|id| result.call_id == id)
            && tool.is_none_or(|tool| tool_of(&result.call_id) == Some(tool))
    })
}

/// The stored form of a path: absolute, without `.` and empty segments.
fn normalise(path: &str) -> FileResult {
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

fn ls(files: &Files, arguments: &Map<String, Value>) -> FileResult {
    let folder = folder(arguments)?;
    let hits = files.iter().filter(|(path, _)| is_under(path, &folder));
    let lines = hits.map(|(path, content)| format!("{path} ({} bytes)", content.len()));
    Ok(listed(lines, "There are no files here."))
}

fn glob(files: &Files, arguments: &Map<String, Value>) -> FileResult {
    let pattern = path_matcher(required(arguments, &["pattern"])?)?;
    let hits = files.keys().filter(|path| pattern.is_match(path));
    Ok(listed(hits.cloned(), "No file matches."))
}

/// The lines that contain a text. If there are more than `compact_lines`, the number and the first of them, unless the model
/// says how many it wants.
fn grep(files: &Files, arguments: &Map<String, Value>, compact_lines: usize) -> FileResult {
    let wanted = required(arguments, &["pattern"])?;
    if wanted.is_empty() {
        return Err("failed to search: \"pattern\" is empty.".to_owned());
    }
    let folder = folder(arguments)?;
    let pattern = arguments.get("glob").and_then(Value::as_str).map(path_matcher).transpose()?;
    let hits = files
        .iter()
        .filter(|(path, _)| {
            is_under(path, &folder) && pattern.as_ref().is_none_or(|pattern| pattern.is_match(path))
        })
        .flat_map(|(path, content)| {
            content.lines().enumerate().map(move |(number, line)| (path, number + 1, line))
        })
        .filter(|(_, _, line)| line.contains(wanted))
        .map(|(path, number, line)| format!("{path}:{number}:{}", truncated(line, LINE_CHARS, "")));
    let wanted = arguments.get("limit").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
    let most =
        wanted.unwrap_or(if compact_lines > 0 { compact_lines } else { MOST_HITS }).clamp(1, MOST_HITS);
    let mut lines: Vec<String> = hits.clone().take(most + 1).collect();
    if lines.len() <= most {
        return Ok(listed(lines.into_iter(), "No line contains it."));
    }
    lines.truncate(if wanted.is_none() && compact_lines > 0 { FIRST_HITS } else { most });
    let (count, shown) = (hits.count(), lines.len());
    let text = lines.join("\n");
    Ok(format!(
        "{count} lines contain it. The first {shown}:\n{text}\n[Narrow the search with path, glob or a longer text, or set limit, at \
         most {MOST_HITS}.]"
    ))
}

fn read(files: &Files, arguments: &Map<String, Value>) -> FileResult {
    let (path, content) = existing(files, arguments)?;
    if content.is_empty() {
        return Ok(format!("{path} is empty."));
    }
    let count = |key: &str, default| arguments.get(key).and_then(Value::as_u64).unwrap_or(default);
    let (offset, limit) = (count("offset", 0), count("limit", READ_LINES));
    let (skip, take) =
        (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
    let lines: Vec<String> = content
        .lines()
        .enumerate()
        .skip(skip)
        .take(take)
        .map(|(number, line)| format!("{:>6}\t{}", number + 1, truncated(line, LINE_CHARS, "")))
        .collect();
    if lines.is_empty() {
        return Err(format!(
            "failed to read {path} from line {offset}: it has {} lines.",
            content.lines().count()
        ));
    }
    let (all, next) = (content.lines().count(), skip.saturating_add(lines.len()));
    let rest = (next < all).then(|| {
        let bytes = content.len();
        format!("\n[The file has {all} lines and {bytes} bytes. The next lines: offset {next}.]")
    });
    Ok(lines.join("\n") + &rest.unwrap_or_default())
}

fn write(files: &mut Files, arguments: &Map<String, Value>, rules: Rules) -> FileResult {
    let path = normalise(required(arguments, &["file_path", "path"])?)?;
    let content = required(arguments, &["content"])?;
    store(files, &path, content.to_owned(), rules)
}

fn edit(files: &mut Files, arguments: &Map<String, Value>, rules: Rules) -> FileResult {
    let (path, content) = existing(files, arguments)?;
    let (old, new) = (required(arguments, &["old_string"])?, required(arguments, &["new_string"])?);
    let all = arguments.get("replace_all").and_then(Value::as_bool).unwrap_or_default();
    let found = if old.is_empty() { 0 } else { content.matches(old).count() };
    match found {
        0 => Err(format!("failed to edit {path}: the old text does not occur in it. Read the file first.")),
        1 => store(files, &path, content.replacen(old, new, 1), rules),
        // Checked before the replacement, which could need much memory.
        _ if all && content.len().saturating_add(found.saturating_mul(new.len())) <= FILE_BYTES => {
            store(files, &path, content.replace(old, new), rules)
        }
        _ if all => {
            Err(format!("failed to edit {path}: the result would have more than {FILE_BYTES} bytes."))
        }
        _ => Err(format!(
            "failed to edit {path}: the old text occurs {found} times. Give more of it, or set replace_all."
        )),
    }
}

/// Stores a virtual file of the conversation within the limits.
pub(crate) fn store_file(state: &mut RunState, path: &str, content: String) -> FileResult {
    let rules = Rules::of(state);
    let message = store(Arc::make_mut(&mut state.files), path, content, rules)?;
    state.note_change(path);
    Ok(message)
}

/// Applies what a tool call has changed. Returns the changes that the agent's rights or the limits do not permit, a sentence each.
pub(crate) fn apply_output(state: &mut RunState, mut changes: FileChanges) -> Vec<String> {
    let mut faults = Vec::new();
    changes.retain(|path, _| {
        let permit = normalise(path).and_then(|path| state.abilities.writes.permit(&path));
        permit.map_err(|fault| faults.push(fault)).is_ok()
    });
    faults.extend(apply_changes(state, changes));
    faults
}

/// Applies changes. Returns those that the limits do not permit, a sentence each.
pub(crate) fn apply_changes(state: &mut RunState, changes: FileChanges) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, content) in changes {
        let applied = normalise(&path).and_then(|path| {
            if let Some(content) = content {
                return store_file(state, &path, content);
            }
            state.note_change(&path);
            Arc::make_mut(&mut state.files).remove(&path);
            Ok(path)
        });
        faults.extend(applied.err());
    }
    faults
}

/// Stores a file within the limits.
fn store(files: &mut Files, path: &str, content: String, rules: Rules) -> FileResult {
    if path == "/" {
        return Err("failed to write: the path names no file.".to_owned());
    }
    let Rules { most, has_workspace } = rules;
    if has_workspace && path == PROGRESS {
        check_progress(&content)?;
    }
    if content.len() > FILE_BYTES {
        return Err(format!(
            "failed to write {path}: {} bytes are more than the {FILE_BYTES} that a file may have.",
            content.len()
        ));
    }
    if is_full(files, path, content.len()) {
        return Err(format!(
            "failed to write {path}: all files in {SCRATCHPAD} together may have {SCRATCHPAD_BYTES} bytes. Shorten one."
        ));
    }
    make_room(files, path, content.len(), most);
    if !files.contains_key(path) && files.len() >= most {
        return Err(format!(
            "failed to write {path}: there are {most} files already, which is the limit. Reuse one."
        ));
    }
    let others: usize =
        files.iter().filter(|(known, _)| known.as_str() != path).map(|(_, content)| content.len()).sum();
    if others + content.len() > TOTAL_BYTES {
        return Err(format!(
            "failed to write {path}: all files together may have {TOTAL_BYTES} bytes. Shorten one."
        ));
    }
    let message = format!("Wrote {} bytes to {path}.", content.len());
    files.insert(path.to_owned(), content);
    Ok(message)
}

/// Whether the shared files would have too many bytes with this one.
fn is_full(files: &Files, path: &str, bytes: usize) -> bool {
    let others = in_folder(files, SCRATCHPAD).filter(|known| *known != path);
    let used: usize = others.filter_map(|path| files.get(path)).map(String::len).sum();
    is_in_scratchpad(path) && used + bytes > SCRATCHPAD_BYTES
}

/// Removes the oldest files that the engine keeps, as far as this file needs their room.
fn make_room(files: &mut Files, path: &str, bytes: usize, most: usize) {
    while !fits(files, path, bytes, most) {
        let mut others =
            FOLDERS.iter().filter_map(|folder| in_folder(files, folder).find(|known| *known != path));
        let Some(oldest) = others.next().cloned() else { return };
        files.remove(&oldest);
    }
}

fn fits(files: &Files, path: &str, bytes: usize, most: usize) -> bool {
    let others = files.iter().filter(|(known, _)| *known != path);
    let (count, total) = others.fold((0, bytes), |(count, total), (_, it)| (count + 1, total + it.len()));
    count < most && total <= TOTAL_BYTES
}

/// The paths of the files of a folder, in order.
pub(crate) fn in_folder<'a>(files: &'a Files, folder: &str) -> impl DoubleEndedIterator<Item = &'a String> {
    // '0' is the character after '/'.
    files.range(format!("{folder}/")..format!("{folder}0")).map(|(path, _)| path)
}

/// The argument under the first of these names.
fn required<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Result<&'a str, String> {
    let given = names.iter().find_map(|name| arguments.get(*name)?.as_str());
    given.ok_or_else(|| {
        format!("failed to read the arguments: give {:?} as a string.", names.first().unwrap_or(&""))
    })
}

fn existing(files: &Files, arguments: &Map<String, Value>) -> Result<(String, String), String> {
    let path = normalise(required(arguments, &["file_path", "path"])?)?;
    match files.get(&path) {
        Some(content) => Ok((path, content.clone())),
        None => Err(format!("failed to open {path}: there is no such file. Use ls to see what there is.")),
    }
}

fn folder(arguments: &Map<String, Value>) -> FileResult {
    arguments.get("path").and_then(Value::as_str).map_or_else(|| Ok("/".to_owned()), normalise)
}

fn is_under(path: &str, folder: &str) -> bool {
    folder == "/" || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn listed(hits: impl Iterator<Item = String>, none: &str) -> String {
    let mut lines: Vec<String> = hits.take(MOST_HITS + 1).collect();
    if lines.is_empty() {
        return none.to_owned();
    }
    if lines.len() > MOST_HITS {
        lines.truncate(MOST_HITS);
        lines.push(format!("There are more; the first {MOST_HITS} are shown."));
    }
    lines.join("\n")
}

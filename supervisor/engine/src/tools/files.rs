//! The virtual files of a conversation, and the tools that work on them or on the files of a volume.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use caipe_model::{Part, ToolResult, truncated};
use serde_json::{Map, Value};

use super::glob::path_matcher;
use super::{RESULT_TOOL, WRITE_TOOLS};
use crate::file_limits::{FILE_BYTES, FOLDERS, LINE_CHARS, TOTAL_BYTES};
use crate::file_path::{is_under, normalise};
use crate::file_rights::{FileChanges, FileWrites, SCRATCHPAD, SCRATCHPAD_BYTES, is_in_scratchpad};
use crate::state::RunState;
use crate::volume::{self, VOLUME};
use crate::workspace::{PROGRESS, check_progress};

/// The files of a conversation, by path.
type Files = BTreeMap<String, String>;

/// Lines that `read_file` returns by default.
const READ_LINES: u64 = 2000;

/// Most hits of `ls`, `glob` and `grep`.
const MOST_HITS: usize = 500;

/// The hits of `grep` that the model reads if there are too many.
const FIRST_HITS: usize = 10;

/// What the model reads of a call: its result, or why it failed.
pub type FileResult = Result<String, String>;

/// Files that [`run_file_tool_on`] works on. Paths are absolute, without `.`, `..` and empty segments; errors are for the model.
pub trait FileTree {
    /// Visits the files of a folder, with their sizes in bytes and in the order of their paths, until the visitor breaks.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn visit(
        &self,
        folder: &str,
        visitor: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> Result<(), String>;

    /// The text of a file.
    ///
    /// # Errors
    /// If there is no such file, or it is no text.
    fn text(&self, path: &str) -> Result<Cow<'_, str>, String>;

    /// Writes a file, whole. Returns what the model reads.
    ///
    /// # Errors
    /// If the file cannot be written; it is unchanged then.
    fn store(&mut self, path: &str, content: String) -> FileResult;
}

/// The virtual files of a run, and the rules for what is written.
struct VirtualFiles<'a> {
    files: &'a mut Arc<Files>,
    rules: Rules,
}

impl FileTree for VirtualFiles<'_> {
    fn visit(
        &self,
        folder: &str,
        visitor: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> Result<(), String> {
        for (path, content) in self.files.iter().filter(|(path, _)| is_under(path, folder)) {
            if visitor(path, content.len() as u64).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn text(&self, path: &str) -> Result<Cow<'_, str>, String> {
        let content = self.files.get(path);
        content.map(|content| Cow::Borrowed(&**content)).ok_or_else(|| missing_file(path))
    }

    fn store(&mut self, path: &str, content: String) -> FileResult {
        store(Arc::make_mut(self.files), path, content, self.rules)
    }
}

/// The error for a file that does not exist.
pub fn missing_file(path: &str) -> String {
    format!("failed to open {path}: there is no such file. Use ls to see what there is.")
}

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

/// Runs one of [`FILE_TOOLS`](super::FILE_TOOLS) on the virtual files.
pub(crate) fn run_file_tool(state: &mut RunState, name: &str, arguments: &Map<String, Value>) -> FileResult {
    permit(state.abilities.writes, name, arguments)?;
    let rules = Rules::of(state);
    let compact_lines = state.abilities.limits.compact_lines;
    let arguments = &with_result(state, name, arguments)?;
    let mut tree = VirtualFiles { files: &mut state.files, rules };
    let mut result = run_file_tool_on(&mut tree, name, arguments, compact_lines)?;
    if state.abilities.volume && volume::leaves_volume_out(name, arguments) {
        result.push_str(volume::HINT);
    }
    note_use(state, name, arguments);
    Ok(result)
}

/// Checks that a call may write the file that it names.
///
/// # Errors
/// Why it may not, for the model.
pub(crate) fn permit(writes: FileWrites, name: &str, arguments: &Map<String, Value>) -> Result<(), String> {
    let path = written_path(arguments).filter(|_| WRITE_TOOLS.contains(&name));
    path.map_or(Ok(()), |path| writes.permit(&path))
}

/// The file that a call names, if it names one.
fn written_path(arguments: &Map<String, Value>) -> Option<String> {
    required(arguments, &["file_path", "path"]).and_then(normalise).ok()
}

/// Notes the file that the model has written with a call, or has looked into.
pub(crate) fn note_use(state: &mut RunState, name: &str, arguments: &Map<String, Value>) {
    let Some(path) = written_path(arguments) else { return };
    let is_written = WRITE_TOOLS.contains(&name);
    if is_written {
        state.note_change(&path);
    }
    match name {
        _ if state.abilities.verification.is_none() => {}
        _ if is_written => state.unverified.wrote(&path),
        "read_file" | "grep" => state.unverified.read(&path),
        _ => {}
    }
}

/// Runs one of [`FILE_TOOLS`](super::FILE_TOOLS) on files; `tool_result_to_file` with the result as `content`. A search with more than
/// `compact_lines` hits returns their number and the first of them, if the number is not 0.
///
/// # Errors
/// Why it failed, for the model.
pub fn run_file_tool_on(
    tree: &mut dyn FileTree,
    name: &str,
    arguments: &Map<String, Value>,
    compact_lines: usize,
) -> FileResult {
    match name {
        "ls" => ls(tree, arguments),
        "read_file" => read(tree, arguments),
        "edit_file" => edit(tree, arguments),
        "glob" => glob(tree, arguments),
        "grep" => grep(tree, arguments, compact_lines),
        _ => write(tree, arguments),
    }
}

/// The arguments of a call, with the content of the tool result that it shall store, if it is `tool_result_to_file`.
///
/// # Errors
/// If there is no such result, for the model.
pub(crate) fn with_result(
    state: &RunState,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut arguments = arguments.clone();
    if name == RESULT_TOOL {
        let content = tool_result(state, &arguments)?;
        arguments.insert("content".to_owned(), content.into());
    }
    Ok(arguments)
}

fn tool_result(state: &RunState, arguments: &Map<String, Value>) -> FileResult {
    let given = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let result = newest_result(state, given("tool_call_id"), given("tool_name")).ok_or_else(|| {
        "failed to find the tool result: no earlier call in this conversation fits. Call the tool first, and store its \
         result in a later turn."
            .to_owned()
    })?;
    Ok(result.content.clone())
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

fn ls(tree: &dyn FileTree, arguments: &Map<String, Value>) -> FileResult {
    let mut hits = Hits::default();
    tree.visit(&folder(arguments)?, &mut |path, bytes| hits.push(|| format!("{path} ({bytes} bytes)")))?;
    Ok(hits.listed("There are no files here."))
}

fn glob(tree: &dyn FileTree, arguments: &Map<String, Value>) -> FileResult {
    let pattern = required(arguments, &["pattern"])?;
    let (matcher, folder) = (path_matcher(pattern)?, volume::of_pattern(pattern).unwrap_or("/"));
    let mut hits = Hits::default();
    tree.visit(folder, &mut |path, _| {
        if matcher.is_match(path) { hits.push(|| path.to_owned()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(hits.listed("No file matches."))
}

/// The lines of a tool's result, at most [`MOST_HITS`].
#[derive(Default)]
struct Hits {
    lines: Vec<String>,
    has_more: bool,
}

impl Hits {
    fn push(&mut self, line: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.lines.len() == MOST_HITS {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.lines.push(line());
        ControlFlow::Continue(())
    }

    fn listed(mut self, none: &str) -> String {
        if self.lines.is_empty() {
            return none.to_owned();
        }
        if self.has_more {
            self.lines.push(format!("There are more; the first {MOST_HITS} are shown."));
        }
        self.lines.join("\n")
    }
}

/// The lines that contain a text. If there are more than `compact_lines`, the number and the first of them, unless the model
/// says how many it wants. Files that are no text are left out.
fn grep(tree: &dyn FileTree, arguments: &Map<String, Value>, compact_lines: usize) -> FileResult {
    let wanted = required(arguments, &["pattern"])?;
    if wanted.is_empty() {
        return Err("failed to search: \"pattern\" is empty.".to_owned());
    }
    let pattern = arguments.get("glob").and_then(Value::as_str).map(path_matcher).transpose()?;
    let limit = arguments.get("limit").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
    let most = limit.unwrap_or(if compact_lines > 0 { compact_lines } else { MOST_HITS }).clamp(1, MOST_HITS);
    let (mut lines, mut count) = (Vec::new(), 0);
    tree.visit(&folder(arguments)?, &mut |path, _| {
        let is_searched = pattern.as_ref().is_none_or(|pattern| pattern.is_match(path));
        let text = is_searched.then(|| tree.text(path).ok()).flatten();
        let numbered = text.iter().flat_map(|text| text.lines().enumerate());
        for (number, line) in numbered.filter(|(_, line)| line.contains(wanted)) {
            count += 1;
            if lines.len() < most {
                lines.push(format!("{path}:{}:{}", number + 1, truncated(line, LINE_CHARS, "")));
            }
        }
        ControlFlow::Continue(())
    })?;
    if count <= most {
        return Ok(if lines.is_empty() { "No line contains it.".to_owned() } else { lines.join("\n") });
    }
    lines.truncate(if limit.is_none() && compact_lines > 0 { FIRST_HITS } else { most });
    let (shown, text) = (lines.len(), lines.join("\n"));
    Ok(format!(
        "{count} lines contain it. The first {shown}:\n{text}\n[Narrow the search with path, glob or a longer text, or set limit, at \
         most {MOST_HITS}.]"
    ))
}

fn read(tree: &dyn FileTree, arguments: &Map<String, Value>) -> FileResult {
    let (path, content) = existing(tree, arguments)?;
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

fn write(tree: &mut dyn FileTree, arguments: &Map<String, Value>) -> FileResult {
    let path = normalise(required(arguments, &["file_path", "path"])?)?;
    let content = required(arguments, &["content"])?;
    tree.store(&path, content.to_owned())
}

fn edit(tree: &mut dyn FileTree, arguments: &Map<String, Value>) -> FileResult {
    let (path, content) = existing(tree, arguments)?;
    let (old, new) = (required(arguments, &["old_string"])?, required(arguments, &["new_string"])?);
    let all = arguments.get("replace_all").and_then(Value::as_bool).unwrap_or_default();
    let found = if old.is_empty() { 0 } else { content.matches(old).count() };
    let edited = match found {
        0 => Err(format!("failed to edit {path}: the old text does not occur in it. Read the file first.")),
        1 => Ok(content.replacen(old, new, 1)),
        // Checked before the replacement, which could need much memory.
        _ if all && content.len().saturating_add(found.saturating_mul(new.len())) <= FILE_BYTES => {
            Ok(content.replace(old, new))
        }
        _ if all => {
            Err(format!("failed to edit {path}: the result would have more than {FILE_BYTES} bytes."))
        }
        _ => Err(format!(
            "failed to edit {path}: the old text occurs {found} times. Give more of it, or set replace_all."
        )),
    }?;
    tree.store(&path, edited)
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
        let permit = normalise(path).and_then(|path| {
            if state.abilities.volume && is_under(&path, VOLUME) {
                return Err(format!("failed to store {path}: the files below {VOLUME} are on the volume, which the command has hidden."));
            }
            state.abilities.writes.permit(&path)
        });
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
    if path == "/" || path == VOLUME {
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

fn existing<'a>(
    tree: &'a dyn FileTree,
    arguments: &Map<String, Value>,
) -> Result<(String, Cow<'a, str>), String> {
    let path = normalise(required(arguments, &["file_path", "path"])?)?;
    let content = tree.text(&path)?;
    Ok((path, content))
}

fn folder(arguments: &Map<String, Value>) -> FileResult {
    arguments.get("path").and_then(Value::as_str).map_or_else(|| Ok("/".to_owned()), normalise)
}

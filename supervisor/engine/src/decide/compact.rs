//! Shortens the outputs that the model reads: a program that succeeded says little, one that failed says all. What is left out is
//! stored as a virtual file.

use caipe_model::truncated;

use crate::conversation::TRUNCATED;
use crate::file_limits::OUTPUTS;
use crate::file_rights::SCRATCHPAD;
use crate::names::AgentName;
use crate::state::RunState;
use crate::tools::overflow::{self, Stored};

/// The lines of a successful program that the model reads, if there are more than the limit.
const FIRST_LINES: usize = 5;

/// The output as the model reads it; `None` if it reads it whole. `chars` is the most that it reads of one output.
pub(super) fn shortened(
    state: &mut RunState,
    tool: &str,
    text: &str,
    (exit_code, chars): (Option<i32>, usize),
) -> Option<String> {
    let lines = state.abilities.limits.compact_lines;
    if exit_code == Some(0) && lines > 0 && text.lines().count() > lines {
        return Some(success(state, tool, text, chars));
    }
    // Most outputs are shorter in bytes already.
    if text.len() <= chars || text.chars().count() <= chars {
        return None;
    }
    let note = note(state, tool, text)?;
    Some(format!("{}\n\n{note}{TRUNCATED}", truncated(text, chars, "")))
}

/// The beginning of an agent's answer that has more than twice as many words as it shall have, and where the whole is. `None` if the
/// model reads the answer whole. `chars` is the most that it reads of one answer.
pub(super) fn long_answer(
    state: &mut RunState,
    agent: &AgentName,
    text: &str,
    (words, chars): (u32, usize),
) -> Option<String> {
    let most = words as usize;
    let count = text.split_whitespace().count();
    if count <= most.saturating_mul(2) {
        return None;
    }
    let Stored { paths, .. } =
        overflow::store(state, &format!("{SCRATCHPAD}/answers"), agent.as_str(), text)?;
    let first = truncated(first_words(text, most), chars, TRUNCATED);
    Some(format!(
        "{first}\n\n[The answer has {count} words, of which it shall have {most}. This is its beginning; the whole answer is in {paths}: read it with read_file, or \
         search it with grep.]"
    ))
}

fn first_words(text: &str, most: usize) -> &str {
    let ends = text.split_whitespace().take(most).last();
    // The word is a part of the text, so its distance from the start is where it ends.
    let end = ends.map_or(0, |word| word.as_ptr() as usize - text.as_ptr() as usize + word.len());
    text.get(..end).unwrap_or(text)
}

fn success(state: &mut RunState, tool: &str, text: &str, chars: usize) -> String {
    let first: Vec<&str> = text.lines().take(FIRST_LINES).collect();
    let count = text.lines().count();
    let shown = truncated(&first.join("\n"), chars, "").into_owned();
    let note = note(state, tool, text).map(|note| format!("\n\n{note}")).unwrap_or_default();
    format!("Command succeeded ({count} lines of output). First {FIRST_LINES} lines:\n{shown}{note}")
}

/// Stores the output, and says where.
fn note(state: &mut RunState, tool: &str, text: &str) -> Option<String> {
    let (chars, lines) = (text.chars().count(), text.lines().count());
    let Stored { paths, is_whole } = overflow::store(state, OUTPUTS, tool, text)?;
    let what = if is_whole { "It is" } else { "Its beginning is" };
    Some(format!(
        "[The whole output has {chars} characters in {lines} lines. {what} in {paths}: read it with read_file, or search it with \
         grep.]"
    ))
}

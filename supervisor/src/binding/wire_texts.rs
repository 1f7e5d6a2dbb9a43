//! The fixed texts of the wire. No other module contains them.

use caipe_engine::CallEnd;
use caipe_model::truncated;

/// A name for display, as Python's `str.title` writes it: a capital after every character without case, other letters in
/// lower case.
pub(super) fn title(name: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            push_title(&mut out, c);
        }
        inside = has_case(c);
    }
    out
}

fn has_case(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || c.to_lowercase().next() != Some(c)
}

/// The first letter of a word. If its capital has several letters, only the first one is a capital.
fn push_title(out: &mut String, c: char) {
    match c {
        // Letters that look like two have a form for the beginning of a word.
        '\u{1c4}'..='\u{1c6}' => out.push('\u{1c5}'),
        '\u{1c7}'..='\u{1c9}' => out.push('\u{1c8}'),
        '\u{1ca}'..='\u{1cc}' => out.push('\u{1cb}'),
        '\u{1f1}'..='\u{1f3}' => out.push('\u{1f2}'),
        // Georgian capitals are for whole words only.
        '\u{10d0}'..='\u{10ff}' => out.push(c),
        _ => {
            let mut begun = false;
            for capital in c.to_uppercase() {
                if begun {
                    out.extend(capital.to_lowercase());
                } else {
                    out.push(capital);
                }
                begun |= has_case(capital);
            }
        }
    }
}

/// The start of a delegation, or of a call of the supervisor's own tools.
pub(super) fn calling(name: &str) -> String {
    format!("🔧 Supervisor: Calling Agent {}...\n", title(name))
}

/// The end of such a call, with the reason of a failure. Upstream's Slack bot recognizes a failure by the word "error".
pub(super) fn called(name: &str, end: CallEnd, reason: &str) -> String {
    let name = title(name);
    match end {
        CallEnd::Completed => format!("✅ Supervisor: Agent task {name} completed\n"),
        CallEnd::Failed => format!("❌ {name}: error: {}\n", first_sentence(&one_line(reason))),
        CallEnd::Canceled => format!("❌ {name}: canceled\n"),
    }
}

/// The start of a sub-agent's tool call.
pub(super) fn agent_calling(agent: &str, tool: &str) -> String {
    format!("🔧 {}: Calling tool: {}\n", title(agent), title(tool))
}

/// The end of a sub-agent's tool call.
pub(super) fn agent_called(agent: &str, tool: &str, end: CallEnd) -> String {
    let (agent, tool) = (title(agent), title(tool));
    match end {
        CallEnd::Completed => format!("✅ {agent}: Tool {tool} completed\n"),
        CallEnd::Failed => format!("❌ {agent}: Tool {tool} failed with an error\n"),
        CallEnd::Canceled => format!("❌ {agent}: Tool {tool} canceled\n"),
    }
}

/// The output of a sub-agent's tool, with its line breaks.
pub(super) fn agent_tool_output(agent: &str, output: &str) -> String {
    format!("📄 {}: Tool output:\n{output}\n\n", title(agent))
}

/// The first characters of a tool's output, with a mark if some are missing.
pub(super) fn cut(output: &str, most: usize) -> String {
    truncated(output, most, "...\n[Output truncated]").into_owned()
}

/// The progress of an external agent: sign, name and text.
pub(super) fn noticed(agent: &str, text: &str) -> String {
    let (sign, words) = text.split_once(' ').unwrap_or(("🔧", text));
    format!("{sign} {}: {}\n", title(agent), one_line(words))
}

/// A step of the model's to-do list begins.
pub(super) fn todo_started(content: &str) -> String {
    format!("🔧 Workflow: Calling {}...\n", one_line(content))
}

/// A step of the model's to-do list is done.
pub(super) fn todo_finished(content: &str) -> String {
    format!("✅ Workflow: {} completed\n", one_line(content))
}

/// The description of the artifact that announces a call.
pub(super) fn started(name: &str) -> String {
    format!("Tool call started: {name}")
}

/// The description of the artifact that shows the output of a tool.
pub(super) fn tool_output(name: &str) -> String {
    format!("Tool output: {name}")
}

/// The description of the artifact that ends a call, the same for success and failure, because upstream's UI finds the
/// call by it. The text and the metadata have the outcome.
pub(super) fn ended(name: &str) -> String {
    format!("Tool call completed: {name}")
}

/// The failure, without the advice for the model.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// A notification is one line and no Markdown.
pub(super) fn one_line(text: &str) -> String {
    const MOST: usize = 300;
    let flat: Vec<&str> = text.split_whitespace().collect();
    let flat = flat.join(" ").replace("**", "");
    truncated(&flat, MOST, "...").into_owned()
}

#[cfg(test)]
#[path = "wire_texts_tests.rs"]
mod tests;

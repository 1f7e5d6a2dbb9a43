//! The fixed texts of the wire. Nobody else knows them.

use caipe_engine::CallEnd;
use caipe_model::truncated;

/// A name for display: a capital after everything that has no case, the rest small, as Python's `str.title` does.
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

/// The letter that a word begins with: of one that becomes several only the first is a capital.
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

/// The supervisor hands a task to an agent, or calls a tool of its own.
pub(super) fn calling(name: &str) -> String {
    format!("🔧 Supervisor: Calling Agent {}...\n", title(name))
}

/// How such a call ended; a failed one says why. Upstream's Slack bot knows a failure by the word "error".
pub(super) fn called(name: &str, end: CallEnd, reason: &str) -> String {
    let name = title(name);
    match end {
        CallEnd::Completed => format!("✅ Supervisor: Agent task {name} completed\n"),
        CallEnd::Failed => format!("❌ {name}: error: {}\n", first_sentence(&one_line(reason))),
        CallEnd::Canceled => format!("❌ {name}: canceled\n"),
    }
}

/// A sub-agent calls a tool.
pub(super) fn agent_calling(agent: &str, tool: &str) -> String {
    format!("🔧 {}: Calling tool: {}\n", title(agent), title(tool))
}

/// How a sub-agent's tool call ended.
pub(super) fn agent_called(agent: &str, tool: &str, end: CallEnd) -> String {
    let (agent, tool) = (title(agent), title(tool));
    match end {
        CallEnd::Completed => format!("✅ {agent}: Tool {tool} completed\n"),
        CallEnd::Failed => format!("❌ {agent}: Tool {tool} failed with an error\n"),
        CallEnd::Canceled => format!("❌ {agent}: Tool {tool} canceled\n"),
    }
}

/// What a sub-agent's tool returned; its line breaks stay.
pub(super) fn agent_tool_output(agent: &str, output: &str) -> String {
    format!("📄 {}: Tool output:\n{output}\n\n", title(agent))
}

/// The first characters of a tool's output, and the word that there was more.
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

/// The description of the artifact that shows what a tool returned.
pub(super) fn tool_output(name: &str) -> String {
    format!("Tool output: {name}")
}

/// The description of the artifact that ends a call, however it ended: upstream's UI finds the call by these words and
/// ends another one where they differ. How it ended is in the text and in the metadata.
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
#[path = "texts_tests.rs"]
mod tests;

//! Notifications without our metadata: status texts of older agents, and notifications of foreign agents. A sign at the
//! start distinguishes a notification from the answer. Pure.

use caipe_engine::CallEnd;
use caipe_model::truncated;

use super::probe::is_alike;

/// Most words of an agent's name.
const NAME_WORDS: usize = 4;
/// Longest line of a notification, in characters.
const LINE: usize = 300;

/// A text that is not part of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// A tool call started.
    Started {
        /// The agent whose tool it is, if it is not the sender.
        agent: Option<String>,
        /// The tool, as the text spells it.
        tool: String,
    },
    /// A tool call ended.
    Ended {
        /// The agent whose tool it is, if it is not the sender.
        agent: Option<String>,
        /// The tool, as the text spells it.
        tool: String,
        end: CallEnd,
    },
    Output(String),
    /// Anything else about the work: the sign, then one line.
    Other {
        /// The sign and the words, without the agent's own name.
        text: String,
        /// The reported end, if it reports one.
        end: Option<CallEnd>,
    },
}

/// Classifies a text of `agent`; `None` for a part of its answer. Only a sign at the start counts, because an answer may
/// contain signs too.
pub(super) fn classify(agent: &str, text: &str) -> Option<Notice> {
    let text = text.trim_start();
    let sign = ["🔧", "✅", "❌", "🔍", "📄", "📚", "🔁"].into_iter().find(|sign| text.starts_with(sign))?;
    // A variation selector may follow a sign.
    let rest = text.trim_start_matches(sign).trim_start_matches('\u{fe0f}').trim_start();
    if sign == "📄" {
        return Some(Notice::Output(output(rest).to_owned()));
    }
    let line = line(rest);
    let (name, words) = named(&line);
    let other = name.filter(|name| !is_alike(agent, name));
    let agent_of = || other.filter(|name| *name != "Supervisor").map(str::to_lowercase);
    let ended_notice =
        |verb, end| ended(words, verb).map(|tool| Notice::Ended { agent: agent_of(), tool, end });
    let (notice, end) = match sign {
        "🔧" => (started(words).map(|tool| Notice::Started { agent: agent_of(), tool }), None),
        "✅" => (ended_notice("completed", CallEnd::Completed), Some(CallEnd::Completed)),
        "❌" => (ended_notice("failed", CallEnd::Failed), Some(CallEnd::Failed)),
        _ => (None, None),
    };
    // A notice about an upstream supervisor's to-do list names no call.
    Some(notice.filter(|_| other != Some("Workflow")).unwrap_or_else(|| {
        // A supervisor names itself in what it reports about its own run.
        let is_other = other.is_some_and(|name| name != "Supervisor");
        let words = if is_other { line.as_str() } else { words };
        Notice::Other { text: format!("{sign} {words}"), end }
    }))
}

/// One line without Markdown, cut to a fixed size.
pub(super) fn line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("**", "");
    truncated(&flat, LINE, "...").into_owned()
}

/// The output of a tool in a text: everything after the heading.
pub(super) fn output(text: &str) -> &str {
    let heading = "Tool output:";
    let text = text.trim_start_matches("📄").trim_start();
    let found = text.lines().next().and_then(|first| first.find(heading));
    found.and_then(|at| text.get(at + heading.len()..)).unwrap_or(text).trim()
}

/// `Argocd: Calling tool: x` -> the name and the words. `Calling tool` is no name although a colon follows it.
fn named(line: &str) -> (Option<&str>, &str) {
    let split = line.split_once(": ").filter(|(head, _)| is_name(head));
    split.map_or((None, line), |(name, words)| (Some(name), words))
}

fn is_name(head: &str) -> bool {
    let first = head.split(' ').next().unwrap_or_default().to_lowercase();
    let speaks =
        ["calling", "tool", "using", "running", "executing", "agent", "querying", "checking", "searching"];
    !first.is_empty() && !speaks.contains(&first.as_str()) && head.split(' ').count() <= NAME_WORDS
}

/// `Calling tool: x`, `Calling x...`, `Calling Agent X...`.
fn started(words: &str) -> Option<String> {
    let rest = strip(words, "calling ")?;
    let rest =
        ["tool: ", "tool ", "agent "].into_iter().find_map(|prefix| strip(rest, prefix)).unwrap_or(rest);
    tool(rest.trim_end_matches(['.', '…']))
}

/// `Tool x completed`, `Agent task X completed`, `x completed`; the reason of a failure may follow.
fn ended(words: &str, how: &str) -> Option<String> {
    let lower = words.to_ascii_lowercase();
    let mut at =
        lower.match_indices(how).filter(|(at, _)| lower.get(..*at).is_some_and(|head| head.ends_with(' ')));
    let before = words.get(..at.next()?.0)?;
    let rest = ["tool: ", "tool ", "agent task "]
        .into_iter()
        .find_map(|prefix| strip(before, prefix))
        .unwrap_or(before);
    tool(rest)
}

/// A tool's name is one word.
fn tool(name: &str) -> Option<String> {
    let name = name.trim().trim_matches(['`', '"', '*']);
    let is_one = !name.is_empty() && !name.contains(char::is_whitespace);
    is_one.then(|| name.to_owned())
}

/// The text after a prefix, in upper or lower case.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    if head.eq_ignore_ascii_case(prefix) { text.get(prefix.len()..) } else { None }
}

#[cfg(test)]
#[path = "status_text_tests.rs"]
mod tests;

//! What an agent of the older generation says in its status texts, and what agents without our metadata put into
//! notifications: a sign at the beginning tells a notification from the answer. Pure.

use caipe_engine::CallEnd;
use caipe_model::truncated;

use super::probe::is_alike;

/// Names that agents give themselves have no more words than this.
const NAME_WORDS: usize = 4;
/// Longest line of a notification, in characters.
const LINE: usize = 300;

/// A text that is no part of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// A tool call begins.
    Started {
        /// Whose, if it is another agent's than the one that speaks.
        agent: Option<String>,
        /// The tool, as it is written there.
        tool: String,
    },
    /// A tool call ended.
    Ended {
        /// Whose, if it is another agent's than the one that speaks.
        agent: Option<String>,
        /// The tool, as it is written there.
        tool: String,
        end: CallEnd,
    },
    Output(String),
    /// Anything else about the work: the sign, then one line.
    Other {
        /// The sign and the words, without the agent's own name.
        text: String,
        /// How what it speaks of ended.
        end: Option<CallEnd>,
    },
}

/// What a text of `agent` is; `None` for words of its answer. Only a sign at the beginning counts: an answer may be
/// full of them.
pub(super) fn classify(agent: &str, text: &str) -> Option<Notice> {
    let text = text.trim_start();
    let sign = ["🔧", "✅", "❌", "🔍", "📄"].into_iter().find(|sign| text.starts_with(sign))?;
    // A variation selector may follow a sign.
    let rest = text.trim_start_matches(sign).trim_start_matches('\u{fe0f}').trim_start();
    if sign == "📄" {
        return Some(Notice::Output(output(rest).to_owned()));
    }
    let line = line(rest);
    let (name, words) = named(&line);
    let other = name.filter(|name| !is_alike(agent, name));
    let agent_of = || other.filter(|name| *name != "Supervisor").map(str::to_lowercase);
    let other_notice = |end| {
        let words = if other.is_some() { line.as_str() } else { words };
        Some(Notice::Other { text: format!("{sign} {words}"), end })
    };
    let notice = match sign {
        "🔧" => started(words).map(|tool| Notice::Started { agent: agent_of(), tool }),
        "✅" => ended(words, "completed")
            .map(|tool| (tool, CallEnd::Completed))
            .map(|(tool, end)| Notice::Ended { agent: agent_of(), tool, end }),
        "❌" => {
            ended(words, "failed").map(|tool| Notice::Ended { agent: agent_of(), tool, end: CallEnd::Failed })
        }
        _ => None,
    };
    // What an upstream supervisor says about its own to-do list names no call.
    let notice = notice.filter(|_| other != Some("Workflow"));
    notice.or_else(|| match sign {
        "✅" => other_notice(Some(CallEnd::Completed)),
        "❌" => other_notice(Some(CallEnd::Failed)),
        _ => other_notice(None),
    })
}

/// One line without Markdown, cut to a fixed size.
pub(super) fn line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("**", "");
    truncated(&flat, LINE, "...").into_owned()
}

/// What a text shows of a tool's output: all behind its heading.
pub(super) fn output(text: &str) -> &str {
    let heading = "Tool output:";
    let text = text.trim_start_matches("📄").trim_start();
    let found = text.lines().next().and_then(|first| first.find(heading));
    found.and_then(|at| text.get(at + heading.len()..)).unwrap_or(text).trim()
}

/// `Argocd: Calling tool: x` -> the name and the words. What is said of a call is no name, although it ends in a colon.
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

/// `Tool x completed`, `Agent task X completed`, `x completed`; a failure may say why behind it.
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

/// The text behind a lead, whatever its case.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    if head.eq_ignore_ascii_case(prefix) { text.get(prefix.len()..) } else { None }
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;

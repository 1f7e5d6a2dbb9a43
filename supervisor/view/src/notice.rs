//! One line about a call: its start, its end or its output.

use caipe_a2a::model::Metadata;

use super::activity::{Activity, ActivityEvent, ActivityStatus};
use super::clean::{clean, one_line};

/// The longest line of a tool's output in characters.
const OUTPUT_LINE: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Started,
    Succeeded,
    /// Failed or canceled.
    Failed,
    /// The output of a tool.
    Output,
}

/// One line about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// 0 for the supervisor's own calls, 1 for those of an agent that it called.
    pub depth: usize,
    pub sign: Sign,
    /// The line, its sign included.
    pub text: String,
    /// The step that the line reports, if the sender says it as data.
    pub activity: Option<Activity>,
}

impl Notice {
    /// The notice of a notification artifact, from its activity metadata if present, otherwise from its text. `ends` is
    /// whether the name of the artifact is that of an end. `None` if there is nothing to show.
    pub(super) fn of_artifact(text: &str, ends: bool, metadata: Option<&Metadata>) -> Option<Self> {
        let activity = Activity::read(metadata);
        let depth = usize::from(is_sub_agent(metadata) || activity.as_ref().is_some_and(is_tool_of_agent));
        let text = clean(text);
        let (from_text, facts) = (signed(&text), activity.as_ref().map(sign));
        // Upstream sends the output of a tool under the name of an end, without a sign.
        let is_output = facts.map_or(ends && from_text.is_none(), |facts| facts == Sign::Output);
        if is_output {
            return output(&text, depth, activity);
        }
        let sign = facts.or(from_text).unwrap_or(Sign::Started);
        let text =
            Some(one_line(&text)).filter(|text| !text.is_empty()).or_else(|| line(activity.as_ref()?))?;
        Some(Self { depth, sign, text, activity })
    }

    /// The notice of a status text that starts with a sign, as older agents send them. The text is clean.
    pub(super) fn of_status(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('📄') {
            return output(text.trim_start().trim_start_matches('📄'), 0, None);
        }
        let sign = signed(text)?;
        Some(Self { depth: 0, sign, text: one_line(text), activity: None })
    }
}

/// The meaning of the sign at the start of a text.
fn signed(text: &str) -> Option<Sign> {
    match text.trim_start().chars().next()? {
        '🔧' | '🔍' | '✍' => Some(Sign::Started),
        '✅' => Some(Sign::Succeeded),
        '❌' => Some(Sign::Failed),
        _ => None,
    }
}

/// The first line of a tool's output and the number of further lines.
fn output(text: &str, depth: usize, activity: Option<Activity>) -> Option<Notice> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let more = match lines.count() {
        0 => String::new(),
        1 => " (+1 more line)".to_owned(),
        more => format!(" (+{more} more lines)"),
    };
    let (first, cut) = match first.char_indices().nth(OUTPUT_LINE) {
        Some((end, _)) => (first.get(..end).unwrap_or(first), "…"),
        None => (first, ""),
    };
    let line = format!("📄 {first}{cut}{more}");
    Some(Notice { depth, sign: Sign::Output, text: line, activity })
}

/// Whether an artifact comes from an agent that the supervisor called.
pub(super) fn is_sub_agent(metadata: Option<&Metadata>) -> bool {
    metadata.and_then(|metadata| metadata.get("agentType")).is_some_and(|kind| kind == "sub-agent")
}

/// Whether the step is the call of a tool by an agent that the supervisor called.
fn is_tool_of_agent(activity: &Activity) -> bool {
    activity.event.is_of_tool() && activity.agent.is_some()
}

fn sign(activity: &Activity) -> Sign {
    match (activity.event, activity.status) {
        (ActivityEvent::ToolOutput, _) => Sign::Output,
        (_, ActivityStatus::Failed | ActivityStatus::Canceled) => Sign::Failed,
        (_, ActivityStatus::Completed) => Sign::Succeeded,
        _ => Sign::Started,
    }
}

/// The line for a peer that sends the step as data only.
fn line(activity: &Activity) -> Option<String> {
    let (mark, status) = match sign(activity) {
        Sign::Started => ("🔧", "running"),
        Sign::Succeeded => ("✅", "completed"),
        Sign::Failed if activity.status == ActivityStatus::Canceled => ("❌", "canceled"),
        Sign::Failed => ("❌", "failed"),
        Sign::Output => return None,
    };
    let names: Vec<String> =
        [&activity.agent, &activity.tool].into_iter().flatten().map(|name| one_line(name)).collect();
    (!names.is_empty()).then(|| format!("{mark} {}: {status}", names.join(": ")))
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;

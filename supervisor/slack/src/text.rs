//! Makes Markdown of a model safe for Slack, and cuts it into messages. Pure.
//!
//! Both functions are stable: if a text grows at its end, the earlier part of the result stays the same. That allows a
//! message to be streamed.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// Separates a character from what would make it a mention. Slack shows nothing for it.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// Replaces a credential.
const REDACTED: &str = "[redacted]";

/// The longest link, in bytes, for which a stream waits until it is complete.
const LONGEST_LINK: usize = 600;

/// A fence of a code block: three or more backticks or tildes.
const FENCES: [&str; 2] = ["```", "~~~"];

/// A message ends after the first empty line past this number of characters, outside of code blocks and tables.
const PARAGRAPH_LIMIT: usize = 8_000;
/// A message ends before the first line past this number of characters.
const LINE_LIMIT: usize = 9_500;
/// A message ends after the first word past this number of characters.
const WORD_LIMIT: usize = 10_500;
/// The most characters of a message, without the end of a code block. Slack allows 12,000.
const HARD_LIMIT: usize = 11_500;

#[allow(clippy::unwrap_used, reason = "the patterns are constant, and a test compiles them")]
static MENTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"<(!(?:channel|here|everyone|subteam\^|date\^)|@[UWB][A-Z0-9]|#[CGD][A-Z0-9])|@(channel|here|everyone)\b").unwrap()
});
#[allow(clippy::unwrap_used, reason = "the patterns are constant, and a test compiles them")]
static SECRET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:xox[a-z]-|xapp-|xwfp-)[A-Za-z0-9-]{10,}").unwrap());
#[allow(clippy::unwrap_used, reason = "the patterns are constant, and a test compiles them")]
static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"!?\[([^\]\n]{0,500})\]\(\s*<?([^()\s<>]{0,2000}(?:\([^()\s]{0,200}\)[^()\s<>]{0,200})?)>?(?:\s+"[^"\n]{0,200}")?\s*\)"#)
        .unwrap()
});
/// A link in Slack's own syntax, whose text may hide its target.
#[allow(clippy::unwrap_used, reason = "the patterns are constant, and a test compiles them")]
static SLACK_LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<([a-z]+:[^|<>\s]*)\|").unwrap());

/// Markdown without mentions, without links whose text names another address, without images and without credentials.
/// `secrets` are further texts to redact.
pub(crate) fn safe(markdown: &str, secrets: &[String]) -> String {
    let mut result = String::with_capacity(markdown.len() + 16);
    let mut fence = None;
    for line in markdown.split_inclusive('\n') {
        let was_code = fence.is_some();
        fence = after_line(fence, line);
        let line = MENTION.replace_all(line, |found: &Captures<'_>| apart(&found[0]));
        let line = SLACK_LINK.replace_all(&line, |found: &Captures<'_>| apart(&found[0]));
        if was_code || fence.is_some() {
            result.push_str(&line);
        } else {
            result.push_str(&LINK.replace_all(&line, honest_link));
        }
    }
    let mut result = SECRET.replace_all(&result, REDACTED).into_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= 8) {
        if result.contains(secret.as_str()) {
            result = result.replace(secret.as_str(), REDACTED);
        }
    }
    result
}

/// The length of the start of a growing text whose safe form is final.
pub(crate) fn stable_len(markdown: &str) -> usize {
    let cut = markdown.rfind(char::is_whitespace).map_or(0, |at| {
        at + markdown.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    });
    let before = markdown.get(..cut).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    open_link(before.get(line..).unwrap_or_default()).map_or(cut, |at| line + at)
}

/// The start of an incomplete link at the end of a line.
fn open_link(line: &str) -> Option<usize> {
    let start = line.rfind('[')?;
    let rest = line.get(start..)?;
    let closed = match rest.find("](") {
        Some(middle) => rest.get(middle..)?.contains(')'),
        None => rest.contains(']'),
    };
    let bang = usize::from(line.get(..start).is_some_and(|before| before.ends_with('!')));
    (!closed && rest.len() < LONGEST_LINK).then_some(start - bang)
}

/// The text with a space without width after its first character.
fn apart(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().chain([ZERO_WIDTH_SPACE]).chain(chars).collect()
}

/// The same link, if it is one to a web page or an address and its text does not name another one; else its text with
/// the target.
fn honest_link(found: &Captures<'_>) -> String {
    let (text, target) = (&found[1], &found[2]);
    let scheme = target.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https" | "mailto")) {
        return if target.is_empty() || target.starts_with(['#', '/', '.']) {
            text.to_owned()
        } else {
            format!("{text} (`{target}`)")
        };
    }
    match (host(text), host(target)) {
        (Some(shown), Some(real)) if shown != real => format!("{text} ({target})"),
        _ => format!("[{text}]({target})"),
    }
}

/// The host that a text names: that of a URL, or the text itself if it looks like one.
fn host(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('`').to_lowercase();
    let rest = match text.split_once("://") {
        Some((_, rest)) => rest,
        None if text.starts_with("mailto:") => text.split_once('@')?.1,
        None => &text,
    };
    let host = rest.split(['/', '?', '#', ':']).next()?;
    let host = host.rsplit('@').next()?.trim_start_matches("www.");
    let is_host = host.contains('.') && !host.contains(char::is_whitespace) && !host.ends_with('.');
    is_host.then(|| host.to_owned())
}

/// The opening line of the code block that is open after a line.
fn after_line(fence: Option<String>, line: &str) -> Option<String> {
    let text = line.trim();
    match fence {
        None => FENCES.iter().any(|fence| text.starts_with(fence)).then(|| text.to_owned()),
        Some(open) => {
            let mark: String = open.chars().take_while(|c| open.starts_with(*c)).collect();
            let closes = text.starts_with(&mark) && text.trim_start_matches(['`', '~']).is_empty();
            (!closes).then_some(open)
        }
    }
}

/// The texts of the messages that show a text, each at most 12,000 characters. A code block or a table that does not fit
/// continues in the next message.
pub(crate) fn pages(text: &str) -> Vec<String> {
    let mut pager = Pager::default();
    for line in text.split_inclusive('\n') {
        pager.line(line);
    }
    pager.pages.push(pager.page);
    pager.pages.retain(|page| !page.trim().is_empty());
    pager.pages
}

#[derive(Default)]
struct Pager {
    pages: Vec<String>,
    page: String,
    chars: usize,
    fence: Option<String>,
    /// The lines of the table so far, of which the first two are the header.
    table: Vec<String>,
}

impl Pager {
    fn line(&mut self, line: &str) {
        let continues_table = !self.table.is_empty() && line.starts_with('|');
        if self.chars > LINE_LIMIT {
            self.turn(continues_table);
        }
        for word in line.split_inclusive(char::is_whitespace) {
            self.word(word);
        }
        self.fence = after_line(self.fence.take(), line);
        if self.fence.is_none() && line.starts_with('|') {
            self.table.push(line.to_owned());
        } else {
            self.table.clear();
        }
        let ends_paragraph = line == "\n" && self.fence.is_none();
        if ends_paragraph && self.chars > PARAGRAPH_LIMIT {
            self.turn(false);
        }
    }

    fn word(&mut self, word: &str) {
        let in_link = || open_link(self.page.rsplit('\n').next().unwrap_or_default()).is_some();
        if self.chars > WORD_LIMIT && !in_link() {
            self.turn(false);
        }
        for c in word.chars() {
            if self.chars >= HARD_LIMIT {
                self.turn(false);
            }
            self.page.push(c);
            self.chars += 1;
        }
    }

    /// Starts the next message.
    fn turn(&mut self, continues_table: bool) {
        let mut next = String::new();
        if let Some(open) = &self.fence {
            let mark: String = open.chars().take_while(|c| open.starts_with(*c)).collect();
            let line = if self.page.ends_with('\n') { "" } else { "\n" };
            self.page.extend([line, &mark, "\n"]);
            let info: String = open.chars().take(60).collect();
            next = format!("{info}\n");
        } else if continues_table && self.table.get(1).is_some_and(|line| line.contains("--")) {
            next = self.table.iter().take(2).filter(|line| line.len() < 1_000).cloned().collect();
        }
        self.chars = next.chars().count();
        self.pages.push(std::mem::replace(&mut self.page, next));
    }
}

/// The start of a text as plain text for notifications, at most `most` characters.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    let line = caipe_view::one_line(text);
    match line.char_indices().nth(most.saturating_sub(1)) {
        Some((end, _)) if line.chars().count() > most => format!("{}…", line.get(..end).unwrap_or_default()),
        _ => line,
    }
}

/// What a person wrote in Slack, without Slack's escapes. Mentions of users become `@name`.
pub(crate) fn from_slack(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        result.push_str(before);
        let Some((inside, after)) = after.split_once('>') else {
            result.push('<');
            rest = after;
            continue;
        };
        let (target, label) = inside.split_once('|').unwrap_or((inside, ""));
        match target.split_at_checked(1) {
            Some(("@", user)) => {
                let known = name(user).or_else(|| (!label.is_empty()).then(|| label.to_owned()));
                result.extend(["@", &known.unwrap_or_else(|| user.to_owned())]);
            }
            Some(("#", channel)) => {
                result.extend(["#", if label.is_empty() { channel } else { label }]);
            }
            Some(("!", special)) => {
                result.extend(["@", special.split('^').next().unwrap_or_default()]);
            }
            _ if label.is_empty() || target.ends_with(label) => result.push_str(target),
            _ => result.extend([label, " (", target, ")"]),
        }
        rest = after;
    }
    result.push_str(rest);
    result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;

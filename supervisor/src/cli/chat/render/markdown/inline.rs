//! Styles within a line of Markdown.
//!
//! An open line is completed before it is parsed, so that it looks as if what is still missing had arrived.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Characters that begin or end a style, or may become the start of a link.
const MARKS: [char; 6] = ['*', '_', '~', '`', '\\', '!'];
/// Keeps each line a paragraph: the parser takes a line that starts with blanks or a number for another block.
const PARAGRAPH: &str = ",";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "styles are independent of each other")]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) code: bool,
    pub(super) strikeout: bool,
}

/// The spans of a line. In an `open` line, a mark without its partner is a style that lasts to the end, and marks at the
/// very end, which may become anything, are held back.
pub(super) fn spans(line: &str, open: bool) -> Vec<Span> {
    let line = format!("{PARAGRAPH}{}", if open { complete(certain(line)) } else { line.to_owned() });
    let mut reader = Reader::default();
    parser(&line).for_each(|event| reader.read(event));
    // The parser drops blanks at the end.
    reader.put(line.get(line.trim_end().len()..).unwrap_or_default());
    reader.spans
}

fn parser(line: &str) -> Parser<'_> {
    Parser::new_ext(line, Options::ENABLE_STRIKETHROUGH)
}

/// The part before marks at the very end, and before a bracket that may become a link.
fn certain(line: &str) -> &str {
    let may_be_link = |behind: &str| behind.find(']').is_none_or(|close| close + 1 == behind.len());
    let line = match line.rsplit_once('[') {
        Some((before, behind)) if may_be_link(behind) => before,
        _ => line,
    };
    line.trim_end_matches(MARKS)
}

/// The line with its styles closed, and without an address that has not ended.
fn complete(line: &str) -> String {
    let mut line = without_open_address(line).unwrap_or_else(|| line.to_owned());
    let closing = closing_marks(&format!("{PARAGRAPH}{line}"));
    line.insert_str(line.trim_end().len(), &closing);
    line
}

fn without_open_address(line: &str) -> Option<String> {
    let (before, behind) = line.rsplit_once('[')?;
    let (text, address) = behind.split_once("](")?;
    let has_ended = address.contains([')', ' ']);
    (!has_ended).then(|| format!("{}{text}", before.strip_suffix('!').unwrap_or(before)))
}

/// The marks that close all styles of a line.
fn closing_marks(line: &str) -> String {
    let (mut closing, mut at) = (String::new(), 0);
    for (event, range) in parser(line).into_offset_iter() {
        let Event::Text(_) = event else { continue };
        // The parser left these marks as text, because they have no partner. A run of marks may be several events.
        at = at.max(range.start);
        while let Some(marks) = line.get(at..range.end).and_then(|rest| next_marks(line, at, rest)) {
            at = marks.end;
            let Some(marks) = opening(line, marks) else { continue };
            closing.insert_str(0, marks);
            if marks.starts_with('`') {
                // What follows is code.
                return closing;
            }
        }
    }
    closing
}

/// The place of the next run of one mark in `rest`, which starts at this place of the line.
fn next_marks(line: &str, at: usize, rest: &str) -> Option<Range<usize>> {
    let start = at + rest.find(['*', '_', '~', '`'])?;
    let run = line.get(start..)?;
    let mark = run.chars().next()?;
    Some(start..start + run.len() - run.trim_start_matches(mark).len())
}

/// The marks at this place, if they can begin a style: text follows at once, and `_` is not within a word.
fn opening(line: &str, marks: Range<usize>) -> Option<&str> {
    let before = line.get(..marks.start)?.chars().next_back();
    let behind = line.get(marks.end..)?.chars().next();
    let marks = line.get(marks)?;
    let is_within_word = marks.starts_with('_') && before.is_some_and(char::is_alphanumeric);
    let opens = behind.is_some_and(|c| !c.is_whitespace()) && !is_within_word && before != Some('\\');
    (opens && marks != "~").then_some(marks)
}

/// Makes spans of the parser's events.
#[derive(Debug, Default)]
struct Reader {
    spans: Vec<Span>,
    style: Style,
    /// The styles around the current one.
    outer: Vec<Style>,
    /// The links around the current text: their addresses, and their texts so far.
    links: Vec<(String, String)>,
    /// Whether [`PARAGRAPH`] was read.
    begun: bool,
}

impl Reader {
    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Strong) => self.enter(Style { bold: true, ..self.style }),
            Event::Start(Tag::Emphasis) => self.enter(Style { italic: true, ..self.style }),
            Event::Start(Tag::Strikethrough) => self.enter(Style { strikeout: true, ..self.style }),
            Event::End(TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough) => self.leave(),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.links.push((dest_url.into_string(), String::new()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            Event::Code(text) => {
                self.enter(Style { code: true, ..self.style });
                self.put(&text);
                self.leave();
            }
            Event::Text(text) | Event::InlineHtml(text) => {
                let is_first = !std::mem::replace(&mut self.begun, true);
                self.put(if is_first { text.strip_prefix(PARAGRAPH).unwrap_or(&text) } else { &text });
            }
            _ => {}
        }
    }

    fn enter(&mut self, style: Style) {
        self.outer.push(std::mem::replace(&mut self.style, style));
    }

    fn leave(&mut self) {
        self.style = self.outer.pop().unwrap_or_default();
    }

    /// Shows the address behind the text of the link: a terminal has no other place for it.
    fn end_link(&mut self) {
        let Some((url, text)) = self.links.pop() else { return };
        if text.is_empty() {
            self.put(&url);
        } else if !url.is_empty() && url != text {
            self.put(&format!(" ({url})"));
        }
    }

    fn put(&mut self, text: &str) {
        for (_, link_text) in &mut self.links {
            link_text.push_str(text);
        }
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == self.style => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), style: self.style }),
        }
    }
}

#[cfg(test)]
#[path = "inline_tests.rs"]
mod tests;

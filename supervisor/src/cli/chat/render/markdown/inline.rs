//! Styles within a line of Markdown.
//!
//! Read here and not by the layout crate, whose reader takes every star for a style: `2 * 3 * 4` and `ls *.rs`
//! must stay as they are, and an open line must read as if what is still missing had come.

/// Longer lines are not looked into: finding pairs of marks is quadratic.
const LONGEST: usize = 4096;
/// Deeper nesting is not followed.
const DEEPEST: usize = 8;

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

/// Reads a line. An `open` one continues: a mark without its partner is taken for a style that lasts to the
/// end, and marks at the very end, which may become anything, are held back.
pub(super) fn spans(line: &str, open: bool) -> Vec<Span> {
    let chars: Vec<char> = line.chars().collect();
    let mut reader = Reader { spans: Vec::new(), open };
    if chars.len() > LONGEST {
        reader.put(line, Style::default());
        return reader.spans;
    }
    let certain = if open { certain(&chars) } else { &chars };
    reader.read(certain, Style::default(), 0);
    reader.spans
}

/// What comes before marks at the very end, and before a bracket that may become a link.
fn certain(chars: &[char]) -> &[char] {
    let bracket = chars.iter().rposition(|c| *c == '[').filter(|at| {
        let behind = chars.get(at + 1..).unwrap_or_default();
        behind.iter().position(|c| *c == ']').is_none_or(|close| close + 1 == behind.len())
    });
    let chars = bracket.and_then(|at| chars.get(..at)).unwrap_or(chars);
    let held = chars.iter().rev().take_while(|c| is_mark(**c)).count();
    chars.get(..chars.len() - held).unwrap_or(chars)
}

const fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '`' | '\\' | '!')
}

struct Reader {
    spans: Vec<Span>,
    open: bool,
}

/// Something that begins at a place, and how long it is.
enum Found<'a> {
    Code { inner: &'a [char], length: usize },
    Styled { inner: &'a [char], style: Style, length: usize },
    Link { text: &'a [char], url: Option<&'a [char]>, length: usize },
    Escaped(char),
}

impl Reader {
    fn read(&mut self, chars: &[char], style: Style, depth: usize) {
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            let Some(found) = self.find(chars, at, style).filter(|_| depth < DEEPEST) else {
                self.put(c.encode_utf8(&mut [0; 4]), style);
                at += 1;
                continue;
            };
            at += match found {
                Found::Escaped(c) => {
                    self.put(c.encode_utf8(&mut [0; 4]), style);
                    2
                }
                Found::Code { inner, length } => {
                    let text: String = inner.iter().collect();
                    self.put(&text, Style { code: true, ..style });
                    length
                }
                Found::Styled { inner, style, length } => {
                    self.read(inner, style, depth + 1);
                    length
                }
                Found::Link { text, url, length } => {
                    self.read(text, style, depth + 1);
                    self.put_url(text, url, style);
                    length
                }
            };
        }
    }

    /// An address goes behind its text: a terminal has nowhere else to put it.
    fn put_url(&mut self, text: &[char], url: Option<&[char]>, style: Style) {
        let Some(url) = url.filter(|url| !url.is_empty() && *url != text) else { return };
        let url: String = url.iter().collect();
        self.put(if text.is_empty() { "" } else { " " }, style);
        self.put(&if text.is_empty() { url } else { format!("({url})") }, style);
    }

    fn put(&mut self, text: &str, style: Style) {
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), style }),
        }
    }

    fn find<'a>(&self, chars: &'a [char], at: usize, style: Style) -> Option<Found<'a>> {
        match chars.get(at)? {
            '\\' => chars.get(at + 1).filter(|c| c.is_ascii_punctuation()).map(|c| Found::Escaped(*c)),
            '`' => self.code(chars, at),
            '*' | '_' | '~' => self.styled(chars, at, style),
            '[' => self.link(chars, at, 0),
            '!' if chars.get(at + 1) == Some(&'[') => self.link(chars, at + 1, 1),
            _ => None,
        }
    }

    fn code<'a>(&self, chars: &'a [char], at: usize) -> Option<Found<'a>> {
        let ticks = run(chars, at);
        let start = at + ticks;
        let mut next = start;
        while let Some(c) = chars.get(next) {
            let length = if *c == '`' { run(chars, next) } else { 0 };
            if length == ticks {
                return Some(Found::Code { inner: chars.get(start..next)?, length: next + ticks - at });
            }
            next += length.max(1);
        }
        let inner = chars.get(start..).filter(|inner| self.open && !inner.is_empty())?;
        Some(Found::Code { inner, length: chars.len() - at })
    }

    fn styled<'a>(&self, chars: &'a [char], at: usize, style: Style) -> Option<Found<'a>> {
        let mark = *chars.get(at)?;
        let wide = usize::from(run(chars, at) > 1) + 1;
        let style = match (mark, wide) {
            ('~', 1) => return None,
            ('~', _) => Style { strikeout: true, ..style },
            (_, 1) => Style { italic: true, ..style },
            (_, _) => Style { bold: true, ..style },
        };
        let start = at + wide;
        if !opens(chars, at, mark) {
            return None;
        }
        match closer(chars, start, mark, wide) {
            Some(end) => {
                Some(Found::Styled { inner: chars.get(start..end)?, style, length: end + wide - at })
            }
            None if self.open => {
                Some(Found::Styled { inner: chars.get(start..)?, style, length: chars.len() - at })
            }
            None => None,
        }
    }

    /// `[text](address)`; `before` counts what stands before the bracket and belongs to it.
    fn link<'a>(&self, chars: &'a [char], at: usize, before: usize) -> Option<Found<'a>> {
        let start = at + 1;
        let close = start + chars.get(start..)?.iter().position(|c| matches!(c, '[' | ']'))?;
        if chars.get(close) != Some(&']') || chars.get(close + 1) != Some(&'(') {
            return None;
        }
        let text = chars.get(start..close)?;
        let address = chars.get(close + 2..)?;
        let Some(length) = address.iter().position(|c| *c == ')' || c.is_whitespace()) else {
            return self.open.then_some(Found::Link { text, url: None, length: chars.len() - at + before });
        };
        let end = close + 2 + length;
        (chars.get(end) == Some(&')')).then_some(Found::Link {
            text,
            url: address.get(..length),
            length: end + 1 - at + before,
        })
    }
}

/// How often the character at a place is repeated.
fn run(chars: &[char], at: usize) -> usize {
    let rest = chars.get(at..).unwrap_or_default();
    rest.iter().take_while(|c| Some(*c) == rest.first()).count()
}

/// Whether marks can begin a style: text follows at once, and `_` is not within a word.
fn opens(chars: &[char], at: usize, mark: char) -> bool {
    let before = at.checked_sub(1).and_then(|before| chars.get(before));
    let within_word = mark == '_' && before.is_some_and(|c| c.is_alphanumeric());
    chars.get(at + run(chars, at)).is_some_and(|c| !c.is_whitespace()) && !within_word
}

/// Where a style ends: a mark right behind text, `_` not within a word, none within code.
fn closer(chars: &[char], start: usize, mark: char, wide: usize) -> Option<usize> {
    let mut at = start;
    while let Some(&c) = chars.get(at) {
        if c == '\\' {
            at += 2;
            continue;
        }
        let length = run(chars, at);
        if c == '`' {
            at = skip_code(chars, at, length);
            continue;
        }
        let behind_text = at > start && chars.get(at - 1).is_some_and(|c| !c.is_whitespace());
        let in_word = mark == '_' && chars.get(at + length).is_some_and(|c| c.is_alphanumeric());
        let fits = if wide == 1 { length != 2 } else { length >= 2 };
        if c == mark && behind_text && !in_word && fits {
            // Of three, the inner style takes its own first.
            return Some(at + length - wide.min(length));
        }
        at += if c == mark { length } else { 1 };
    }
    None
}

fn skip_code(chars: &[char], at: usize, ticks: usize) -> usize {
    let mut next = at + ticks;
    while let Some(c) = chars.get(next) {
        let length = if *c == '`' { run(chars, next) } else { 0 };
        if length == ticks {
            return next + ticks;
        }
        next += length.max(1);
    }
    at + ticks
}

#[cfg(test)]
#[path = "inline_tests.rs"]
mod tests;

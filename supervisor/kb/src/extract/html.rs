//! The text of an HTML page, with a line for each block and its headings.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::{Extracted, Heading};

/// Elements whose content is no text of the page.
const HIDDEN: [&str; 7] = ["script", "style", "template", "svg", "noscript", "iframe", "textarea"];
/// Elements that repeat on each page.
const NAVIGATION: [&str; 2] = ["nav", "footer"];
/// Elements that begin a line.
const BLOCKS: [&str; 21] = [
    "address",
    "article",
    "blockquote",
    "br",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

pub(super) fn extract(page: &str) -> Extracted {
    let without_navigation = tokenize(page, true);
    // A navigation element without an end hides the rest of the page.
    if without_navigation.text.is_empty() { tokenize(page, false) } else { without_navigation }
}

fn tokenize(page: &str, skip_navigation: bool) -> Extracted {
    let sink = Sink(RefCell::new(Page { skip_navigation, ..Page::default() }));
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    // The sink never asks for a pause.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<Page>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => page.tag(&tag),
            Token::CharacterTokens(text) => {
                page.characters(&text);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

/// What is read so far.
#[derive(Default)]
struct Page {
    skip_navigation: bool,
    result: Extracted,
    /// The open elements that hide their content.
    hidden: Vec<String>,
    place: Place,
}

/// Where the next characters are.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Flow,
    Title,
    Heading,
    Preformatted,
}

impl Page {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let (name, start) = (&*tag.name, tag.kind == TagKind::StartTag);
        if name == "title" && self.hidden.is_empty() {
            self.place = if start { Place::Title } else { Place::Flow };
            return if start { TokenSinkResult::RawData(RawKind::Rcdata) } else { TokenSinkResult::Continue };
        }
        if HIDDEN.contains(&name) || (self.skip_navigation && NAVIGATION.contains(&name)) {
            return self.hide(name, start && !tag.self_closing);
        }
        if self.hidden.is_empty() {
            self.layout(name, start);
        }
        TokenSinkResult::Continue
    }

    fn hide(&mut self, name: &str, start: bool) -> TokenSinkResult<()> {
        if !start {
            if let Some(at) = self.hidden.iter().rposition(|open| open == name) {
                self.hidden.truncate(at);
            }
            return TokenSinkResult::Continue;
        }
        self.hidden.push(name.to_owned());
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" => TokenSinkResult::RawData(RawKind::Rawtext),
            "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn layout(&mut self, name: &str, start: bool) {
        if let Some(level) = heading_level(name) {
            self.break_line(2);
            self.place = if start { Place::Heading } else { Place::Flow };
            if start {
                let at = self.result.text.len();
                self.result.headings.push(Heading { at, end: at, level, text: String::new() });
                self.result.text.push_str(&"#".repeat(level.into()));
                self.result.text.push(' ');
            }
            return;
        }
        match name {
            "td" | "th" if start && !self.result.text.ends_with('\n') => self.result.text.push_str(" | "),
            _ if BLOCKS.contains(&name) && self.place != Place::Heading => {
                if name == "pre" {
                    self.place = if start { Place::Preformatted } else { Place::Flow };
                }
                self.break_line(if matches!(name, "p" | "pre" | "ul" | "ol" | "table") { 2 } else { 1 });
                if name == "li" && start {
                    self.result.text.push_str("- ");
                }
            }
            _ => {}
        }
    }

    /// Ends the line; two breaks end the paragraph.
    fn break_line(&mut self, breaks: usize) {
        let text = &mut self.result.text;
        text.truncate(text.trim_end_matches([' ', '\t']).len());
        let present = text.len() - text.trim_end_matches('\n').len();
        if !text.is_empty() {
            text.extend(std::iter::repeat_n('\n', breaks.saturating_sub(present)));
        }
    }

    fn characters(&mut self, text: &str) {
        match self.place {
            Place::Title => self.result.title.get_or_insert_default().push_str(text),
            _ if !self.hidden.is_empty() => {}
            Place::Preformatted => self.result.text.push_str(text),
            Place::Flow | Place::Heading => self.words(text),
        }
    }

    fn words(&mut self, text: &str) {
        let spaced = text.split_inclusive(char::is_whitespace);
        for piece in spaced {
            let word = piece.trim_end_matches(char::is_whitespace);
            self.push(word);
            if word.len() < piece.len()
                && !self.result.text.is_empty()
                && !self.result.text.ends_with([' ', '\n'])
            {
                self.push(" ");
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.result.text.push_str(text);
        if let Some(heading) = self.result.headings.last_mut().filter(|_| self.place == Place::Heading) {
            heading.text.push_str(text);
            heading.end = self.result.text.len();
        }
    }

    fn finish(mut self) -> Extracted {
        let result = &mut self.result;
        result.text.truncate(result.text.trim_end().len());
        let length = result.text.len();
        for heading in &mut result.headings {
            heading.text = heading.text.trim().to_owned();
            heading.end = heading.end.min(length);
        }
        result.headings.retain(|heading| !heading.text.is_empty() && heading.at < length);
        let title = result.title.take().map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        let first = result.headings.first().map(|heading| heading.text.clone());
        result.title = title.filter(|title| !title.is_empty()).or(first);
        self.result
    }
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

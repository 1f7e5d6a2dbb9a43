//! The text of an HTML page, with a line for each block and its headings.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

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

/// The names of `meta` elements that hold the date of a page, in lower case.
const DATES: [&str; 5] =
    ["article:published_time", "article:modified_time", "date", "dc.date", "dcterms.date"];
/// The longest address of a link that is shown.
const LINK_BYTES: usize = 500;

/// A web page as Markdown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebPage {
    pub title: Option<String>,
    /// As the page writes it.
    pub date: Option<String>,
    /// With the addresses of links.
    pub text: String,
}

/// Reads an HTML page of this address.
pub fn read_web_page(page: &str, address: &Url) -> WebPage {
    let read =
        tokenize(page, &|| Page { skip_navigation: true, base: Some(address.clone()), ..Page::default() });
    let date = read.date.clone();
    let Extracted { title, text, .. } = read.finish();
    WebPage { title, date, text }
}

pub(super) fn extract(page: &str) -> Extracted {
    tokenize(page, &|| Page { skip_navigation: true, ..Page::default() }).finish()
}

/// Reads a page without its navigation.
fn tokenize(page: &str, empty: &dyn Fn() -> Page) -> Page {
    let without_navigation = tokenize_once(page, empty());
    if without_navigation.result.text.trim().is_empty() {
        // A navigation element without an end hides the rest of the page.
        tokenize_once(page, Page { skip_navigation: false, ..empty() })
    } else {
        without_navigation
    }
}

fn tokenize_once(page: &str, empty: Page) -> Page {
    let sink = Sink(RefCell::new(empty));
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    // The sink never asks for a pause.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
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
    /// The address of the page, if links are shown.
    base: Option<Url>,
    /// The open link: where its text begins, and its address.
    link: Option<(usize, String)>,
    date: Option<String>,
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
        if name == "meta" {
            self.meta(tag);
        } else if name == "a" && self.hidden.is_empty() {
            self.link(tag, start);
        } else if self.hidden.is_empty() {
            self.layout(name, start);
        }
        TokenSinkResult::Continue
    }

    fn meta(&mut self, tag: &Tag) {
        let name = attribute(tag, "property").or_else(|| attribute(tag, "name")).unwrap_or_default();
        if self.date.is_none() && DATES.contains(&name.to_lowercase().as_str()) {
            self.date = attribute(tag, "content").map(|date| date.trim().chars().take(40).collect());
        }
    }

    fn link(&mut self, tag: &Tag, start: bool) {
        if let Some((at, address)) = self.link.take() {
            let text = &mut self.result.text;
            if text.get(at..).is_some_and(|text| !text.trim_start_matches('[').trim().is_empty()) {
                self.push(&format!("]({address})"));
            } else {
                text.truncate(at);
            }
        }
        let address = attribute(tag, "href").filter(|address| start && !address.trim().starts_with('#'));
        let address = self.base.as_ref().zip(address).and_then(|(base, address)| base.join(&address).ok());
        let address =
            address.filter(|it| matches!(it.scheme(), "http" | "https") && it.as_str().len() <= LINK_BYTES);
        if let Some(address) = address {
            self.link = Some((self.result.text.len(), address.into()));
            self.push("[");
        }
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

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)
        .map(|attribute| attribute.value.to_string())
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

//! The documents that an answer is based on.

use caipe_model::truncated;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most sources of a run.
const MOST: usize = 50;

/// Most sources that an answer lists.
const MOST_LISTED: usize = 10;

/// Most characters of an id, a title or a URL.
const CHARS: usize = 300;

/// The heading of the list.
const HEADING: &str = "Sources";

/// The arrays of a search result: those of the RAG server, and that of its older versions.
const RESULTS: [&str; 3] = ["semantic_results", "keyword_results", "results"];

/// The members with the URL of a document.
const URLS: [&str; 4] = ["url", "source_url", "document_url", "source"];

/// A document of the knowledge base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    pub document_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Whether the model read the document, or only found it.
    pub is_read: bool,
}

/// Adds the documents of a successful call: those that it found, or the one that it read.
pub(crate) fn collect(sources: &mut Vec<Source>, arguments: &Map<String, Value>, content: &str) {
    let value: Value = serde_json::from_str(content).unwrap_or_default();
    let read = arguments.get("document_id").and_then(Value::as_str);
    match read {
        Some(id) => add(sources, Source { document_id: bounded(id), is_read: true, ..named(&value) }),
        None => found(&value).into_iter().for_each(|source| add(sources, source)),
    }
}

fn add(sources: &mut Vec<Source>, new: Source) {
    if new.document_id.is_empty() {
        return;
    }
    if let Some(known) = sources.iter_mut().find(|known| known.document_id == new.document_id) {
        known.is_read |= new.is_read;
        for (known, new) in [(&mut known.title, new.title), (&mut known.url, new.url)] {
            if known.is_empty() {
                *known = new;
            }
        }
    } else if sources.len() < MOST {
        sources.push(new);
    }
}

/// The documents of a search result. Some servers wrap it in an object with the member `result`.
fn found(value: &Value) -> Vec<Source> {
    let lists: Vec<&Value> = match value {
        Value::Array(_) => vec![value],
        Value::Object(object) => match object.get("result") {
            Some(wrapped) => return found(wrapped),
            None => RESULTS.iter().filter_map(|name| object.get(*name)).collect(),
        },
        _ => Vec::new(),
    };
    lists.into_iter().filter_map(Value::as_array).flatten().map(named).collect()
}

/// The document that an entry describes, in its own members or in its metadata.
fn named(entry: &Value) -> Source {
    let places = [Some(entry), entry.get("metadata"), entry.pointer("/metadata/metadata")];
    let text = |name: &str| places.into_iter().flatten().find_map(|place| place.get(name)?.as_str());
    let url = URLS.iter().filter_map(|name| text(name)).find(|url| is_url(url));
    let bounded_or_empty = |text: Option<&str>| text.map(bounded).unwrap_or_default();
    Source {
        document_id: bounded_or_empty(text("document_id")),
        title: bounded_or_empty(text("title")),
        url: url.map(str::to_owned).unwrap_or_default(),
        is_read: false,
    }
}

fn bounded(text: &str) -> String {
    truncated(text.trim(), CHARS, "").into_owned()
}

/// Whether a text can stand as the target of a Markdown link.
fn is_url(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://"))
        && text.len() <= CHARS
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '<' | '>'))
}

/// The sources of an answer, as Markdown after it: the documents that the model read or, if it read none, those that it
/// found. `None` if there are none, or if the answer has such a list already.
pub(crate) fn list(sources: &[Source], answer: &str) -> Option<String> {
    let has_list = answer
        .lines()
        .any(|line| line.trim_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case(HEADING));
    let is_read = sources.iter().any(|source| source.is_read);
    let lines: Vec<String> = sources
        .iter()
        .filter(|source| source.is_read == is_read)
        .take(MOST_LISTED)
        .enumerate()
        .map(|(at, source)| format!("{}. {}", at + 1, line(source)))
        .collect();
    (!has_list && !lines.is_empty()).then(|| format!("\n\n**{HEADING}**\n\n{}", lines.join("\n")))
}

fn line(source: &Source) -> String {
    let id = plain(&source.document_id);
    let title = if source.title.is_empty() { id.clone() } else { plain(&source.title) };
    let url = Some(&source.url).filter(|url| !url.is_empty());
    match url.or_else(|| Some(&source.document_id).filter(|id| is_url(id))) {
        Some(url) => format!("[{title}]({url})"),
        None if title == id => title,
        None => format!("{title} (`{id}`)"),
    }
}

/// The text as one line without Markdown.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(['[', ']', '`', '*', '<', '>'], "")
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

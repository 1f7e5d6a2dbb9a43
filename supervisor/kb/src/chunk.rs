//! Splits a document into chunks: sections by heading, long sections by paragraph. Joined, the chunks are the text.

use std::collections::BTreeSet;

use crate::extract::{Extracted, Heading};

/// The most bytes of a chunk. A search compares chunks, so one should be about one topic.
const MAX_BYTES: usize = 2_000;
/// A part of a long section is not shorter than this, if possible.
const MIN_BYTES: usize = 500;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Names the chunk in its document. Stays the same while the headings do.
    pub(crate) anchor: String,
    /// The headings above the text, from the outermost to its own.
    pub(crate) headings: Vec<String>,
    pub(crate) text: String,
}

/// The chunks of a document.
pub(crate) fn split(document: &Extracted) -> Vec<Chunk> {
    let mut anchors = BTreeSet::new();
    let mut chunks = Vec::new();
    for section in sections(document) {
        let own = section.path.last().map_or(String::new(), |heading| slug(heading));
        let anchor = unique(&own, &mut anchors);
        for (number, text) in parts(section.text).into_iter().enumerate() {
            let anchor = if number == 0 { anchor.clone() } else { format!("{anchor}~{}", number + 1) };
            chunks.push(Chunk { anchor, headings: section.path.clone(), text: text.to_owned() });
        }
    }
    chunks
}

struct Section<'a> {
    path: Vec<String>,
    text: &'a str,
}

/// The text between headings. A heading without text belongs to the next section.
fn sections(document: &Extracted) -> Vec<Section<'_>> {
    let slice = |from: usize, to: usize| document.text.get(from..to).unwrap_or_default();
    let mut sections = Vec::new();
    let mut open: Vec<&Heading> = Vec::new();
    let (mut start, mut content) = (0, 0);
    for heading in &document.headings {
        if !slice(content, heading.at).trim().is_empty() {
            sections.push(Section { path: path(&open), text: slice(start, heading.at) });
            start = heading.at;
        }
        content = heading.end;
        while open.last().is_some_and(|above| above.level >= heading.level) {
            open.pop();
        }
        open.push(heading);
    }
    let rest = slice(start, document.text.len());
    if !rest.is_empty() {
        sections.push(Section { path: path(&open), text: rest });
    }
    sections
}

fn path(open: &[&Heading]) -> Vec<String> {
    open.iter().map(|heading| heading.text.trim().to_owned()).collect()
}

/// Splits at paragraphs, else at lines, words or characters.
fn parts(mut text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    while text.len() > MAX_BYTES {
        let (part, rest) = text.split_at(boundary(text));
        parts.push(part);
        text = rest;
    }
    parts.push(text);
    parts
}

/// The best place to split within the first [`MAX_BYTES`].
fn boundary(text: &str) -> usize {
    let most = text.floor_char_boundary(MAX_BYTES);
    let head = text.get(..most).unwrap_or(text);
    let after =
        |separator: &str| head.rfind(separator).map(|at| at + separator.len()).filter(|at| *at >= MIN_BYTES);
    after("\n\n").or_else(|| after("\n")).or_else(|| after(". ")).or_else(|| after(" ")).unwrap_or(most)
}

/// The anchor of a heading as GitHub writes it.
fn slug(heading: &str) -> String {
    let letters = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

fn unique(anchor: &str, used: &mut BTreeSet<String>) -> String {
    let mut candidate = anchor.to_owned();
    let mut number = 1;
    while !used.insert(candidate.clone()) {
        candidate = format!("{anchor}-{number}");
        number += 1;
    }
    candidate
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;

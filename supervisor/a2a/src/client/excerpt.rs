//! Excerpts of responses, for error messages.

/// Most bytes of an excerpt.
const EXCERPT: usize = 300;

/// The beginning of a body, in one line.
pub(super) fn excerpt(body: &[u8]) -> String {
    let start = body.get(..EXCERPT).unwrap_or(body);
    excerpt_of(&String::from_utf8_lossy(start))
}

pub(super) fn excerpt_of(text: &str) -> String {
    let line: String = text.chars().take(EXCERPT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

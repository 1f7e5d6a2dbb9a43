//! Truncation of texts.

use std::borrow::Cow;

/// The first `chars` characters of a text, followed by `marker` if the text has more.
pub fn truncated<'a>(text: &'a str, chars: usize, marker: &str) -> Cow<'a, str> {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}{marker}", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::truncated;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, chars, expected) in [("äöü", 3, "äöü"), ("äöü", 2, "äö…"), ("äöü", 0, "…"), ("", 0, "")]
        {
            assert_eq!(truncated(text, chars, "…"), expected, "{text:?} {chars}");
        }
    }
}

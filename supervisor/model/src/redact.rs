//! Removes keys from messages.

use secrecy::{ExposeSecret, SecretString};

const MASK: &str = "[redacted]";

/// The prefixes of the keys of well-known providers. Other keys than ours are masked too, because a proxy may echo its own.
const PREFIXES: [&str; 8] = ["sk-", "gsk_", "AIza", "AKIA", "ya29.", "xai-", "ABSK", "eyJ"];

/// The shortest word that counts as a key.
const SHORTEST: usize = 12;

/// The text without the given secret and without words that look like keys.
pub(crate) fn redact(text: &str, secret: Option<&SecretString>) -> String {
    let secret = secret.map(|secret| secret.expose_secret().trim()).filter(|secret| secret.len() >= 4);
    let text = secret.map_or_else(|| text.to_owned(), |secret| text.replace(secret, MASK));
    text.split_inclusive(is_boundary).map(mask).collect()
}

fn is_boundary(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '"' | '\'' | ',' | ';' | ':' | '(' | ')' | '=' | '&' | '?' | '`')
}

fn mask(word: &str) -> String {
    let body = word.trim_end_matches(is_boundary);
    if body.len() >= SHORTEST && PREFIXES.iter().any(|prefix| body.starts_with(prefix)) {
        return word.replace(body, MASK);
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_given_key_and_words_in_the_form_of_a_key() {
        let secret = SecretString::from("hunter2-hunter2");
        let cases = [
            ("bad key hunter2-hunter2.", "bad key [redacted]."),
            (
                "Incorrect API key provided: sk-proj-0123456789abc. See docs",
                "Incorrect API key provided: [redacted] See docs",
            ),
            ("url?key=AIzaSyA0123456789&x=1", "url?key=[redacted]&x=1"),
            ("sk-short stays", "sk-short stays"),
            ("nothing here", "nothing here"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(text, Some(&secret)), expected, "{text}");
        }
    }
}

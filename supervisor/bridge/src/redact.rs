//! Removes secrets from logs, messages and results.

use std::fmt;

/// Shorter values are left alone: hiding every `1` or `eu` would make a text unreadable and protect nothing.
const SHORTEST: usize = 6;
const MASK: &str = "[redacted]";

/// Replaces known values in a text. `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that no value is hidden only in part.
    values: Vec<String>,
}

impl Redactor {
    /// A redactor of these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a String>) -> Self {
        let long = values.into_iter().filter(|value| value.len() >= SHORTEST);
        // A header such as `Bearer SECRET` must be hidden also where only its second word is quoted.
        let words = long.flat_map(|value| value.split_whitespace().chain([value.as_str()]));
        let mut values: Vec<String> =
            words.filter(|word| word.len() >= SHORTEST).map(ToOwned::to_owned).collect();
        values.retain(|value| !value.eq_ignore_ascii_case("bearer"));
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// A redactor of these values as well.
    #[must_use]
    pub fn and<'a>(&'a self, values: impl IntoIterator<Item = &'a String>) -> Self {
        Self::new(self.values.iter().chain(values))
    }

    /// The text without the values.
    pub fn redact(&self, text: String) -> String {
        self.values.iter().fold(text, |text, value| {
            if text.contains(value.as_str()) { text.replace(value.as_str(), MASK) } else { text }
        })
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} values)", self.values.len())
    }
}

/// Whether a variable or header of this name probably holds a secret.
pub fn sounds_secret(name: &str) -> bool {
    const WORDS: [&str; 11] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "APIKEY",
        "AUTHORIZATION",
        "COOKIE",
        "KEY",
        "PAT",
        "PASS",
    ];
    name.to_ascii_uppercase()
        .split(['_', '-', '.'])
        .any(|part| WORDS.iter().any(|word| part == *word || (word.len() > 4 && part.contains(word))))
}

#[cfg(test)]
mod tests {
    use super::{Redactor, sounds_secret};

    #[test]
    fn hides_whole_values_and_their_words() {
        let values =
            ["s3cr3t-value".to_owned(), "Bearer abcdefgh".to_owned(), "s3cr3t".to_owned(), "eu".to_owned()];
        let redactor = Redactor::new(&values);
        let text = "eu: s3cr3t-value, s3cr3t, abcdefgh, Bearer abcdefgh, bearer of news";
        assert_eq!(
            redactor.redact(text.to_owned()),
            "eu: [redacted], [redacted], [redacted], [redacted], bearer of news"
        );
        assert!(!format!("{redactor:?}").contains("s3cr3t"));
    }

    #[test]
    fn knows_a_secret_by_its_name() {
        for name in [
            "GITHUB_TOKEN",
            "ARGOCD_API_TOKEN",
            "api-key",
            "X-ApiKey",
            "Authorization",
            "GITHUB_PAT",
            "DB_PASS",
            "PGPASSWORD",
        ] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in ["JIRA_URL", "AWS_REGION", "PATH", "KUBECONFIG", "MONKEY_ISLAND", "COMPASS_URL"] {
            assert!(!sounds_secret(name), "{name}");
        }
    }
}

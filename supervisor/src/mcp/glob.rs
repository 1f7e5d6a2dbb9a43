//! Patterns over tool names.

use std::fmt;

/// A pattern in which `*` matches any characters, also none; every other character matches itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob(String);

impl Glob {
    /// The pattern of this text. Every text is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the pattern covers the whole of `text`.
    pub fn matches(&self, text: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let mut pieces: Vec<&str> = pieces.collect();
        let Some(last) = pieces.pop() else {
            return rest.is_empty();
        };
        for piece in pieces {
            let Some((_, after)) = rest.split_once(piece) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn covers_whole_names() {
        for (pattern, text, expected) in [
            ("echo", "echo", true),
            ("echo", "echo2", false),
            ("echo", "an echo", false),
            ("*", "", true),
            ("*", "anything", true),
            ("create_*", "create_issue", true),
            ("create_*", "recreate_issue", false),
            ("*_issue", "create_issue", true),
            ("*_issue", "create_issues", false),
            ("get_*_by_*", "get_user_by_id", true),
            ("get_*_by_*", "get_user", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Glob::from(pattern).matches(text), expected, "{pattern} on {text}");
        }
    }
}

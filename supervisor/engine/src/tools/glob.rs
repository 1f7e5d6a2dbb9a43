//! Patterns over the names of tools and over paths.

use globset::{GlobBuilder, GlobMatcher};

/// The most bytes of a pattern of paths, so that its matcher is small.
const LONGEST_PATTERN: usize = 256;

/// Whether the name of a tool matches a pattern in which `*` matches any characters, also none. Case is ignored.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    is_match(&pattern.to_lowercase(), &name.to_lowercase())
}

/// The same with case.
pub(super) fn is_match(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_prefix(first).and_then(|name| name.strip_suffix(last)) else {
        return false;
    };
    middle.split('*').all(|piece| {
        let found = name.split_once(piece);
        name = found.map_or(name, |(_, after)| after);
        found.is_some()
    })
}

/// A matcher of paths: `*` within a folder, `**` for folders, `?` one ASCII character, `[ab]` one of some, `{a,b}` either text.
pub(crate) fn path_matcher(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(format!("failed to use the pattern: give at most {LONGEST_PATTERN} bytes."));
    }
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/{pattern}") };
    let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("failed to use the pattern {pattern:?}: {}.", error.kind()))?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::{name_matches, path_matcher};

    #[test]
    fn patterns_cover_whole_names_and_ignore_case() {
        for (pattern, text, expected) in [
            ("echo", "echo", true),
            ("Echo", "eCHO", true),
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
            ("[a]?{b}", "[a]?{b}", true),
            ("[a]*", "a", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(name_matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn patterns_of_paths_stay_within_a_folder_unless_they_say_otherwise() {
        for (pattern, path, expected) in [
            ("*.md", "/a.md", true),
            ("/*.md", "/a/b.md", false),
            ("/a/**/*.md", "/a/b.md", true),
            ("/a/**/*.md", "/a/b/c/d.md", true),
            ("/a/**", "/a/b/c", true),
            ("/a/?.md", "/a/\u{e4}.md", false),
            ("/a?b", "/a/b", false),
            ("*.{md,txt}", "/a.txt", true),
            ("/[ab].md", "/c.md", false),
        ] {
            assert_eq!(path_matcher(pattern).unwrap().is_match(path), expected, "{pattern} on {path}");
        }
        assert!(path_matcher("/[a").unwrap_err().contains("\"/[a\""));
        assert!(path_matcher(&"a".repeat(256)).is_ok());
        assert!(path_matcher(&"a".repeat(257)).is_err(), "too long");
    }
}

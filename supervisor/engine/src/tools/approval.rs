//! Patterns over the names of tools that need the approval of a person.

use icu_normalizer::DecomposingNormalizerBorrowed;

use super::glob;

/// A pattern of `requireApproval`: `*` matches any characters, also none. Case, accents, compatibility forms (such as full
/// width) and surrounding white space make no difference.
///
/// In doubt it matches: a character of a name outside ASCII, for example an invisible one or a look-alike of a Latin letter,
/// also matches any ASCII character or none.
#[derive(Debug, Clone)]
pub struct ApprovalPattern(String);

impl ApprovalPattern {
    pub fn new(pattern: &str) -> Self {
        Self(folded(pattern))
    }

    /// Whether a tool of this name needs approval.
    pub fn covers(&self, name: &str) -> bool {
        let name = folded(name);
        if name.is_ascii() { glob::is_match(&self.0, &name) } else { may_match(&self.0, &name) }
    }
}

/// The text without case, accents and compatibility forms.
fn folded(text: &str) -> String {
    let text = text.trim();
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_accent = |c: &char| ('\u{300}'..='\u{36f}').contains(c);
    let letters =
        DecomposingNormalizerBorrowed::new_nfkd().normalize_iter(text.chars()).filter(|c| !is_accent(c));
    // In this order, because several lower-case letters share one upper-case form.
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether the name matches if each of its characters outside ASCII also matches any ASCII character or none.
fn may_match(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // Whether the name so far matches the first characters of the pattern, for each number of them.
    let mut matched = vec![false; pattern.len() + 1];
    matched[0] = true;
    skip_stars(&pattern, &mut matched);
    for c in name.chars() {
        let mut next = vec![false; matched.len()];
        for (at, _) in matched.iter().enumerate().filter(|(_, matched)| **matched) {
            let wanted = pattern.get(at).copied();
            next[at] |= wanted == Some('*') || !c.is_ascii();
            if wanted.is_some_and(|wanted| wanted == c || (wanted.is_ascii() && !c.is_ascii())) {
                next[at + 1] = true;
            }
        }
        skip_stars(&pattern, &mut next);
        matched = next;
    }
    matched.last().copied().unwrap_or_default()
}

/// A `*` also matches nothing.
fn skip_stars(pattern: &[char], matched: &mut [bool]) {
    for (at, wanted) in pattern.iter().enumerate() {
        if *wanted == '*' && matched[at] {
            matched[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ApprovalPattern;

    #[test]
    fn spelling_makes_no_difference() {
        for (pattern, name, expected) in [
            ("delete_*", "DELETE_all", true),
            (" delete_all ", "delete_all", true),
            ("delete_all", "delete_all ", true),
            ("delete_*", "undelete_all", false),
            ("delet\u{e9}_all", "delete\u{301}_all", true),
            ("delete\u{301}_all", "DELET\u{c9}_ALL", true),
            ("delete_all", "delet\u{e9}_all", true),
            ("\u{ff44}elete_*", "delete_all", true),
            ("delete_*", "\u{ff24}elete_all", true),
            ("STRASSE_*", "stra\u{df}e_sperren", true),
            ("\u{39f}\u{394}\u{39f}\u{3a3}*", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}_x", true),
            ("kill", "\u{212a}ill", true),
            ("\u{524a}\u{9664}*", "\u{524a}\u{9664}_all", true),
            ("\u{524a}\u{9664}*", "read", false),
            ("\u{524a}\u{9664}", "\u{53d6}\u{5f97}", false),
        ] {
            assert_eq!(ApprovalPattern::new(pattern).covers(name), expected, "{pattern:?} on {name:?}");
        }
    }

    #[test]
    fn a_character_outside_ascii_matches_any_other() {
        for (pattern, name, expected) in [
            ("delete_*", "d\u{435}lete_all", true),
            ("delete_all", "delete\u{200b}_all", true),
            ("delete_all", "\u{202e}delete_all", true),
            ("*delete*", "\u{3b4}elete", true),
            ("delete_*", "remove\u{435}_all", false),
            ("*delete*", "gr\u{f6}\u{df}e_lesen", false),
            ("*delete*", "\u{524a}\u{9664}", false),
            ("*", "\u{524a}\u{9664}", true),
            ("rm", "\u{524a}\u{9664}", true),
            ("rm", "\u{524a}", false),
        ] {
            assert_eq!(ApprovalPattern::new(pattern).covers(name), expected, "{pattern:?} on {name:?}");
        }
    }
}

//! Matching names and paths against patterns.

/// Longer patterns match nothing; it bounds the work.
const LONGEST_PATTERN: usize = 256;

/// Whether the name of a tool matches a pattern in which `*` matches any characters; upper and lower case are the same.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    tokens(&pattern, false).is_some_and(|tokens| matches(&tokens, &name))
}

/// Whether a path matches a pattern: `*` within a folder, `**` across folders, `?` one character.
pub(crate) fn path_matches(pattern: &str, path: &str) -> bool {
    tokens(pattern, true).is_some_and(|tokens| matches(&tokens, path))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    /// Any character but a slash.
    One,
    /// Any characters but slashes.
    Within,
    /// Any characters.
    Across,
}

fn tokens(pattern: &str, paths: bool) -> Option<Vec<Token>> {
    if pattern.len() > LONGEST_PATTERN {
        return None;
    }
    let mut tokens: Vec<Token> = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' if !paths => Token::Across,
            '*' if chars.next_if_eq(&'*').is_some() => {
                // "/**/" may match nothing: "/a/**/b" matches "/a/b".
                if tokens.last() == Some(&Token::Char('/')) {
                    chars.next_if_eq(&'/');
                }
                Token::Across
            }
            '*' => Token::Within,
            '?' if paths => Token::One,
            other => Token::Char(other),
        });
    }
    Some(tokens)
}

/// Follows all ways through the pattern at once, so that the cost is the product of both lengths at worst.
fn matches(tokens: &[Token], text: &str) -> bool {
    let mut at = open(tokens, [0]);
    for c in text.chars() {
        let next = at.iter().filter_map(|&place| step(place, *tokens.get(place)?, c));
        at = open(tokens, next);
        if at.is_empty() {
            return false;
        }
    }
    at.last() == Some(&tokens.len())
}

/// Where the pattern stands after a character, if it takes it.
fn step(place: usize, token: Token, c: char) -> Option<usize> {
    match token {
        Token::Char(wanted) => (wanted == c).then_some(place + 1),
        Token::One => (c != '/').then_some(place + 1),
        Token::Within => (c != '/').then_some(place),
        Token::Across => Some(place),
    }
}

/// The places reachable without taking a character, in order.
fn open(tokens: &[Token], places: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut reached: Vec<usize> = Vec::new();
    for mut place in places {
        reached.push(place);
        while matches!(tokens.get(place), Some(Token::Within | Token::Across)) {
            place += 1;
            reached.push(place);
        }
    }
    reached.sort_unstable();
    reached.dedup();
    reached
}

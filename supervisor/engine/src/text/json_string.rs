//! Reads one string of a JSON object that is still arriving. Reads each character once.

use serde::{Deserialize, Serialize};

/// The members that may hold the answer.
const WANTED: [&str; 3] = ["content", "message", "response"];

/// The length of the longest wanted key.
const LONGEST_KEY: usize = 8;

/// Reads the answer in the arguments of a response call, piece by piece.
///
/// Assumes JSON and never fails: the end of the turn resets an answer that was read from anything else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ContentReader {
    at: At,
    depth: usize,
    key_next: bool,
    key: String,
    string: Unescape,
    found: bool,
}

/// Where in the JSON text the reader is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    /// Between strings.
    #[default]
    Outside,
    /// In a key of the outermost object.
    Key,
    /// In the string of a wanted key.
    Wanted,
    /// In any other string.
    Other,
}

impl ContentReader {
    /// Reads the next piece and appends its part of the answer.
    pub(super) fn read(&mut self, piece: &str, answer: &mut String) {
        for c in piece.chars() {
            if self.at == At::Outside {
                self.outside(c);
            } else if c == '"' && !self.string.is_escaping() {
                self.end_string(answer);
            } else {
                self.inside(c, answer);
            }
        }
    }

    fn outside(&mut self, c: char) {
        match c {
            '"' => self.at = self.begin_string(),
            '{' => {
                self.depth += 1;
                self.key_next |= self.depth == 1;
            }
            '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ',' if self.depth == 1 => self.key_next = true,
            ':' if self.depth == 1 => self.key_next = false,
            _ => {}
        }
    }

    fn begin_string(&mut self) -> At {
        if self.depth == 1 && self.key_next {
            self.key.clear();
            At::Key
        } else if self.depth == 1 && !self.found && WANTED.contains(&self.key.as_str()) {
            At::Wanted
        } else {
            At::Other
        }
    }

    fn inside(&mut self, c: char, answer: &mut String) {
        match self.at {
            At::Wanted => {
                let known = answer.len();
                self.string.push(c, answer);
                self.found |= answer.len() > known;
            }
            At::Key if self.key.len() > LONGEST_KEY => self.string.skip(c),
            At::Key => self.string.push(c, &mut self.key),
            _ => self.string.skip(c),
        }
    }

    fn end_string(&mut self, answer: &mut String) {
        match self.at {
            At::Wanted => self.string.end(answer),
            At::Key => self.string.end(&mut self.key),
            _ => self.string = Unescape::default(),
        }
        self.at = At::Outside;
    }
}

/// Decodes the inside of a JSON string, character by character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Unescape {
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

/// The state of an escape sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Escape {
    #[default]
    None,
    Begun,
    Hex {
        digits: u8,
        value: u32,
    },
}

impl Unescape {
    const fn is_escaping(self) -> bool {
        matches!(self.escape, Escape::Begun)
    }

    fn push(&mut self, c: char, text: &mut String) {
        match self.escape {
            Escape::None if c == '\\' => self.escape = Escape::Begun,
            Escape::None => self.put(c, text),
            Escape::Begun if c == 'u' => self.escape = Escape::Hex { digits: 0, value: 0 },
            Escape::Begun => {
                self.escape = Escape::None;
                self.put(plain_escape(c), text);
            }
            Escape::Hex { digits, value } => self.hex(digits, value, c, text),
        }
    }

    /// Reads a character without decoding it, only to find out whether a quote is escaped.
    const fn skip(&mut self, c: char) {
        self.escape = match self.escape {
            Escape::None if c == '\\' => Escape::Begun,
            _ => Escape::None,
        };
    }

    fn end(&mut self, text: &mut String) {
        self.settle_high(text);
        *self = Self::default();
    }

    fn hex(&mut self, digits: u8, value: u32, c: char, text: &mut String) {
        let Some(digit) = c.to_digit(16) else {
            self.escape = Escape::None;
            return self.put(char::REPLACEMENT_CHARACTER, text);
        };
        let value = value * 16 + digit;
        if digits < 3 {
            self.escape = Escape::Hex { digits: digits + 1, value };
        } else {
            self.escape = Escape::None;
            self.unit(value, text);
        }
    }

    /// Adds a UTF-16 code unit.
    fn unit(&mut self, unit: u32, text: &mut String) {
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (before, 0xD800..=0xDBFF) => {
                text.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                self.high = Some(unit);
            }
            (before, _) => {
                text.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    fn put(&mut self, c: char, text: &mut String) {
        self.settle_high(text);
        text.push(c);
    }

    fn settle_high(&mut self, text: &mut String) {
        if self.high.take().is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

const fn plain_escape(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}

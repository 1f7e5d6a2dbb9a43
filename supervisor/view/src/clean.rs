//! Makes the text of a peer safe for a terminal.

/// The state between two pieces of a text: an escape sequence may be cut anywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence (`ESC [`, or C1 `CSI`), until its final byte.
    Control,
    /// In a string of the terminal's own (OSC, DCS, SOS, PM, APC), until its terminator.
    Command,
    /// After ESC in such a string.
    CommandEscape,
}

/// Removes whatever could control a terminal: whole escape sequences, control characters other than line feed and tab, and
/// characters that change the direction of text. The result does not depend on how a text is split into pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cleaner {
    state: State,
}

impl Cleaner {
    /// The next piece, cleaned.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut clean = String::with_capacity(piece.len());
        clean.extend(piece.chars().filter(|c| self.accepts(*c)));
        clean
    }

    fn accepts(&mut self, c: char) -> bool {
        // A line feed ends any sequence: a peer that leaves one open hides a line at most, not the rest.
        if c == '\n' {
            self.state = State::Text;
            return true;
        }
        let (next, shown) = self.state.after(c);
        self.state = next;
        shown
    }
}

impl State {
    /// The state after a character, and whether the character is shown.
    fn after(self, c: char) -> (Self, bool) {
        match self {
            Self::Text => Self::text(c),
            Self::Escape => match c {
                '[' => (Self::Control, false),
                ']' | 'P' | 'X' | '^' | '_' => (Self::Command, false),
                // Intermediate bytes, as in `ESC ( B`.
                ' '..='/' => (Self::Escape, false),
                '0'..='~' => (Self::Text, false),
                _ => Self::text(c),
            },
            Self::Control => match c {
                '@'..='~' => (Self::Text, false),
                ' '..='?' => (Self::Control, false),
                _ => Self::text(c),
            },
            Self::Command => match c {
                '\u{1b}' => (Self::CommandEscape, false),
                '\u{7}' | '\u{9c}' => (Self::Text, false),
                _ => (Self::Command, false),
            },
            Self::CommandEscape => (if c == '\\' { Self::Text } else { Self::Command }, false),
        }
    }

    /// The same outside of an escape sequence, or after an invalid one.
    fn text(c: char) -> (Self, bool) {
        let next = match c {
            '\u{1b}' => Self::Escape,
            '\u{9b}' => Self::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Self::Command,
            _ => Self::Text,
        };
        (next, is_harmless(c))
    }
}

/// A whole text, cleaned.
pub fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

/// A whole text, cleaned and on one line, without Markdown's bold.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ").replace("**", "")
}

/// Whether a terminal shows the character and does nothing else.
pub(crate) fn is_harmless(c: char) -> bool {
    let changes_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // The line and paragraph separators and the byte order mark only confuse widths.
    let confuses = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    (!c.is_control() || c == '\t' || c == '\n') && !changes_direction && !confuses
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;

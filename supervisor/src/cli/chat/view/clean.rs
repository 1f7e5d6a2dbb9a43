//! Text that a peer sent, made safe for a terminal.

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

/// Removes what could command a terminal: escape sequences whole, control characters other than line feed
/// and tab, and the characters that turn the direction of text around. Works piece by piece: however a text
/// is cut, the result is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cleaner {
    state: State,
}

impl Cleaner {
    /// The next piece, cleaned.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut clean = String::with_capacity(piece.len());
        clean.extend(piece.chars().filter(|c| self.passes(*c)));
        clean
    }

    fn passes(&mut self, c: char) -> bool {
        // A line feed ends any sequence: a peer that leaves one open hides a line at most, not the rest.
        if c == '\n' {
            self.state = State::Text;
            return true;
        }
        let (next, shown) = match (self.state, c) {
            (State::Text, _) => (opened_by(c), is_harmless(c)),
            (State::Escape, '[') => (State::Control, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::Command, false),
            // Intermediate bytes, as in `ESC ( B`.
            (State::Escape, ' '..='/') => (State::Escape, false),
            (State::Control, '\u{40}'..='\u{7e}') => (State::Text, false),
            (State::Control, '\u{20}'..='\u{3f}') => (State::Control, false),
            (State::Command, '\u{1b}') => (State::CommandEscape, false),
            (State::Command, '\u{7}' | '\u{9c}') => (State::Text, false),
            (State::Command, _) => (State::Command, false),
            (State::CommandEscape, '\\') | (State::Escape, '\u{30}'..='\u{7e}') => (State::Text, false),
            (State::CommandEscape, _) => (State::Command, false),
            // Not a sequence after all: what follows is text again.
            (State::Escape | State::Control, _) => (opened_by(c), is_harmless(c)),
        };
        self.state = next;
        shown
    }
}

/// A whole text, cleaned.
pub(crate) fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

/// A whole text, cleaned and on one line, without Markdown's bold.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<String> = clean(text).split_whitespace().map(str::to_owned).collect();
    words.join(" ").replace("**", "")
}

const fn opened_by(c: char) -> State {
    match c {
        '\u{1b}' => State::Escape,
        '\u{9b}' => State::Control,
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => State::Command,
        _ => State::Text,
    }
}

/// Whether a terminal only shows it.
pub(crate) fn is_harmless(c: char) -> bool {
    let turns_text_around = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // The line and paragraph separators and the byte order mark only confuse widths.
    let confuses = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    (!c.is_control() || c == '\t' || c == '\n') && !turns_text_around && !confuses
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;

//! The part of a terminal that is drawn again and again, below what stays.

use super::paint::width;

/// Begin and end of an update that capable terminals show at once.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// Erases to the end of the line, and to the end of the screen.
const ERASE_LINE: &str = "\u{1b}[K";
const ERASE_BELOW: &str = "\u{1b}[J";

/// What is drawn now. The cursor stays at the end of its last line.
#[derive(Debug, Default)]
pub(super) struct Live {
    lines: Vec<String>,
}

impl Live {
    /// What to write so that `settled` stays above and `lines` take the place of what was drawn, or nothing if
    /// that changes nothing. Lines are written over, not erased first, so that nothing flickers.
    pub(super) fn draw(&mut self, settled: &[String], lines: Vec<String>, columns: usize) -> String {
        if settled.is_empty() && lines == self.lines {
            return String::new();
        }
        let mut bytes = format!("{BEGIN}{}", self.to_top(columns));
        for line in settled {
            bytes.push_str(line);
            bytes.push_str(ERASE_LINE);
            bytes.push_str("\r\n");
        }
        bytes.push_str(&lines.join(&format!("{ERASE_LINE}\r\n")));
        if !lines.is_empty() {
            bytes.push_str(ERASE_LINE);
        }
        bytes.push_str(ERASE_BELOW);
        bytes.push_str(END);
        self.lines = lines;
        bytes
    }

    /// Moves the cursor to the first column of the first line. A terminal that became narrower has broken the
    /// lines, so that they take more rows than they are.
    fn to_top(&self, columns: usize) -> String {
        let rows: usize = self.lines.iter().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum();
        match rows.saturating_sub(1) {
            0 => "\r".to_owned(),
            up => format!("\r\u{1b}[{up}A"),
        }
    }
}

//! Styles of single lines, and how wide they are.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Puts styles around text. Without color, weight is left (`NO_COLOR` speaks of color only).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    color: bool,
}

impl Paint {
    /// A paint with or without color.
    pub(crate) const fn new(color: bool) -> Self {
        Self { color }
    }

    pub(crate) const fn has_color(self) -> bool {
        self.color
    }

    /// For what went wrong.
    pub(crate) fn red(self, text: &str) -> String {
        self.colored("31", text)
    }

    /// For what was stopped.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.colored("33", text)
    }

    /// For what moves.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.colored("36", text)
    }

    /// For what is beside the point.
    pub(crate) fn dim(text: &str) -> String {
        format!("\u{1b}[2m{text}\u{1b}[0m")
    }

    /// For what stands out.
    pub(crate) fn bold(text: &str) -> String {
        format!("\u{1b}[1m{text}\u{1b}[0m")
    }

    fn colored(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// How many columns a line takes, its escape sequences apart.
pub(super) fn width(line: &str) -> usize {
    visible(line).map(UnicodeWidthStr::width).sum()
}

/// Plain text, cut to a number of columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

/// The stretches of text between `ESC [ … m`, the only sequences that we write into lines.
fn visible(line: &str) -> impl Iterator<Item = &str> {
    line.split('\u{1b}').enumerate().map(|(index, piece)| match (index, piece.split_once('m')) {
        (0, _) | (_, None) => piece,
        (_, Some((_, text))) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_take_no_columns() {
        let paint = Paint::new(true);
        for (line, expected) in [
            ("plain".to_owned(), 5),
            (paint.red("mmm"), 3),
            (format!("a{}b", Paint::dim("✅")), 4),
            (String::new(), 0),
        ] {
            assert_eq!(width(&line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_cut_line_fits() {
        for (text, columns, expected) in
            [("short", 5, "short"), ("longer", 5, "long…"), ("安安安", 5, "安安…"), ("ab", 0, "…")]
        {
            assert_eq!(cut(text, columns), expected, "{text}");
        }
    }
}

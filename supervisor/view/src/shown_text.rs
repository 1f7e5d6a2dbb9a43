//! The text that was shown, so that nothing is shown twice.

/// The shown text of one artifact.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    shown: String,
    /// The repeated text, while a peer repeats text that was shown already.
    behind: Option<String>,
}

/// The change of the shown text by a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Addition {
    Append(String),
    /// Replaces the shown text.
    Replace(String),
}

impl StreamedText {
    /// Adds a piece and returns the new text in it. A snapshot after a lost connection may contain less text than was
    /// shown, the same or more.
    pub(super) fn add(&mut self, piece: &str, append: bool) -> Addition {
        let text = match (append, self.behind.take()) {
            (true, None) => {
                self.shown.push_str(piece);
                return Addition::Append(piece.to_owned());
            }
            (true, Some(behind)) => behind + piece,
            (false, _) => piece.to_owned(),
        };
        if let Some(more) = text.strip_prefix(&self.shown) {
            let more = more.to_owned();
            self.shown = text;
            return Addition::Append(more);
        }
        if self.shown.starts_with(&text) {
            self.behind = Some(text);
            return Addition::Append(String::new());
        }
        self.shown.clone_from(&text);
        Addition::Replace(text)
    }

    /// Whether a peer has taken back text that was shown, and has not repeated it.
    pub(super) const fn is_behind(&self) -> bool {
        self.behind.is_some()
    }
}

/// All text of a turn, to find the part of a result that is new.
#[derive(Debug, Default)]
pub(super) struct ShownText {
    all: String,
    /// The start of the newest piece of the answer in `all`.
    answer: Option<usize>,
}

impl ShownText {
    /// Adds shown text. `fresh` starts a paragraph; `answer` distinguishes the answer from narration.
    pub(super) fn add(&mut self, text: &str, fresh: bool, answer: bool) {
        if fresh {
            self.all.push('\n');
            self.answer = None;
        }
        if answer && self.answer.is_none() {
            self.answer = Some(self.all.len());
        }
        self.all.push_str(text);
    }

    /// The part of `text` that was not shown yet. Ignores white space.
    pub(super) fn missing<'a>(&self, text: &'a str) -> Missing<'a> {
        if ends_with(&self.all, text) {
            return Missing::Nothing;
        }
        let answer = self.answer.and_then(|start| self.all.get(start..)).unwrap_or_default();
        match after(text, answer) {
            Some(tail) => Missing::Tail(tail),
            None => Missing::All,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing<'a> {
    All,
    /// The rest; the start was shown.
    Tail(&'a str),
    /// All of it was shown, or it is blank.
    Nothing,
}

/// Whether `shown` ends with `text` and `text` starts at a word. Ignores white space.
fn ends_with(shown: &str, text: &str) -> bool {
    let visible = |c: &(usize, char)| !c.1.is_whitespace();
    let mut reversed = shown.char_indices().rev().filter(visible);
    let mut start = shown.len();
    for (_, c) in text.char_indices().rev().filter(visible) {
        match reversed.next() {
            Some((at, same)) if same == c => start = at,
            _ => return false,
        }
    }
    let before = shown.get(..start).and_then(|before| before.chars().next_back());
    start == shown.len() || !before.is_some_and(char::is_alphanumeric)
}

/// The rest of `text` after `beginning`; `None` if `text` does not start so or `beginning` is blank. Ignores white space.
fn after<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let visible = |c: &(usize, char)| !c.1.is_whitespace();
    let mut chars = text.char_indices().filter(visible);
    let mut end = None;
    for (_, c) in beginning.char_indices().filter(visible) {
        let (at, same) = chars.next()?;
        if same != c {
            return None;
        }
        end = Some(at + same.len_utf8());
    }
    text.get(end?..)
}

#[cfg(test)]
#[path = "shown_text_tests.rs"]
mod tests;

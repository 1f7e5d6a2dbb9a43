//! The text shown so far, so that nothing is shown twice.

/// One artifact's text: what was shown of it, whatever a peer sends again.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    shown: String,
    /// The text as the peer tells it, while it repeats what was shown already.
    behind: Option<String>,
}

/// What a piece of an artifact adds to what was shown of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Addition {
    /// Text behind the shown text.
    Append(String),
    /// This takes the place of what was shown.
    Replace(String),
}

impl StreamedText {
    /// Takes a piece. A snapshot after a broken connection may tell less, the same or more than was shown: only
    /// what is new is returned.
    pub(super) fn take(&mut self, piece: &str, append: bool) -> Addition {
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
}

/// Everything that was said in a turn, to find out what a result adds to it.
#[derive(Debug, Default)]
pub(super) struct ShownText {
    all: String,
    /// Where the newest stretch of answer begins in `all`.
    answer: Option<usize>,
}

impl ShownText {
    /// Adds shown text. `fresh` begins a paragraph; `answer` distinguishes the answer from narration.
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

    /// What of `text` was not said yet: all of it, its end, or nothing. White space makes no difference.
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
    /// Its beginning was said, this was not.
    Tail(&'a str),
    /// It was said, or is blank.
    Nothing,
}

/// Whether `shown` ends in `text` at the beginning of a word, white space apart.
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

/// What comes in `text` after `beginning`, white space apart; `None` if it does not begin so, or `beginning`
/// is blank.
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

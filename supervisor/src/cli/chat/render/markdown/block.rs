//! Streamed Markdown, line by line: what is certain and what is still open.

/// A piece of Markdown that is laid out on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// An empty line.
    Blank,
    Paragraph(String),
    /// A heading and its level, from 1.
    Heading(u8, String),
    /// An entry of a list.
    Item {
        /// How deep it is nested, from 0.
        level: u8,
        /// Its number, in a numbered list.
        number: Option<u32>,
        text: String,
    },
    /// A quoted line.
    Quote(String),
    /// A line of code.
    Code(String),
    /// A horizontal line.
    Rule,
    /// The rows of a table, the one below the head included.
    Table(Vec<String>),
}

/// A block, and whether more of it may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) block: Block,
    /// Whether its last line is not whole yet.
    pub(crate) open: bool,
}

/// Takes Markdown in pieces. What is returned will not change any more; what is still [`Stream::open`] may.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    line: String,
    fence: Option<Fence>,
    table: Vec<String>,
}

/// What closes a block of code.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    /// How far the block is indented; its lines lose as much.
    indent: usize,
}

impl Stream {
    /// Takes the next piece and returns the blocks that it makes certain.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut blocks = Vec::new();
        for piece in text.split_inclusive('\n') {
            // How wide a tab is depends on the terminal; what is laid out must not.
            self.line.push_str(&piece.replace('\t', "    "));
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.whole_line(line.trim_end(), &mut blocks);
            }
        }
        blocks.into_iter().map(|block| Piece { block, open: false }).collect()
    }

    /// Ends the text: everything is certain.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let mut blocks = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.trim().is_empty() {
            self.whole_line(line.trim_end(), &mut blocks);
        }
        self.end_table(&mut blocks);
        self.fence = None;
        blocks.into_iter().map(|block| Piece { block, open: false }).collect()
    }

    /// What is not certain yet, as it looks now.
    pub(crate) fn open(&self) -> Vec<Piece> {
        let line = self.line.trim_end();
        if self.fence.is_some() {
            let code = Some(line).filter(|line| !line.is_empty() && !self.may_close(line));
            return code.map(|line| vec![self.code(line)]).unwrap_or_default();
        }
        let mut pieces = Vec::new();
        let in_table = line.trim_start().starts_with('|');
        if !self.table.is_empty() || in_table {
            let mut rows = self.table.clone();
            rows.extend(in_table.then(|| line.to_owned()));
            pieces.push(Piece { block: Block::Table(rows), open: in_table });
        }
        if !in_table && !line.is_empty() && !is_undecided(line) {
            pieces.push(Piece { block: block(line), open: true });
        }
        pieces
    }

    fn code(&self, line: &str) -> Piece {
        Piece { block: Block::Code(self.unindented(line)), open: true }
    }

    fn whole_line(&mut self, line: &str, blocks: &mut Vec<Block>) {
        if let Some(fence) = self.fence {
            if closes(line, fence) {
                self.fence = None;
            } else {
                blocks.push(Block::Code(self.unindented(line)));
            }
            return;
        }
        if line.trim_start().starts_with('|') {
            self.table.push(line.trim().to_owned());
            return;
        }
        self.end_table(blocks);
        self.fence = fence(line);
        if self.fence.is_none() {
            blocks.push(block(line));
        }
    }

    /// Rows without the one below the head are just lines that begin with a bar.
    fn end_table(&mut self, blocks: &mut Vec<Block>) {
        let rows = std::mem::take(&mut self.table);
        if rows.get(1).is_some_and(|row| is_table_rule(row)) {
            blocks.push(Block::Table(rows));
        } else {
            blocks.extend(rows.into_iter().map(Block::Paragraph));
        }
    }

    /// Whether a line in a block of code may become its end.
    fn may_close(&self, line: &str) -> bool {
        self.fence.is_some_and(|fence| line.trim_start().chars().all(|c| c == fence.mark))
    }

    fn unindented(&self, line: &str) -> String {
        let indent = self.fence.map_or(0, |fence| fence.indent);
        let blanks = line.chars().take(indent).take_while(|c| *c == ' ').count();
        line.get(blanks..).unwrap_or_default().to_owned()
    }
}

fn fence(line: &str) -> Option<Fence> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    // A line with more of its marks behind is code within text.
    let is_fence = length >= 3 && !text.get(length..).is_some_and(|rest| rest.contains('`'));
    is_fence.then(|| Fence { mark, length, indent: line.len() - text.len() })
}

fn closes(line: &str, fence: Fence) -> bool {
    let text = line.trim();
    text.chars().count() >= fence.length && text.chars().all(|c| c == fence.mark)
}

/// Whether it is not clear yet what a line will be.
fn is_undecided(line: &str) -> bool {
    let text = line.trim_start();
    let only = |marks: &[char]| text.chars().all(|c| marks.contains(&c));
    let fence = fence(line).is_some();
    fence || only(&['#']) || only(&['-', '*', '_', '+']) || only(&['`']) || only(&['~']) || text == ">"
}

/// Whether a row only separates the head from the rest, `|---|:-:|`.
pub(super) fn is_table_rule(row: &str) -> bool {
    row.contains('-') && row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// A line outside of code and tables.
fn block(line: &str) -> Block {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    if text.is_empty() {
        return Block::Blank;
    }
    if is_rule(text) {
        return Block::Rule;
    }
    if let Some(heading) = heading(text) {
        return heading;
    }
    if let Some(rest) = text.strip_prefix('>') {
        return Block::Quote(rest.trim_start().to_owned());
    }
    item(text, indent).unwrap_or_else(|| Block::Paragraph(line.to_owned()))
}

fn is_rule(text: &str) -> bool {
    let marks: String = text.chars().filter(|c| *c != ' ').collect();
    let same = |mark| marks.chars().all(|c| c == mark);
    marks.len() >= 3 && (same('-') || same('*') || same('_'))
}

fn heading(text: &str) -> Option<Block> {
    let level = text.chars().take_while(|c| *c == '#').count();
    let title = text.get(level..)?.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    let level = u8::try_from(level).ok().filter(|level| (1..=6).contains(level))?;
    Some(Block::Heading(level, title.to_owned()))
}

fn item(text: &str, indent: usize) -> Option<Block> {
    let level = u8::try_from(indent.div_ceil(2)).unwrap_or(u8::MAX).min(3);
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark));
    if let Some(rest) = bullet {
        return Some(Block::Item { level, number: None, text: tick(rest.trim_start()) });
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let number = text.get(..digits)?.parse().ok()?;
    let rest = text.get(digits..)?;
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    Some(Block::Item { level, number: Some(number), text: rest.trim_start().to_owned() })
}

/// `[x]` and `[ ]` as boxes.
fn tick(text: &str) -> String {
    let boxes = [("[ ] ", "☐ "), ("[x] ", "☑ "), ("[X] ", "☑ ")];
    let ticked = boxes.iter().find_map(|(mark, sign)| Some(format!("{sign}{}", text.strip_prefix(mark)?)));
    ticked.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;

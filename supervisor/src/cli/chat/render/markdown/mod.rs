//! Markdown for a terminal, as it streams.

mod block;
mod inline;

use termimad::crossterm::style::{Attribute, Color};
use termimad::minimad::{Alignment, Composite, CompositeStyle, Compound, Line, TableRow, TableRule, Text};
use termimad::{CompoundStyle, FmtText, LineStyle, MadSkin};

pub(crate) use block::{Block, Piece, Stream};

use inline::{Span, spans};

/// The narrowest that the layout is asked for; a narrower terminal breaks the lines itself.
const NARROWEST: usize = 8;
/// Wider lines are hard to read.
const WIDEST: usize = 100;
/// What stands before a line of code.
const CODE_INDENT: &str = "    ";

#[derive(Debug)]
pub(crate) struct Theme {
    skin: MadSkin,
}

impl Theme {
    /// The look of an answer. Without `color`, weight and slant are left.
    pub(crate) fn new(color: bool) -> Self {
        let mut skin = MadSkin::no_style();
        let attribute = |attribute| CompoundStyle::with_attr(attribute);
        skin.bold = attribute(Attribute::Bold);
        skin.italic = attribute(Attribute::Italic);
        skin.strikeout = attribute(Attribute::CrossedOut);
        for header in &mut skin.headers {
            *header = LineStyle::new(attribute(Attribute::Bold), Alignment::Left);
        }
        skin.headers[0].add_attr(Attribute::Underlined);
        if color {
            skin.inline_code = CompoundStyle::with_fg(Color::Cyan);
            skin.code_block.set_fg(Color::Cyan);
            skin.table.set_fg(Color::DarkGrey);
            skin.bullet.set_fg(Color::DarkGrey);
            skin.quote_mark.set_fg(Color::DarkGrey);
            skin.horizontal_rule.set_fg(Color::DarkGrey);
        }
        Self { skin }
    }

    /// The look of what is beside the point: laid out, without any style.
    pub(crate) fn bare() -> Self {
        Self { skin: MadSkin::no_style() }
    }

    /// The lines of a piece, none wider than `width`, with the escape sequences of their style.
    pub(crate) fn lines(&self, piece: &Piece, width: usize) -> Vec<String> {
        let width = width.clamp(NARROWEST, WIDEST);
        match &piece.block {
            Block::Blank => vec![String::new()],
            // Code keeps its lines, so that they can be copied.
            Block::Code(code) => {
                vec![self.skin.code_block.compound_style.apply_to(format!("{CODE_INDENT}{code}")).to_string()]
            }
            Block::Rule => self.layout(vec![Line::HorizontalRule], width.min(40)),
            Block::Table(rows) => self.table(rows, piece.open, width),
            Block::Paragraph(text) => self.composite(CompositeStyle::Paragraph, text, piece.open, width),
            Block::Heading(level, text) => {
                self.composite(CompositeStyle::Header(*level), text, piece.open, width)
            }
            Block::Quote(text) => self.composite(CompositeStyle::Quote, text, piece.open, width),
            Block::Item { level, number, text } => {
                let style = match number {
                    Some(index) => CompositeStyle::OrderedListItem { level: *level, index: *index },
                    None => CompositeStyle::ListItem(*level),
                };
                self.composite(style, text, piece.open, width)
            }
        }
    }

    fn composite(&self, style: CompositeStyle, text: &str, open: bool, width: usize) -> Vec<String> {
        let spans = spans(text, open);
        let composite = Composite { style, compounds: compounds(&spans) };
        self.layout(vec![Line::Normal(composite)], width)
    }

    fn table(&self, rows: &[String], open: bool, width: usize) -> Vec<String> {
        let cells: Vec<Option<Vec<Vec<Span>>>> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                (!block::is_table_rule(row)).then(|| row_spans(row, open && index + 1 == rows.len()))
            })
            .collect();
        let lines = rows.iter().zip(&cells).map(|(row, cells)| match cells {
            Some(cells) => {
                Line::TableRow(TableRow { cells: cells.iter().map(|cell| composite(cell)).collect() })
            }
            None => Line::TableRule(TableRule { cells: alignments(row) }),
        });
        self.layout(lines.collect(), width)
    }

    fn layout(&self, lines: Vec<Line<'_>>, width: usize) -> Vec<String> {
        let text = FmtText::from_text(&self.skin, Text { lines }, Some(width));
        text.to_string().lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn composite(spans: &[Span]) -> Composite<'_> {
    Composite { style: CompositeStyle::Paragraph, compounds: compounds(spans) }
}

fn compounds(spans: &[Span]) -> Vec<Compound<'_>> {
    let mut compounds = Vec::with_capacity(spans.len());
    for Span { text, style } in spans {
        let inline::Style { bold, italic, code, strikeout } = *style;
        compounds.push(Compound { src: text, bold, italic, code, strikeout });
    }
    compounds
}

fn row_spans(row: &str, open: bool) -> Vec<Vec<Span>> {
    cells(row).iter().map(|cell| padded(spans(cell.trim(), open))).collect()
}

/// A cell with some air to its borders; the layout drops plain blanks.
fn padded(mut spans: Vec<Span>) -> Vec<Span> {
    const AIR: &str = "\u{a0}";
    spans.insert(0, Span { text: AIR.to_owned(), ..Span::default() });
    spans.push(Span { text: AIR.to_owned(), ..Span::default() });
    spans
}

/// The cells of a row, split at bars that are neither escaped nor within code.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let (mut escaped, mut code) = (false, false);
    for c in row.chars() {
        if c == '|' && !escaped && !code {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
        code ^= c == '`';
        escaped = c == '\\' && !escaped;
    }
    cells
}

fn alignments(row: &str) -> Vec<Alignment> {
    let alignment = |cell: &String| match (cell.trim().starts_with(':'), cell.trim().ends_with(':')) {
        (true, true) => Alignment::Center,
        (false, true) => Alignment::Right,
        (true, false) => Alignment::Left,
        (false, false) => Alignment::Unspecified,
    };
    cells(row).iter().map(alignment).collect()
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

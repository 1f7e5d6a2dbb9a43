use proptest::prelude::*;

use super::*;

fn blocks(text: &str) -> Vec<Block> {
    let mut stream = Stream::default();
    let mut pieces = stream.push(text);
    pieces.extend(stream.finish());
    pieces.into_iter().map(|piece| piece.block).collect()
}

fn paragraph(text: &str) -> Block {
    Block::Paragraph(text.to_owned())
}

fn item(level: u8, number: Option<u32>, text: &str) -> Block {
    Block::Item { level, number, text: text.to_owned() }
}

#[test]
fn lines_are_what_they_begin_with() {
    for (line, expected) in [
        ("text", paragraph("text")),
        ("", Block::Blank),
        ("# Title #", Block::Heading(1, "Title".to_owned())),
        ("###### Six", Block::Heading(6, "Six".to_owned())),
        ("#hash", paragraph("#hash")),
        ("- a", item(0, None, "a")),
        ("  * b", item(1, None, "b")),
        ("    + c", item(2, None, "c")),
        ("- [x] done", item(0, None, "☑ done")),
        ("12. twelve", item(0, Some(12), "twelve")),
        ("1) one", item(0, Some(1), "one")),
        ("1.5 is a number", paragraph("1.5 is a number")),
        ("> said", Block::Quote("said".to_owned())),
        ("---", Block::Rule),
        ("* * *", Block::Rule),
        ("-5 degrees", paragraph("-5 degrees")),
        ("- a\tb", item(0, None, "a    b")),
    ] {
        assert_eq!(blocks(&format!("{line}\n")), [expected], "{line:?}");
    }
}

#[test]
fn code_stays_as_it_is() {
    let text = "```rust\n# no heading\n\n  | no table |\n```\nafter";
    let code = |line: &str| Block::Code(line.to_owned());
    assert_eq!(blocks(text), [code("# no heading"), code(""), code("  | no table |"), paragraph("after")]);
    // Within a list, the block loses the indent of its fence; a longer fence holds shorter ones.
    assert_eq!(blocks("  ````\n    a\n  ```\n  ````\n"), [code("  a"), code("```")]);
    assert_eq!(blocks("```not a fence```\n"), [paragraph("```not a fence```")]);
    assert_eq!(blocks("```\nnever closed"), [code("never closed")]);
}

#[test]
fn a_table_comes_whole() {
    let mut stream = Stream::default();
    assert_eq!(stream.push("| a | b |\n|---|---|\n| 1 |"), []);
    let rows = |rows: &[&str]| Block::Table(rows.iter().map(|row| (*row).to_owned()).collect());
    assert_eq!(stream.open(), [Piece { block: rows(&["| a | b |", "|---|---|", "| 1 |"]), open: true }]);
    let settled = stream.push(" 2 |\n\n");
    assert_eq!(settled[0].block, rows(&["| a | b |", "|---|---|", "| 1 | 2 |"]));
    assert_eq!(blocks("| just a line\n"), [paragraph("| just a line")]);
}

#[test]
fn what_is_undecided_is_not_shown() {
    for line in ["#", "##", "-", "*", "**", "`", "``", "```", "```ru", "~~~", ">", "---"] {
        let mut stream = Stream::default();
        stream.push(line);
        assert_eq!(stream.open(), [], "{line:?}");
    }
    let mut stream = Stream::default();
    stream.push("```\ncode\n``");
    assert_eq!(stream.open(), [], "the end of a block of code");
}

proptest! {
    /// However a text is cut, the blocks are the same.
    #[test]
    fn cuts_make_no_difference(text in "[a|`#*> \\-\n]{0,80}", size in 1_usize..7) {
        let chars: Vec<char> = text.chars().collect();
        let mut stream = Stream::default();
        let mut pieces = Vec::new();
        for chunk in chars.chunks(size) {
            pieces.extend(stream.push(&chunk.iter().collect::<String>()));
            stream.open();
        }
        pieces.extend(stream.finish());
        let cut: Vec<Block> = pieces.into_iter().map(|piece| piece.block).collect();
        prop_assert_eq!(cut, blocks(&text));
    }
}

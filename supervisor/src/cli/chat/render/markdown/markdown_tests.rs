use proptest::prelude::*;

use super::super::paint;
use super::*;

fn laid_out(text: &str, width: usize) -> String {
    let theme = Theme::bare();
    let mut stream = Stream::default();
    let mut pieces = stream.push(text);
    pieces.extend(stream.finish());
    pieces.iter().flat_map(|piece| theme.lines(piece, width)).collect::<Vec<_>>().join("\n")
}

#[test]
fn markdown_reads_well_without_any_style() {
    let text = "\
# Title
Some **bold**, *slanted* and `code` text that is long enough to be wrapped once.

- first, which is wrapped under itself and not under its bullet
  - nested
1. one
2. two

> quoted

```sh
ls *.rs   # kept
```

| Name | Count |
|:-----|------:|
| `a|b` | 1 |
| **long name** | 22 |
";
    insta::assert_snapshot!(laid_out(text, 40).replace('\u{a0}', " "), @r#"
Title
Some bold, slanted and code text that is
long enough to be wrapped once.

• first, which is wrapped under itself
  and not under its bullet
 • nested
1. one
2. two

▐ quoted

    ls *.rs   # kept

│   Name    │ Count │
├───────────┼───────┤
│ a|b       │     1 │
│ long name │    22 │
"#);
}

#[test]
fn without_color_no_color_is_written() {
    let theme = Theme::new(false);
    let mut stream = Stream::default();
    let pieces = stream.push("# T\n**b** `c`\n- i\n> q\n| a |\n|---|\n\n");
    let lines: String = pieces.iter().flat_map(|piece| theme.lines(piece, 40)).collect();
    for color in ["\u{1b}[38", "\u{1b}[48"] {
        assert!(!lines.contains(color), "{lines:?}");
    }
    assert!(lines.contains("\u{1b}[1m"), "weight is left: {lines:?}");
}

proptest! {
    /// Whatever a model writes, no line but one of code is wider than the terminal.
    #[test]
    fn lines_fit(text in "[a-z安✅|`#*> \\-\n]{0,200}", width in 10_usize..60) {
        let theme = Theme::new(true);
        let mut stream = Stream::default();
        let mut pieces = stream.push(&text);
        pieces.extend(stream.open());
        pieces.extend(stream.finish());
        for piece in pieces.iter().filter(|piece| !matches!(piece.block, Block::Code(_) | Block::Table(_))) {
            for line in theme.lines(piece, width) {
                prop_assert!(paint::width(&line) <= width, "{:?}: {:?}", piece, line);
            }
        }
    }
}

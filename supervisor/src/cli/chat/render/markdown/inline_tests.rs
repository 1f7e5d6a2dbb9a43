use proptest::prelude::*;

use super::*;

/// Spans in a short notation: `b(…)`, `i(…)`, `c(…)`, `s(…)`, combined as `bi(…)`.
fn rendered(line: &str, open: bool) -> String {
    let tell = |span: &Span| {
        let Style { bold, italic, code, strikeout } = span.style;
        let flags: String = [(bold, 'b'), (italic, 'i'), (code, 'c'), (strikeout, 's')]
            .into_iter()
            .filter_map(|(on, flag)| on.then_some(flag))
            .collect();
        if flags.is_empty() { span.text.clone() } else { format!("{flags}({})", span.text) }
    };
    spans(line, open).iter().map(tell).collect()
}

#[test]
fn a_whole_line_has_its_styles_and_nothing_else_has() {
    for (line, expected) in [
        ("plain", "plain"),
        ("**bold** and *italic*", "b(bold) and i(italic)"),
        ("__bold__ and _italic_", "b(bold) and i(italic)"),
        ("***both***", "bi(both)"),
        ("**bold *and italic***", "b(bold )bi(and italic)"),
        ("~~gone~~", "s(gone)"),
        ("`code **not bold**`", "c(code **not bold**)"),
        ("``a ` b``", "c(a ` b)"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("ls *.rs and *.toml", "ls *.rs and *.toml"),
        ("snake_case_name", "snake_case_name"),
        ("~5 minutes ~ maybe", "~5 minutes ~ maybe"),
        (r"\*not italic\*", "*not italic*"),
        ("**never closed", "**never closed"),
        ("`never closed", "`never closed"),
        ("see [docs](https://a.b/c).", "see docs (https://a.b/c)."),
        ("[https://a.b](https://a.b)", "https://a.b"),
        ("**[bold link](https://a.b)**", "b(bold link (https://a.b))"),
        ("![chart](https://a.b/x.png)", "chart (https://a.b/x.png)"),
        ("[Jira] not a link (really)", "[Jira] not a link (really)"),
        ("**`code` in bold**", "bc(code)b( in bold)"),
    ] {
        assert_eq!(rendered(line, false), expected, "{line:?}");
    }
}

#[test]
fn an_open_line_shows_no_half_mark() {
    for (line, expected) in [
        ("**bo", "b(bo)"),
        ("**", ""),
        ("some *", "some "),
        ("**bold*", "b(bold)"),
        ("**bold**", "b(bold)"),
        ("and `co", "and c(co)"),
        ("and ``", "and "),
        ("see [docs](https://a", "see docs"),
        ("see [do", "see "),
        ("see [docs]", "see "),
        ("[Jira] does", "[Jira] does"),
        ("**bold** then *it", "b(bold) then i(it)"),
        ("2 * 3", "2 * 3"),
    ] {
        assert_eq!(rendered(line, true), expected, "{line:?}");
    }
}

proptest! {
    /// Reading ends, loses no letters and makes none up.
    #[test]
    fn letters_survive(line in "[ab*_~`\\[\\]()!\\\\ ]{0,60}", open in any::<bool>()) {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        let shown: String = spans(&line, open).iter().map(|span| span.text.as_str()).collect();
        if open && line.contains('[') {
            prop_assert!(letters(&shown).len() <= letters(&line).len());
        } else if !line.contains("](") {
            prop_assert_eq!(letters(&shown), letters(&line));
        }
    }
}

use proptest::prelude::*;

use super::*;

#[test]
fn mentions_links_images_and_credentials_are_neutralised() {
    let token = format!("xoxb-{}", "1234567890-abc");
    for (markdown, expected) in [
        (
            "hi <!channel> and <@U012AB> in <#C012AB>",
            "hi <\u{200b}!channel> and <\u{200b}@U012AB> in <\u{200b}#C012AB>",
        ),
        ("ask @here or @everyone, not @hereby", "ask @\u{200b}here or @\u{200b}everyone, not @hereby"),
        ("<!-- a comment --> <!DOCTYPE html>", "<!-- a comment --> <!DOCTYPE html>"),
        ("[docs](https://example.com/a_(b))", "[docs](https://example.com/a_(b))"),
        ("[https://bank.com](https://evil.test/x)", "https://bank.com (https://evil.test/x)"),
        ("[www.bank.com/a](https://bank.com/b)", "[www.bank.com/a](https://bank.com/b)"),
        ("[run](javascript:alert%281%29)", "run (`javascript:alert%281%29`)"),
        ("[above](#top)", "above"),
        ("![plot](https://evil.test/?q=secret)", "[plot](https://evil.test/?q=secret)"),
        ("<https://evil.test|https://bank.com>", "<\u{200b}https://evil.test|https://bank.com>"),
        ("```\n![a](https://b.test)\n```", "```\n![a](https://b.test)\n```"),
        (token.as_str(), "[redacted]"),
        ("the key is hunter2hunter2!", "the key is [redacted]!"),
    ] {
        assert_eq!(safe(markdown, &["hunter2hunter2".to_owned()]), expected, "{markdown}");
    }
}

#[test]
fn a_text_of_slack_is_read() {
    let name = |user: &str| (user == "U1").then(|| "Ann".to_owned());
    for (slack, expected) in [
        ("<@U1> a &lt;b&gt; &amp;lt;", "@Ann a <b> &lt;"),
        ("<@U2|bob> <@U3> <#C1|general> <!here> <!date^1^{date}|now>", "@bob @U3 #general @here @date"),
        (
            "<https://a.test|docs> <https://a.test> <mailto:a@b.c|a@b.c>",
            "docs (https://a.test) https://a.test mailto:a@b.c",
        ),
        ("1 < 2", "1 < 2"),
    ] {
        assert_eq!(from_slack(slack, name), expected);
    }
}

#[test]
fn a_code_block_continues_in_the_next_message() {
    let code = (0..900).map(|line| format!("let value_{line} = {line};\n")).collect::<Vec<_>>().concat();
    let text = format!("Here:\n\n```rust\n{code}```\n\nDone.\n");
    let pages = pages(&text);
    assert_eq!(pages.len(), 3);
    for page in &pages {
        assert_eq!(page.matches("```").count() % 2, 0, "{page}");
    }
    assert!(pages[1].starts_with("```rust\nlet value_"));
    let lines: String = pages
        .iter()
        .flat_map(|page| page.split_inclusive('\n'))
        .filter(|line| line.starts_with("let"))
        .collect();
    assert_eq!(lines, code);
}

#[test]
fn a_table_continues_with_its_header() {
    let rows = (0..1500).map(|row| format!("| {row} | x |\n")).collect::<Vec<_>>().concat();
    let pages = pages(&format!("| a | b |\n|---|---|\n{rows}"));
    assert!(pages.len() > 1);
    assert!(pages.iter().all(|page| page.starts_with("| a | b |\n|---|---|\n| ")));
}

#[test]
fn a_link_is_not_cut() {
    let text = format!("{}[a long text](https://example.com/path)", "word ".repeat(2_101));
    assert!(pages(&text).iter().any(|page| page.contains("[a long text](https://example.com/path)")));
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{1,30}",
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("```rust\n".to_owned()),
        Just("```\n".to_owned()),
        Just("| a | b |\n".to_owned()),
        Just("|---|---|\n".to_owned()),
        Just("[docs](https://a.test/b)".to_owned()),
        Just("[https://a.test](https://b.test)".to_owned()),
        Just("<!channel>".to_owned()),
        Just("@here ".to_owned()),
        Just("![".to_owned()),
        Just("é😀".to_owned()),
        "[a-z]{200,3000}",
        "([a-z]{1,9} ){100,400}",
    ];
    proptest::collection::vec(piece, 1..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_shown_of_a_growing_text_stays(text in markdown(), cut in 0..100usize) {
        let at = text.floor_char_boundary(text.len() * cut / 100);
        let part = &text[..at];
        let early = safe(&part[..stable_len(part)], &[]);
        let whole = safe(&text, &[]);
        prop_assert!(whole.starts_with(&early), "{early:?}\n{whole:?}");
        let (early, whole) = (pages(&early), pages(&whole));
        for (at, page) in early.iter().enumerate() {
            prop_assert!(whole[at].starts_with(page) , "{page:?}\n{:?}", whole[at]);
        }
    }

    #[test]
    fn no_message_is_too_long_and_no_word_is_lost(text in markdown()) {
        let pages = pages(&text);
        for page in &pages {
            prop_assert!(page.chars().count() <= 12_000);
        }
        let visible = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let shown: String = pages.concat().lines().filter(|line| !line.starts_with(['|', '`'])).map(visible).collect();
        let given: String = text.lines().filter(|line| !line.starts_with(['|', '`'])).map(visible).collect();
        prop_assert_eq!(shown.len(), given.len());
    }
}

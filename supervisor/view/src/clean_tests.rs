use proptest::prelude::*;

use super::*;

#[test]
fn sequences_go_whole_and_text_stays() {
    for (text, expected) in [
        ("plain, ünï → ✅\n\tindented", "plain, ünï → ✅\n\tindented"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}]0;title\u{7}after", "after"),
        ("\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{9b}2Jgone", "gone"),
        ("\u{1b}(Bcharset", "charset"),
        ("\u{1b}7saved", "saved"),
        ("\u{1b}Pq...\u{1b}\\sixel", "sixel"),
        ("\u{1b}]52;c;aGk=\nnext line is seen", "\nnext line is seen"),
        ("a\rb\u{8}c\u{7f}d\u{0}e", "abcde"),
        ("line\r\nline", "line\nline"),
        ("user\u{202e}txt.exe", "usertxt.exe"),
        ("family 👩‍👩‍👧", "family 👩‍👩‍👧"),
        ("\u{1b}", ""),
        ("\u{1b}é", "é"),
    ] {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn a_notification_is_one_plain_line() {
    assert_eq!(one_line("🔧 Calling tool:  **x**\n"), "🔧 Calling tool: x");
}

/// Text with far more control characters than chance would give.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[\u{1b}\u{9b}\u{9d}\u{90}\\[\\]PX^_0-9;mJH\\\\ a-c\u{7}\n]{1,6}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_that_commands_a_terminal_is_left(text in hostile()) {
        prop_assert!(clean(&text).chars().all(is_harmless));
    }

    #[test]
    fn where_a_text_is_cut_makes_no_difference(text in hostile(), size in 1_usize..5) {
        let chars: Vec<char> = text.chars().collect();
        let mut cleaner = Cleaner::default();
        let pieces: String = chars.chunks(size).map(|piece| cleaner.push(&piece.iter().collect::<String>())).collect();
        prop_assert_eq!(pieces, clean(&text));
    }

    #[test]
    fn text_without_controls_is_untouched(text in "[^\\p{C}]{0,80}") {
        prop_assert_eq!(clean(&text), text.replace(['\u{2028}', '\u{2029}'], ""));
    }
}

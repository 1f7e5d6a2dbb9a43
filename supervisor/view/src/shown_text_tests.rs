use proptest::prelude::*;

use super::*;

fn more(text: &str) -> Addition {
    Addition::Append(text.to_owned())
}

#[test]
fn a_ledger_shows_only_what_is_new() {
    let mut streamed = StreamedText::default();
    assert_eq!(streamed.add("Hel", false), more("Hel"));
    assert_eq!(streamed.add("lo", true), more("lo"));
    // A snapshot that is as new, newer, older.
    assert_eq!(streamed.add("Hello", false), more(""));
    assert_eq!(streamed.add("Hello wor", false), more(" wor"));
    assert_eq!(streamed.add("Hel", false), more(""));
    assert_eq!(streamed.add("lo w", true), more(""));
    assert_eq!(streamed.add("orld", true), more("ld"));
    assert_eq!(streamed.add("!", true), more("!"));
    // Something else.
    assert_eq!(streamed.add("Good bye", false), Addition::Replace("Good bye".to_owned()));
}

#[test]
fn a_result_adds_what_was_not_shown() {
    type Pieces<'a> = &'a [(&'a str, bool, bool)];
    let cases: [(Pieces<'_>, &str, Missing<'_>); 10] = [
        (&[], "The answer.", Missing::All),
        (&[], "  \n", Missing::Nothing),
        (&[("The ", true, true), ("answer.", false, true)], "The answer.\n", Missing::Nothing),
        (&[("The  answer.\n\n", true, true)], "The\nanswer.", Missing::Nothing),
        (&[("I look.", true, false), ("\nThe answer.", false, true)], "The answer.", Missing::Nothing),
        (&[("I look.\nThe answer.", true, true)], "The answer.", Missing::Nothing),
        (&[("The ans", true, true)], "The answer.", Missing::Tail("wer.")),
        (&[("I look.", true, false), ("The ans", false, true)], "The answer.", Missing::Tail("wer.")),
        (&[("Something else.", true, true)], "The answer.", Missing::All),
        (&[("a book", true, true)], "ok", Missing::All),
    ];
    for (pieces, result, expected) in cases {
        let mut shown = ShownText::default();
        for (text, fresh, answer) in pieces {
            shown.add(text, *fresh, *answer);
        }
        assert_eq!(shown.missing(result), expected, "{pieces:?} then {result:?}");
    }
}

proptest! {
    /// However a text is streamed, cut off and told again, it is shown once.
    #[test]
    fn what_a_ledger_shows_is_the_text(text in "[a-c ]{0,40}", cut in 0_usize..40, again in 0_usize..40) {
        let upto = |n: usize| &text[..n.min(text.len())];
        let mut streamed = StreamedText::default();
        let mut shown = String::new();
        for (piece, append) in [
            (upto(cut), false),
            // The connection breaks; the snapshot may be older.
            (upto(again.min(cut)), false),
            (&text[upto(again.min(cut)).len()..], true),
        ] {
            match streamed.add(piece, append) {
                Addition::Append(more) => shown.push_str(&more),
                Addition::Replace(_) => prop_assert!(false, "nothing was replaced"),
            }
        }
        prop_assert_eq!(shown, text);
    }
}

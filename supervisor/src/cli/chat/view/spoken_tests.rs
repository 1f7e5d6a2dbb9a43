use proptest::prelude::*;

use super::*;

fn more(text: &str) -> Addition {
    Addition::More(text.to_owned())
}

#[test]
fn a_ledger_shows_only_what_is_new() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.take("Hel", false), more("Hel"));
    assert_eq!(ledger.take("lo", true), more("lo"));
    // A snapshot that is as new, newer, older.
    assert_eq!(ledger.take("Hello", false), more(""));
    assert_eq!(ledger.take("Hello wor", false), more(" wor"));
    assert_eq!(ledger.take("Hel", false), more(""));
    assert_eq!(ledger.take("lo w", true), more(""));
    assert_eq!(ledger.take("orld", true), more("ld"));
    assert_eq!(ledger.take("!", true), more("!"));
    // Something else.
    assert_eq!(ledger.take("Good bye", false), Addition::Instead("Good bye".to_owned()));
}

#[test]
fn a_result_adds_what_was_not_said() {
    type Said<'a> = &'a [(&'a str, bool, bool)];
    let cases: [(Said<'_>, &str, Unsaid<'_>); 10] = [
        (&[], "The answer.", Unsaid::All),
        (&[], "  \n", Unsaid::Nothing),
        (&[("The ", true, true), ("answer.", false, true)], "The answer.\n", Unsaid::Nothing),
        (&[("The  answer.\n\n", true, true)], "The\nanswer.", Unsaid::Nothing),
        (&[("I look.", true, false), ("\nThe answer.", false, true)], "The answer.", Unsaid::Nothing),
        (&[("I look.\nThe answer.", true, true)], "The answer.", Unsaid::Nothing),
        (&[("The ans", true, true)], "The answer.", Unsaid::Tail("wer.")),
        (&[("I look.", true, false), ("The ans", false, true)], "The answer.", Unsaid::Tail("wer.")),
        (&[("Something else.", true, true)], "The answer.", Unsaid::All),
        (&[("a book", true, true)], "ok", Unsaid::All),
    ];
    for (said, result, expected) in cases {
        let mut spoken = Spoken::default();
        for (text, fresh, answer) in said {
            spoken.say(text, *fresh, *answer);
        }
        assert_eq!(spoken.unsaid(result), expected, "{said:?} then {result:?}");
    }
}

proptest! {
    /// However a text is streamed, cut off and told again, it is shown once.
    #[test]
    fn what_a_ledger_shows_is_the_text(text in "[a-c ]{0,40}", cut in 0_usize..40, again in 0_usize..40) {
        let upto = |n: usize| &text[..n.min(text.len())];
        let mut ledger = Ledger::default();
        let mut shown = String::new();
        for (piece, append) in [
            (upto(cut), false),
            // The connection breaks; the snapshot may be older.
            (upto(again.min(cut)), false),
            (&text[upto(again.min(cut)).len()..], true),
        ] {
            match ledger.take(piece, append) {
                Addition::More(more) => shown.push_str(&more),
                Addition::Instead(_) => prop_assert!(false, "nothing was replaced"),
            }
        }
        prop_assert_eq!(shown, text);
    }
}

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[test]
fn known_variables_are_filled_in_and_others_left() {
    let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    let cases = [
        ("", ""),
        ("plain", "plain"),
        ("${A}", "1"),
        ("x${A}y${B}z", "x1y${B}z"),
        ("${A:-d}${B:-d}", "1${B:-d}"),
        ("$${A}", "$${A}"),
        ("${A", "${A"),
        ("${}", "${}"),
        ("$A", "$A"),
        ("${B:-https://${A}/x}", "${B:-https://1/x}"),
        ("${A:-${B:-d}}", "1"),
        ("${C:-${B:-d}}}", "${C:-${B:-d}}}"),
    ];
    for (template, expected) in cases {
        assert_eq!(fill(template, &known), expected, "{template}");
    }
}

#[test]
fn what_is_required() {
    let cases: [(&str, &[&str]); 6] = [
        ("", &[]),
        ("${A:-${B}}", &[]),
        ("${A} ${B:-}", &["A"]),
        ("$${A}${B}", &["B"]),
        ("${A", &[]),
        ("${A}${A}", &["A", "A"]),
    ];
    for (template, expected) in cases {
        assert_eq!(required(template), expected, "{template}");
    }
}

proptest! {
    #[test]
    fn nothing_known_changes_nothing(template in "[$\\{}A:\\- x]{0,24}") {
        prop_assert_eq!(fill(&template, &BTreeMap::new()), template);
    }
}

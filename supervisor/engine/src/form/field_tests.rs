//! The values that each type of field takes.

use serde_json::{Value, json};

use super::{FieldType, FormField};

fn field(kind: &str) -> FormField {
    let choices = ["small", "Large", "1"].map(str::to_owned).to_vec();
    let field_type = FieldType::named(kind).unwrap();
    let has_choices = matches!(field_type, FieldType::Select | FieldType::MultiSelect);
    let field_values = has_choices.then_some(choices);
    FormField { field_name: "f".to_owned(), field_type, field_values, ..FormField::default() }
}

fn bounded(kind: &str, min: i64, max: i64) -> FormField {
    FormField { min: Some(min.into()), max: Some(max.into()), ..field(kind) }
}

/// Checks that the field reads each good value as the other one, which it reads as itself, and rejects the bad ones.
fn check(field: &FormField, good: &[(Value, Value)], bad: &[Value]) {
    for (value, expected) in good {
        let read = field.read(value).unwrap();
        assert_eq!(read.as_ref(), Some(expected), "{value} in {field:?}");
        assert_eq!(field.read(expected).unwrap(), read, "{value} in {field:?}");
    }
    for value in bad {
        let fault = field.read(value).expect_err(&format!("{value} in {field:?}"));
        assert!(fault.starts_with("give "), "{fault}");
    }
    for blank in [Value::Null, json!(" \n"), json!([])] {
        assert_eq!(field.read(&blank), Ok(None), "{field:?}");
    }
}

/// Each text as itself.
fn same<const N: usize>(texts: [&str; N]) -> [(Value, Value); N] {
    texts.map(|text| (json!(format!(" {text} ")), json!(text)))
}

#[test]
fn fields_of_text_take_text_of_their_kind() {
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect::<Vec<_>>();
    check(
        &field("text"),
        &[(json!(" a b "), json!("a b")), (json!(3), json!("3"))],
        &[json!("a\nb"), json!({}), json!(["a"])],
    );
    check(&bounded("text", 2, 3), &same(["äöü", "ab"]), &texts(&["a", "abcd"]));
    check(&field("textarea"), &[(json!("a\nb\n"), json!("a\nb"))], &texts(&[&"x".repeat(20_001)]));
    let urls = ["a.example", "javascript:alert(1)", "https://", "https://a b", "ftp://a"];
    check(&field("url"), &same(["https://a.example/x?y=1", "http://[::1]:80"]), &texts(&urls));
    let addresses = ["ada", "@b.c", "a@", "a b@c.d", "a@b..c", "a@-b.c", "a@b@c.d"];
    check(&field("email"), &same(["ada+x@mail.example", "root@localhost"]), &texts(&addresses));
    let dates = ["2027-02-29", "29.2.2028", "2028-02-29T10:00", "20280229"];
    check(&field("date"), &same(["2028-02-29"]), &texts(&dates));
}

#[test]
fn the_other_fields_take_their_values_in_one_form() {
    check(
        &field("select"),
        &[(json!("SMALL "), json!("small")), (json!(1), json!("1"))],
        &[json!("medium"), json!(["small"])],
    );
    let several = [
        (json!(["large", "small", "small"]), json!(["small", "Large"])),
        (json!("1, small,"), json!(["small", "1"])),
        (json!(1), json!(["1"])),
    ];
    let others = [json!(["small", "medium"]), json!("small, medium"), json!(","), json!({"small": true})];
    check(&field("multiselect"), &several, &others);
    let two = [(json!("small,1"), json!(["small", "1"]))];
    check(&bounded("multiselect", 2, 2), &two, &[json!("small"), json!("small,large,1")]);
    let truths = [(json!(true), json!(true)), (json!("Yes"), json!(true)), (json!(" false "), json!(false))];
    check(&field("boolean"), &truths, &[json!("maybe"), json!(1), json!([true])]);
    let numbers = [
        (json!(3), json!(3)),
        (json!(" -7 "), json!(-7)),
        (json!("1.5"), json!(1.5)),
        (json!("1e3"), json!(1000.0)),
    ];
    let others = [json!("many"), json!("NaN"), json!("inf"), json!("1,5"), json!(true), json!("1e999")];
    check(&field("number"), &numbers, &others);
    check(&bounded("number", 1, 5), &[(json!("5"), json!(5))], &[json!("0"), json!(5.1)]);
}

#[test]
fn a_field_says_what_it_expects() {
    for (field, expected) in [
        (field("text"), "one line of text"),
        (bounded("textarea", 1, 9), "text from 1 to 9 characters"),
        (field("select"), "one of `small`, `Large`, `1`"),
        (
            bounded("multiselect", 1, 2),
            "any of `small`, `Large`, `1`, separated by commas from 1 to 2 choices",
        ),
        (FormField { max: Some(5.into()), ..field("number") }, "a number of at most 5"),
        (field("date"), "a date as YYYY-MM-DD"),
    ] {
        assert_eq!(field.expects(), expected);
    }
    let many = FormField { field_values: Some((0..30).map(|n| n.to_string()).collect()), ..field("select") };
    assert!(many.expects().ends_with("`19` and 10 more"), "{}", many.expects());
}

#[test]
fn types_have_the_names_of_the_wire() {
    for name in FieldType::NAMES {
        assert_eq!(serde_json::to_value(FieldType::named(&name.to_uppercase())).unwrap(), name);
    }
    assert_eq!(FieldType::named("slider"), None);
}

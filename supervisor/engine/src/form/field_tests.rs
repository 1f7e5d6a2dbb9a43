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

#[test]
fn each_type_takes_its_values_in_one_form_and_no_others() {
    let text = |text: &str| json!(text);
    for (field, good, bad) in [
        (
            field("text"),
            vec![(text(" a b "), text("a b")), (json!(3), text("3"))],
            vec![text("a\nb"), json!({}), json!(["a"])],
        ),
        (bounded("text", 2, 3), vec![(text("äöü"), text("äöü"))], vec![text("a"), text("abcd")]),
        (field("textarea"), vec![(text("a\nb\n"), text("a\nb"))], vec![text(&"x".repeat(20_001))]),
        (
            field("select"),
            vec![(text("SMALL "), text("small")), (json!(1), text("1"))],
            vec![text("medium"), json!(["small"])],
        ),
        (
            field("multiselect"),
            vec![
                (json!(["large", "small", "small"]), json!(["small", "Large"])),
                (text("1, small,"), json!(["small", "1"])),
                (json!(1), json!(["1"])),
            ],
            vec![json!(["small", "medium"]), text("small, medium"), text(","), json!({"small": true})],
        ),
        (
            bounded("multiselect", 2, 2),
            vec![(text("small,1"), json!(["small", "1"]))],
            vec![text("small"), text("small,large,1")],
        ),
        (
            field("boolean"),
            vec![
                (json!(true), json!(true)),
                (text("Yes"), json!(true)),
                (text(" false "), json!(false)),
                (text("n"), json!(false)),
            ],
            vec![text("maybe"), json!(1), json!([true])],
        ),
        (
            field("number"),
            vec![
                (json!(3), json!(3)),
                (text(" -7 "), json!(-7)),
                (text("1.5"), json!(1.5)),
                (text("1e3"), json!(1000.0)),
            ],
            vec![text("many"), text("NaN"), text("inf"), text("1,5"), json!(true), text("1e999")],
        ),
        (
            bounded("number", 1, 5),
            vec![(text("5"), json!(5)), (json!(1.0), json!(1.0))],
            vec![text("0"), json!(5.1)],
        ),
        (
            field("url"),
            vec![(text(" https://a.example/x?y=1 "), text("https://a.example/x?y=1"))],
            vec![
                text("a.example"),
                text("javascript:alert(1)"),
                text("https://"),
                text("https://a b"),
                json!(1),
            ],
        ),
        (
            field("email"),
            vec![
                (text("ada+x@mail.example"), text("ada+x@mail.example")),
                (text("root@localhost"), text("root@localhost")),
            ],
            vec![
                text("ada"),
                text("@b.c"),
                text("a@"),
                text("a b@c.d"),
                text("a@b..c"),
                text("a@-b.c"),
                text("a@b@c.d"),
            ],
        ),
        (
            field("date"),
            vec![(text("2028-02-29"), text("2028-02-29"))],
            vec![text("2027-02-29"), text("29.2.2028"), text("2028-02-29T10:00"), json!(20_280_229)],
        ),
    ] {
        for (value, expected) in good {
            let read = field.read(&value).unwrap();
            assert_eq!(read.as_ref(), Some(&expected), "{value} in {field:?}");
            assert_eq!(field.read(&expected).unwrap(), read, "what was read is read again: {field:?}");
        }
        for value in bad {
            let fault = field.read(&value).expect_err(&format!("{value} in {field:?}"));
            assert!(fault.starts_with("give "), "{fault}");
        }
        for blank in [Value::Null, text(" \n"), json!([])] {
            assert_eq!(field.read(&blank), Ok(None), "{field:?}");
        }
    }
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

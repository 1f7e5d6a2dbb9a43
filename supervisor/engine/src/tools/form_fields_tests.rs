//! The definitions of fields that a model gives.

use serde_json::{Value, json};

use super::fields;
use crate::form::FieldType;

#[test]
fn a_field_has_its_type_and_its_default_in_that_type() {
    use FieldType::{Boolean, MultiSelect, Number, Select, Text};
    let listed = json!([
        {"field_name": " repo "},
        {"field_name": "size", "field_values": ["s", 2], "default_value": "S"},
        {"field_name": "notify", "field_type": "Boolean", "field_values": ["Yes", "No"], "default_value": "Yes"},
        {"field_name": "count", "field_type": "number", "min": 1, "max": 5, "default_value": "3", "required": "false"},
        {"field_name": "areas", "field_type": "multiselect", "field_values": ["a", "b"], "value": "b"},
    ]);
    let fields = fields("fields", Some(&listed), true).unwrap();
    let types: Vec<FieldType> = fields.iter().map(|field| field.field_type).collect();
    assert_eq!(types, [Text, Select, Boolean, Number, MultiSelect]);
    let defaults: Vec<Option<Value>> = fields.iter().map(|field| field.default_value.clone()).collect();
    assert_eq!(defaults, [None, Some(json!("s")), Some(json!(true)), Some(json!(3)), None]);
    assert_eq!(
        (fields[0].field_name.as_str(), fields[0].required, fields[3].required),
        ("repo", true, false)
    );
    assert_eq!((&fields[4].value, &fields[2].field_values), (&Some(json!(["b"])), &None));
}

#[test]
fn a_bad_definition_is_reported_with_its_place() {
    for (field, fault) in [
        (json!("repo"), "fields[1]: give field_name"),
        (json!({"field_name": "a:b"}), "without line breaks, colons"),
        (json!({"field_name": "x".repeat(101)}), "at most 100 characters"),
        (json!({"field_name": "FIRST"}), "fields[1]: two fields have the field_name \"FIRST\""),
        (
            json!({"field_name": "a", "field_type": "slider"}),
            "field_type \"slider\" is unknown; give one of text, textarea,",
        ),
        (json!({"field_name": "a", "field_type": "select"}), "\"a\": a select needs field_values"),
        (
            json!({"field_name": "a", "field_type": "text", "field_values": ["x"]}),
            "only the types select and multiselect",
        ),
        (json!({"field_name": "a", "field_values": ["x", "X"]}), "\"X\" is there twice"),
        (json!({"field_name": "a", "field_values": ["x", " "]}), "give text of one line"),
        (
            json!({"field_name": "a", "field_values": (0..101).collect::<Vec<_>>()}),
            "at most 100 of at most 200",
        ),
        (
            json!({"field_name": "a", "field_values": ["x"], "default_value": "y"}),
            "default_value: give one of `x`, or leave it out",
        ),
        (
            json!({"field_name": "a", "field_type": "date", "value": "now"}),
            "value: give a date as YYYY-MM-DD",
        ),
        (json!({"field_name": "a", "field_type": "url", "min": 1}), "only the types text, textarea, number"),
        (json!({"field_name": "a", "field_type": "number", "min": "1"}), "min: give a number"),
        (json!({"field_name": "a", "field_type": "number", "min": 3, "max": 1}), "min is greater than max"),
        (json!({"field_name": "a", "placeholder": "x".repeat(1001)}), "at most 1000 characters"),
    ] {
        let listed = json!([{"field_name": "first"}, field]);
        let reported = fields("fields", Some(&listed), true).expect_err(&listed.to_string());
        assert!(reported.starts_with("ERROR: fields[1]: ") && reported.contains(fault), "{reported}");
    }
    let many = Value::Array(vec![json!({"field_name": "a"}); 51]);
    assert!(fields("fields", Some(&many), true).unwrap_err().contains("at most 50 fields"));
    let two = json!([{}, {"field_name": "a", "field_type": "x"}]);
    let reported = fields("metadata.input_fields", Some(&two), true).unwrap_err();
    assert!(
        reported.contains("metadata.input_fields[0]: ") && reported.contains("metadata.input_fields[1]: "),
        "{reported}"
    );
    assert_eq!(fields("fields", None, true), Ok(Vec::new()));
}

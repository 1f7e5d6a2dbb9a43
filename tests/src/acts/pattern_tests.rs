use serde_json::{Value, json};

use super::*;

/// Pattern, value (nothing: missing), whether it matches.
fn table(cases: &[(Value, Option<Value>, bool)]) {
    for (pattern, value, expected) in cases {
        let checked = check(pattern, value.as_ref());
        assert_eq!(checked.is_ok(), *expected, "{pattern} against {value:?}: {checked:?}");
    }
}

#[test]
fn scalars_are_equal_in_type_too() {
    table(&[
        (json!("a"), Some(json!("a")), true),
        (json!("1"), Some(json!(1)), false),
        (json!(1), Some(json!(1.0)), true),
        (json!(1), Some(json!("1")), false),
        (json!(true), Some(json!(true)), true),
        (json!(null), Some(json!(null)), true),
        (json!(null), None, false),
        (json!("a"), None, false),
        (json!(["a", 1]), Some(json!(["a", 1])), true),
        (json!(["a"]), Some(json!(["a", 1])), false),
    ]);
}

#[test]
fn members_are_looked_at_one_by_one() {
    table(&[
        (json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1, "c": 2}, "d": 3})), true),
        (json!({"a": {"b": 1}}), Some(json!({"a": {"b": 2}})), false),
        (json!({"a": {"b": 1}}), Some(json!({"a": []})), false),
        (json!({"a": {"b": 1}}), None, false),
        (json!({}), Some(json!(5)), true),
        // An operator beside a member.
        (json!({"type": "object", "a": 1}), Some(json!({"a": 1})), true),
        (json!({"type": "array", "a": 1}), Some(json!({"a": 1})), false),
    ]);
}

#[test]
fn a_member_may_be_called_like_an_operator() {
    table(&[
        (json!({"type": {"type": "string"}}), Some(json!({"type": "about:blank"})), true),
        (json!({"type": {"type": "string"}}), Some(json!({"type": 1})), false),
        (json!({"type": {"type": "string"}}), Some(json!("text")), false),
        (json!({"count": {"type": "number"}}), Some(json!({"count": 1})), true),
        (json!({"contains": {"exists": true}}), Some(json!({"contains": null})), true),
    ]);
}

#[test]
fn presence_is_not_the_same_as_null() {
    table(&[
        (json!({"exists": true}), Some(json!(null)), true),
        (json!({"exists": true}), None, false),
        (json!({"absent": true}), None, true),
        (json!({"absent": true}), Some(json!(null)), false),
        (json!({"a": {"absent": true}}), Some(json!({})), true),
        (json!({"a": {"absent": true}}), Some(json!({"a": 1})), false),
    ]);
}

#[test]
fn types_have_their_json_names() {
    let values = [
        ("string", json!("")),
        ("number", json!(1.5)),
        ("boolean", json!(false)),
        ("array", json!([])),
        ("object", json!({})),
        ("null", json!(null)),
    ];
    for (name, _) in &values {
        for (of, value) in &values {
            table(&[(json!({"type": name}), Some(value.clone()), name == of)]);
        }
        table(&[(json!({"type": name}), None, false)]);
    }
}

#[test]
fn lists_are_counted_and_looked_through() {
    let list = || Some(json!([{"id": 1}, {"id": 2}]));
    table(&[
        (json!({"count": 2}), list(), true),
        (json!({"count": 1}), list(), false),
        (json!({"count_gte": 2}), list(), true),
        (json!({"count_gte": 3}), list(), false),
        (json!({"count_lte": 2}), list(), true),
        (json!({"count_lte": 1}), list(), false),
        (json!({"count_gte": 0}), Some(json!("text")), false),
        (json!({"count_gte": 0}), None, false),
        (json!({"items": {"id": {"type": "number"}}}), list(), true),
        (json!({"items": {"id": 1}}), list(), false),
        (json!({"items": [{"id": 1}]}), list(), true),
        (json!({"items": [{"id": 1}, {"id": 2}, {"id": 3}]}), list(), false),
        (json!({"items": {"id": 1}}), Some(json!([])), true),
        (json!({"items": {"id": 1}}), None, false),
        (json!({"all": {"id": {"gte": 1}}}), list(), true),
        (json!({"none": {"id": 3}}), list(), true),
        (json!({"none": {"id": 2}}), list(), false),
    ]);
}

#[test]
fn alternatives_match_the_same_value() {
    let maybe = json!({"a": {"any_of": [{"absent": true}, {"type": "null"}]}});
    table(&[
        (maybe.clone(), Some(json!({})), true),
        (maybe.clone(), Some(json!({"a": null})), true),
        (maybe, Some(json!({"a": []})), false),
        (json!({"one_of": ["a", 2]}), Some(json!(2)), true),
        (json!({"one_of": ["a", "2"]}), Some(json!(2)), false),
        (json!({"one_of": [{"absent": true}]}), None, false),
        (json!({"one_of": [{"a": 1}, {"b": 1}]}), Some(json!({"b": 1})), true),
        (
            json!({"any_of": [{"error": {"exists": true}}, {"title": {"type": "string"}}]}),
            Some(json!({"title": "x"})),
            true,
        ),
        (json!({"all_of": [{"type": "string"}, {"matches": ".{3,}"}]}), Some(json!("abc")), true),
        (json!({"all_of": [{"type": "string"}, {"matches": ".{3,}"}]}), Some(json!("ab")), false),
        (json!({"not": {"type": "string"}}), Some(json!(1)), true),
        (json!({"not": {"type": "string"}}), Some(json!("a")), false),
        (json!({"not": {"type": "string"}}), None, false),
    ]);
}

#[test]
fn texts_and_numbers_are_compared() {
    table(&[
        (json!({"contains": "bc"}), Some(json!("abcd")), true),
        (json!({"contains": "bc"}), Some(json!(["bc"])), false),
        (json!({"starts_with": "1."}), Some(json!("1.0")), true),
        (json!({"starts_with": "1."}), Some(json!("0.3")), false),
        (json!({"ends_with": "Z"}), Some(json!("10:00Z")), true),
        (json!({"matches": "^\\d{4}-"}), Some(json!("2026-01-01")), true),
        (json!({"matches": "^\\d{4}-"}), Some(json!("on 2026-01-01")), false),
        (json!({"matches": "("}), Some(json!("(")), false),
        (json!({"gt": 1, "lt": 3}), Some(json!(2)), true),
        (json!({"gte": 2, "lte": 2}), Some(json!(2)), true),
        (json!({"gt": 2}), Some(json!(2)), false),
        (json!({"lt": 2}), Some(json!("1")), false),
    ]);
}

#[test]
fn a_mismatch_says_where() {
    let pattern = json!({"tasks": {"items": [{"id": "t", "status": {"state": "DONE"}}]}});
    let value = json!({"tasks": [{"id": "t", "status": {"state": "OPEN"}}]});
    let mismatch = check(&pattern, Some(&value)).unwrap_err();
    assert_eq!(mismatch.path, "tasks[0].status.state");
    assert_eq!((mismatch.expected.as_str(), mismatch.actual.as_str()), ("\"DONE\"", "\"OPEN\""));
}

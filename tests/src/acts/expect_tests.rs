use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::*;

fn plain(status: u16, root: Value) -> Answer {
    Answer::Plain { status, headers: HeaderMap::new(), root }
}

fn failed(code: i64) -> Answer {
    Answer::Failed(Failure::of_jsonrpc(200, &json!({"code": code, "message": "task not found", "data": []})))
}

/// The step's expectations as they are written, the answer, whether it is as expected.
fn table(cases: &[(Value, Answer, bool)]) {
    for (written, answer, expected) in cases {
        let step: Step = serde_json::from_value(written.clone()).unwrap();
        let checked = check(&step, answer, &Scope::default());
        assert_eq!(checked.is_ok(), *expected, "{written} against {answer:?}: {checked:?}");
    }
}

#[test]
fn a_plain_answer_has_status_and_body() {
    let ok = || plain(200, json!({"task": {"id": "t"}}));
    table(&[
        (json!({"expect": {"status": 200}}), ok(), true),
        (json!({"expect": {"status": {"one_of": [401, 403]}}}), ok(), false),
        (json!({"expect": {"status": 200, "body": {"task": {"id": "t"}}}}), ok(), true),
        (json!({"expect": {"status": 200, "body": {"task": {"id": "x"}}}}), ok(), false),
        // Without `body`.
        (json!({"expect": {"task": {"id": {"type": "string"}}}}), ok(), true),
        (json!({"expect": {"task": {"id": {"type": "number"}}}}), ok(), false),
        (json!({}), ok(), true),
        (json!({"expect": {"status": 200}}), failed(-32001), false),
        (json!({}), failed(-32001), false),
    ]);
}

#[test]
fn an_operation_that_must_fail() {
    table(&[
        (json!({"expect": {"error": {"exists": true}}}), failed(-32001), true),
        (json!({"expect": {"status": "error", "error": {"exists": true}}}), failed(-32001), true),
        (json!({"expect": {"error": {"exists": true}}}), plain(200, json!({})), false),
        (json!({"expect_error": {"code": "TaskNotFoundError"}}), failed(-32001), true),
        (json!({"expect_error": {"error_type": "TaskNotFoundError"}}), failed(-32002), false),
        (
            json!({"expect_error": {"code": {"one_of": ["TaskNotFoundError", "TaskNotCancelableError"]}}}),
            failed(-32002),
            true,
        ),
        (json!({"expect_error": {"message": {"contains": "not found"}}}), failed(-32001), true),
        (json!({"expect_error": {"data": {"type": "object"}}}), failed(-32001), false),
        (json!({"expect_error": {"message": {"type": "string"}}}), plain(200, json!({})), false),
    ]);
}

#[test]
fn push_has_an_error_of_its_own() {
    let wanted = json!({"operation": "set_push_notification_config", "expect_error": {"code": "UnsupportedOperationError"}});
    let other = json!({"operation": "send_message", "expect_error": {"code": "UnsupportedOperationError"}});
    table(&[
        (wanted.clone(), failed(-32003), true),
        (wanted.clone(), failed(-32004), true),
        (wanted, failed(-32001), false),
        (other, failed(-32003), false),
    ]);
}

#[test]
fn a_raw_answer_is_looked_at_as_a_whole() {
    let answer = || plain(200, json!({"jsonrpc": "2.0", "error": {"code": -32601}}));
    table(&[
        (json!({"expect": {"status": 200, "body": {"error": {"code": -32601}}}}), answer(), true),
        (json!({"expect": {"status": 200, "body": {"result": {"exists": true}}}}), answer(), false),
    ]);
}

#[test]
fn assertions_need_one_matching_element() {
    let mut scope = Scope::default();
    let parts = json!([{"text": "a"}, {"raw": "eA==", "filename": "f", "mediaType": "text/plain"}]);
    scope.capture("get", "response", json!({"artifacts": [{"parts": parts}]}));
    let entry = |wanted: Value| {
        [json!({"source": "{{get.response}}", "any": {"path": "artifacts[*].parts[*]", "match": wanted}})]
    };
    assert_eq!(check_assertions(&entry(json!({"text": {"contains": "a"}})), &scope), Ok(()));
    let file = json!({"file": {"name": {"type": "string"}, "mediaType": {"type": "string"}}});
    assert_eq!(check_assertions(&entry(file), &scope), Ok(()));
    let url = json!({"fileUrl": {"url": {"type": "string"}, "name": {"type": "string"}}});
    assert!(check_assertions(&entry(url), &scope).is_err());
    assert!(check_assertions(&entry(json!({"data": {"exists": true}})), &scope).is_err());
}

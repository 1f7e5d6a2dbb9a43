//! What clients really send (upstream contract 3.7, 7.2, 8).

use caipe_a2a::model::{Message as A2aMessage, Part, Role as A2aRole};
use caipe_engine::Decision;
use serde_json::{Map, Value, json};

use super::{Reply, Request};

fn message(parts: Vec<Part>) -> A2aMessage {
    A2aMessage::new(A2aRole::User, "m1", parts)
}

fn read(parts: Vec<Part>) -> Request {
    Request::read(&message(parts)).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn decided(value: &Value) -> Vec<Decision> {
    let data = Part::data(json!({"resume": {"decisions": [value]}}));
    match read(vec![Part::text("Form submitted"), data]).reply(true) {
        Reply::Decisions(decisions) => decisions,
        Reply::Message(message) => panic!("not a decision: {message:?}"),
    }
}

#[test]
fn text_is_a_question_and_nothing_is_a_fault() {
    let Reply::Message(said) = read(vec![Part::text("a"), Part::text("b")]).reply(false) else { panic!() };
    assert_eq!(said.plain_text(), "a\nb");
    for parts in [vec![], vec![Part::text("  \n")]] {
        let fault = Request::read(&message(parts)).unwrap_err();
        assert!(fault.starts_with("message.parts: "), "{fault}");
    }
}

#[test]
fn who_asks_comes_from_metadata_or_the_first_line() {
    let request = read(vec![Part::text("by user: a@b.c\n\nhello")]);
    assert_eq!(request.user.as_deref(), Some("a@b.c"));
    let mut message = message(vec![Part::text("hello")]);
    message.metadata =
        Some(object(json!({"user_email": "x@y.z", "trace_id": "0AF7651916CD43DD8448EB211C80319C"})));
    let request = Request::read(&message).unwrap();
    assert_eq!(request.user.as_deref(), Some("x@y.z"));
    assert_eq!(request.trace_id.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    message.metadata = Some(object(json!({"trace_id": "bad\r\nHeader: x"})));
    assert_eq!(Request::read(&message).unwrap().trace_id, None);
}

#[test]
fn every_spelling_of_a_decision_is_understood() {
    let values = |value| Decision::Submit { values: object(value) };
    let old_form = json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": {
        "metadata": {"input_fields": [{"field_name": "repo", "value": "r1"}, {"field_name": "note", "value": null}]},
        "user_inputs": {"team": "sre"}}}});
    let new_form = json!({"type": "edit", "edited_action": {"name": "CAIPEAgentResponse", "args": {"user_inputs": {"repo": "r1"}}}});
    let plain_edit =
        json!({"type": "edit", "edited_action": {"name": "create_issue", "args": {"title": "x"}}});
    let cases = [
        (json!({"type": "approve"}), Decision::Approve),
        (json!({"type": "accept"}), Decision::Approve),
        (old_form, values(json!({"repo": "r1", "team": "sre"}))),
        (new_form, values(json!({"repo": "r1"}))),
        (plain_edit, values(json!({"title": "x"}))),
        (json!({"type": "reject"}), Decision::Reject { message: "User rejected the request".to_owned() }),
        (json!({"type": "response", "args": "not now"}), Decision::Reject { message: "not now".to_owned() }),
    ];
    for (given, expected) in cases {
        assert_eq!(decided(&given), [expected], "{given}");
    }
}

#[test]
fn lines_of_keys_answer_a_form_only_where_one_waits() {
    let request = || read(vec![Part::text("by user: a@b.c\n\nrepo: r1\nteam: sre: core")]);
    let Reply::Decisions(decisions) = request().reply(true) else { panic!() };
    assert_eq!(decisions, [Decision::Submit { values: object(json!({"repo": "r1", "team": "sre: core"})) }]);
    assert!(matches!(request().reply(false), Reply::Message(_)));
    assert!(matches!(read(vec![Part::text("forget it")]).reply(true), Reply::Message(_)));
}
